#include "tensor/memory.h"

#include <algorithm>

#include "runtime/backends.h"
#include "shape/device.h"
#include "tensor/recorder.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::tensor {

namespace {

bool keeps_elements(const UOp& u) { return u.is(Op::DETACH) || (u.in(Group::movement) && !u.is(Op::PAD)); }

UOp make_buffer(int64_t size, DType dtype, Symbol device) {
  const BufferPtr resource = Buffer::make(runtime::open_device(device.str()), size, dtype);
  UOp out = buffer(dtype, {.id = next_buffer_id(), .size = size, .device = device, .resource = resource});
  if (Recorder* r = Recorder::current()) r->made(out);
  return out;
}

}  // namespace

UOp state_of_view(const UOp& node) {
  const UOp* u = &node;
  while (keeps_elements(*u)) u = &u->src(0);
  return u->is(Op::BUFFER) || u->is(Op::AFTER) ? *u : UOp();
}

UOp buffer_of_state(const UOp& state) {
  const UOp* u = &state;
  while (u->is(Op::AFTER)) u = &u->src(0);
  return *u;
}

UOp without_detach(const UOp& view) {
  std::vector<UOp> chain;
  UOp u = view;
  for (; keeps_elements(u); u = UOp(u.src(0)))
    if (!u.is(Op::DETACH)) chain.push_back(u);
  for (size_t i = chain.size(); i-- > 0;) {
    UOps sources(chain[i].src().begin(), chain[i].src().end());
    sources[0] = u;
    u = chain[i].with_src(sources);
  }
  return u;
}

bool overlaps_itself(const UOp& view) {
  for (const UOp* u = &view; keeps_elements(*u); u = &u->src(0))
    if (u->is(Op::EXPAND) && shape_of(*u) != shape_of(u->src(0))) return true;
  return false;
}

UOp whole_buffer(const UOp& node) {
  const UOp* u = &node;
  while (u->is(Op::RESHAPE) || u->is(Op::DETACH)) u = &u->src(0);
  return u->is(Op::BUFFER) && all_known(shape_of(node)) ? *u : UOp();
}

UOp make_memory(const Shape& shape, DType dtype, Symbol device) {
  int64_t size = 1;
  Shape room;
  SmallVector<std::pair<SInt, SInt>, 6> used;
  for (const SInt& s : shape) {
    size *= s.max();
    room.push_back(s.max());
    used.push_back({0, s});
  }
  const UOp memory = make_buffer(size, dtype, device);
  if (all_known(shape)) return shape.size() == 1 ? memory : reshape(memory, shape);
  return shrink(reshape(memory, room), used);
}

UOp copied(const UOp& value) {
  const Shape& shape = shape_of(value);
  const bool has_elements = std::none_of(shape.begin(), shape.end(), [](const SInt& s) { return s == 0; });
  if (!has_elements || !all_known(shape)) return UOp(Op::CONTIGUOUS, value.dtype(), {value});
  Symbol device = device_of(value);
  if (device.empty()) device = runtime::default_device_name();
  const Shape flat{numel(shape)};
  const UOp memory = make_memory(flat, value.dtype(), device);
  return reshape(after(memory, UOps{store(memory, reshape(value, flat))}), shape);
}

UOp upload(std::span<const std::byte> bytes, DType dtype, Symbol device) {
  UOp memory = make_buffer(static_cast<int64_t>(bytes.size() / itemsize(dtype)), dtype, device);
  buffer_of(memory).copyin(bytes);
  if (Recorder* r = Recorder::current()) r->uploaded(memory, bytes);
  return memory;
}

}  // namespace tinygrad::tensor
