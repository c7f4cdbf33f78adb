#include "tensor/storage.h"

#include <numeric>
#include <optional>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "engine/host_memory.h"
#include "ops/elementwise.h"
#include "runtime/backends.h"
#include "shape/device.h"
#include "shape/shape.h"
#include "tensor/cell.h"
#include "tensor/memory.h"
#include "tensor/realize.h"
#include "tensor/recorder.h"
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

Run one_piece(const UOp& view, std::string_view what) {
  Run run = run_of(view);
  if (!run.rest.empty())
    throw DeviceError(fmt::format("{}: a view on {} whose elements do not follow one another; copy it with to(\"CPU\") first", what,
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

bool is_storage(Symbol device) { return !device.empty() && !runtime::open_device(device.str()).target().computes(); }

BufferPtr piece_of_memory(const UOp& view) {
  if (const UOp whole = whole_buffer(view)) return BufferPtr(&buffer_of(whole));
  if (!state_of_view(view).is(Op::BUFFER) || !all_known(shape_of(view))) return {};
  const Run run = run_of(view);
  if (!run.rest.empty() || run.size() == 0) return {};
  return buffer_of_run(run, run.memory.dtype());
}

UOp copied_from_storage(const UOp& view, Symbol device) {
  const Run run = run_of(view);
  UOp out;
  if (run.size() == 0) {
    out = make_memory(run.shape, view.dtype(), device);
  } else {
    const BufferPtr memory = buffer_of_run(run, run.memory.dtype());
    const BufferPtr shared = Buffer::sharing(runtime::open_device(device.str()), memory);
    out = shared ? node_of(shared, device) : ops::copy_to(node_of(memory, device_of(view)), device);
    if (run.shape.size() != 1) out = reshape(out, run.shape);
  }
  for (size_t i = run.rest.size(); i-- > 0;) {
    UOps sources(run.rest[i].src().begin(), run.rest[i].src().end());
    sources[0] = out;
    out = run.rest[i].with_src(sources);
  }
  return out;
}

UOp storage_bitcast(const UOp& view, DType dtype) {
  const Shape shape = shape_of(ops::bitcast(view, dtype));
  const BufferPtr memory = buffer_of_run(one_piece(view, "bitcast"), dtype);
  const UOp node = node_of(memory, device_of(view));
  return shape.size() == 1 ? node : reshape(node, shape);
}

namespace {

void write_now(const UOp& view, const UOp& value) {
  const Run run = one_piece(view, "assign");
  const Symbol device = device_of(view);
  if (Recorder* r = Recorder::current()) r->used_host("assign() to storage");
  std::vector<detail::CellPtr> readers;
  for (const detail::CellPtr& c : detail::unfinished_cells()) {
    const UOp node = c->node();
    const auto reads = [&](const UOp& u) { return u.is(Op::BUFFER) && u.arg_as<BufferArg>().device == device; };
    if (!state_of_view(node).is(Op::BUFFER) && std::ranges::any_of(toposort(node), reads)) readers.push_back(c);
  }
  const Tensor source = Tensor::from_uop(device_of(value) == device ? copied_from_storage(value, Symbol("CPU")) : ops::contiguous(value));
  realize(readers);
  source.realize();
  if (run.size() == 0) return;
  const BufferPtr target = buffer_of_run(run, run.memory.dtype());
  Buffer& from = buffer_of(whole_buffer(source.uop()));
  try {
    target->copy_from(from);
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
  if (!to || !from || Recorder::current()) return false;
  if (&to->origin() == &from->origin() && to->byte_offset() == from->byte_offset()) return true;
  const uint64_t id = state_of_view(view).arg_as<BufferArg>().id;
  const auto is_it = [&](uint64_t other) { return other == id; };
  engine::with_host_memory([&] {
    const std::unique_lock lock = settle({.used = is_it, .written = is_it, .writes_any = true});
    to->copy_from(*from);
  });
  return true;
}

}  // namespace tinygrad::tensor
