#include "tensor/storage.h"

#include <numeric>
#include <optional>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/interrupt.h"
#include "device/device.h"
#include "engine/host_memory.h"
#include "ops/elementwise.h"
#include "runtime/disk/disk.h"
#include "shape/device.h"
#include "shape/shape.h"
#include "tensor/cell.h"
#include "tensor/memory.h"
#include "tensor/observer.h"
#include "tensor/realize.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::tensor {

namespace {

/// The lowest part of a view: elements of a BUFFER that follow one another, in a shape; and the ops of the view on top of that.
struct Run {
  UOp memory;  // the BUFFER
  int64_t offset = 0;
  Shape shape;
  std::vector<UOp> rest;  // from the view down

  int64_t size() const { return numel(shape).value(); }
};

/// Where a box begins, if the elements in it follow one another: nothing but its outermost axis that has several elements may be cut.
std::optional<int64_t> offset_of_box(const UOp& shrunk, const Shape& shape) {
  int64_t offset = 0, stride = 1;
  bool cut = false;
  for (size_t axis = shape.size(); axis-- > 0;) {
    const Scalar *begin = const_value(shrunk.src(1 + 2 * axis)), *end = const_value(shrunk.src(2 + 2 * axis));
    if (!begin || !end) return {};
    const int64_t n = end->as_int() - begin->as_int();
    if (cut && n != 1) return {};
    cut = cut || n != shape[axis].value();
    offset += begin->as_int() * stride;
    stride *= shape[axis].value();
  }
  return offset;
}

/// Throws DeviceError for what is no view of memory with known sizes.
Run run_of(const UOp& view) {
  const UOp memory = state_of_view(view);
  if (!memory.is(Op::BUFFER)) {
    throw DeviceError(
        fmt::format("{}: it only holds data, and this is computed; copy with to(\"CPU\") before computing", device_of(view).str()));
  }
  std::vector<UOp> ops;
  for (UOp u = view; u != memory; u = UOp(u.src(0)))
    if (u.in(Group::movement) || u.is(Op::BITCAST)) ops.push_back(u);
  Run run{.memory = memory, .shape = shape_of(memory), .rest = {}};
  for (; !ops.empty() && all_known(shape_of(ops.back())); ops.pop_back()) {
    const UOp& u = ops.back();
    if (u.is(Op::SHRINK)) {
      const auto offset = offset_of_box(u, run.shape);
      if (!offset) break;
      run.offset += *offset;
    } else if (!u.is(Op::RESHAPE)) {
      break;
    }
    run.shape = shape_of(u);
  }
  run.rest = std::move(ops);
  return run;
}

Run one_piece(const UOp& view) {
  Run run = run_of(view);
  if (!run.rest.empty())
    throw DeviceError(fmt::format("bitcast: a view on {} whose elements do not follow one another; copy it with to(\"CPU\") first",
                                  device_of(view).str()));
  return run;
}

BufferPtr buffer_of_run(const Run& run, DType dtype) {
  Buffer& whole = buffer_of(run.memory);
  whole.ensure_allocated();
  const auto from = static_cast<int64_t>(itemsize(whole.dtype())), to = static_cast<int64_t>(itemsize(dtype));
  return whole.view(run.offset * from, run.size() * from / to, dtype);
}

UOp node_of(const BufferPtr& memory, Symbol device) {
  return buffer(memory->dtype(), {.id = next_buffer_id(), .size = memory->size(), .device = device, .resource = memory});
}

}  // namespace

bool is_storage(Symbol device) { return !device.empty() && !Device::get(device.str()).target().computes(); }

BufferPtr piece_of_memory(const UOp& view) {
  if (const UOp whole = whole_buffer(view)) return BufferPtr(&buffer_of(whole));
  if (!state_of_view(view).is(Op::BUFFER) || !all_known(shape_of(view))) return {};
  const Run run = run_of(view);
  if (!run.rest.empty() || run.size() == 0) return {};
  return buffer_of_run(run, run.memory.dtype());
}

namespace {

/// A run as a value on another device.
UOp copied_run(const Run& run, Symbol device) {
  if (run.size() == 0) return make_memory(run.shape, run.memory.dtype(), device);
  const BufferPtr memory = buffer_of_run(run, run.memory.dtype());
  const BufferPtr shared = Buffer::sharing(Device::get(device.str()), memory);
  const UOp out = shared ? node_of(shared, device) : ops::copy_to(node_of(memory, device_of(run.memory)), device);
  return run.shape.size() == 1 ? out : reshape(out, run.shape);
}

/// The rest of a view, on a value that stands for its run.
UOp with_rest(const Run& run, UOp value) {
  for (size_t i = run.rest.size(); i-- > 0;) {
    UOps sources(run.rest[i].src().begin(), run.rest[i].src().end());
    sources[0] = value;
    value = run.rest[i].with_src(sources);
  }
  return value;
}

}  // namespace

UOp copied_from_storage(const UOp& view, Symbol device) {
  const Run run = run_of(view);
  return with_rest(run, copied_run(run, device));
}

UOp storage_bitcast(const UOp& view, DType dtype) {
  const Shape shape = shape_of(ops::bitcast(view, dtype));
  const BufferPtr memory = buffer_of_run(one_piece(view), dtype);
  const UOp node = node_of(memory, device_of(view));
  return shape.size() == 1 ? node : reshape(node, shape);
}

namespace {

/// The elements of a value in row-major order, in memory of one device that computes or of the host.
UOp computed(const UOp& value) {
  const Devices devices = devices_of(value);
  const bool is_stored = is_storage(value);
  const UOp there = is_stored                                               ? copied_from_storage(value, Symbol("CPU"))
                    : devices.are_several() || rank_of(devices.only()) >= 0 ? ops::copy_to(value, without_rank(devices.first()))
                                                                            : value;
  const Tensor source = Tensor::from_uop(whole_buffer(there) ? there : ops::contiguous(there));
  source.realize();
  return whole_buffer(source.uop());
}

/// Live tensors that are lazy and read what a device holds.
std::vector<detail::CellPtr> readers_of(Symbol device) {
  std::vector<detail::CellPtr> readers;
  for (const detail::CellPtr& c : detail::unfinished_cells()) {
    const UOp node = c->node();
    const auto reads = [&](const UOp& u) { return u.is(Op::BUFFER) && runtime::is_same_file(u.arg_as<BufferArg>().device, device); };
    if (!state_of_view(node).is(Op::BUFFER) && std::ranges::any_of(toposort(node), reads)) readers.push_back(c);
  }
  return readers;
}

/// What all of a run holds when the view on it holds a value: what lies between the view's elements is written again as it is.
UOp merged(const Run& run, const UOp& view, const UOp& value) {
  const Tensor whole = Tensor::from_uop(copied(copied_run(run, Symbol("CPU")))).realize();
  Tensor part = Tensor::from_uop(with_rest(run, whole.uop()));
  part.assign(Tensor::from_uop(reshape(ops::copy_to(value, Symbol("CPU")), shape_of(view)))).realize();
  return whole_buffer(whole.uop());
}

void write_now(const UOp& view, const UOp& value) {
  if (overlaps_itself(view))
    throw ValueError("assign: the tensor is an expanded view, elements of which share memory; copy it with to(\"CPU\")");
  const Run run = run_of(view);
  if (Observer* r = Observer::current()) r->used_host("assign() to storage");
  const std::vector<detail::CellPtr> readers = readers_of(device_of(view));
  UOp source = computed(value);
  realize(readers);
  if (run.size() == 0) return;
  if (!run.rest.empty()) source = merged(run, view, source);
  const BufferPtr target = buffer_of_run(run, run.memory.dtype());
  const Uninterruptible to_the_end;  // a part of what is written cannot be taken back
  try {
    target->copy_from(buffer_of(source));
  } catch (const IoError& e) {
    target->poison(e.what());
    throw;
  }
}

}  // namespace

void write_storage(const UOp& view, const UOp& value) {
  engine::with_host_memory([&] { write_now(view, value); });
}

bool copy_into_memory(const UOp& view, const UOp& value) {
  const BufferPtr to = piece_of_memory(view), from = piece_of_memory(value);
  if (!to || !from || Observer::current()) return false;
  if (&to->origin() == &from->origin() && to->byte_offset() == from->byte_offset()) return true;
  engine::with_host_memory([&] {
    Claims used;
    used.add(*to, true);
    used.add(*from, false);
    const Claims held = settle(std::move(used));
    to->copy_from(*from);
  });
  return true;
}

UOp stored(const UOp& value, Symbol device) {
  return engine::with_host_memory([&] {
    const Shape& shape = shape_of(value);
    if (!all_known(shape))
      throw DeviceError(fmt::format("to: {} of symbolic sizes cannot be copied to {}", to_string(shape), device.str()));
    const UOp source = is_empty(shape) ? UOp() : computed(value), memory = make_memory(shape, value.dtype(), device);
    buffer_of(state_of_view(memory)).ensure_allocated();
    if (source) write_now(memory, source.is(Op::BUFFER) ? reshape(source, shape) : source);
    return memory;
  });
}

}  // namespace tinygrad::tensor
