#include "tensor/memory.h"

#include <algorithm>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "device/device.h"
#include "schedule/normalize.h"
#include "shape/device.h"
#include "tensor/history.h"
#include "tensor/observer.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::tensor {

namespace {

/// What a view shows elements of; null for what is no view.
const UOp* shown_by(const UOp& u) {
  switch (u.op()) {
    case Op::PAD: return nullptr;
    case Op::BITCAST:
    case Op::DETACH:
    case Op::REALIZED: return &u.src(0);
    case Op::TENSOR: return u.arg_as<TensorArg>().is_view ? &u.src(0) : nullptr;
    default: return u.in(Group::movement) ? &below_view(u) : nullptr;
  }
}

/// The nodes of a view from the top down, its base not among them.
SmallVector<UOp, 8> links_of(const UOp& view) {
  SmallVector<UOp, 8> links;
  const UOp* u = &view;
  while (const UOp* next = shown_by(*u))
    for (; u != next; u = &u->src(0)) links.push_back(*u);
  return links;
}

/// A movement op, or another with one source, on top of something else of perhaps another dtype.
UOp on_top_of(const UOp& x, const UOp& link, DType dtype) {
  UOps sources(link.src().begin(), link.src().end());
  sources[0] = x;
  return UOp(link.op(), dtype, sources, link.arg());
}

UOp make_buffer(int64_t size, DType dtype, Symbol device, bool weak = false) {
  const BufferPtr resource = Buffer::make(Device::get(device.str()), size, dtype);
  UOp out = buffer(dtype, {.id = next_buffer_id(), .size = size, .device = device, .resource = resource, .weak = weak});
  if (Observer* r = Observer::current()) r->made(out);
  return out;
}

}  // namespace

const UOp& base_of_view(const UOp& node) {
  const UOp* u = &node;
  while (const UOp* next = shown_by(*u)) u = next;
  return *u;
}

UOp state_of_view(const UOp& node) {
  const UOp& base = base_of_view(node);
  return is_plain_memory(base) || base.is(Op::AFTER) ? base : UOp();
}

bool is_view(const UOp& node) {
  const UOp& base = base_of_view(node);
  return is_plain_memory(base) || base.is(Op::AFTER) || base.is(Op::TENSOR);
}

namespace {

/// Of one store: what tensors have read since it ran.
class StoreRun final : public Resource {
 public:
  UOp now;
};

StoreRun* run_of(const UOp& state) {
  const auto* store = std::get_if<StoreArg>(&state.arg());
  return store ? static_cast<StoreRun*>(store->run.get()) : nullptr;
}

}  // namespace

UOp state_after(const UOp& before, const UOp& store) {
  const StoreArg arg{detail::next_cell_number(), IntrusivePtr<Resource>(new StoreRun)};
  if (Observer* r = Observer::current()) r->stores(arg.id);
  return UOp(Op::AFTER, before.dtype(), {before, store}, arg);
}

UOp state_now(const UOp& state) {
  const StoreRun* run = run_of(state);
  return run ? run->now : UOp();
}
void set_state_now(const UOp& state, const UOp& now) {
  if (StoreRun* run = run_of(state)) run->now = now;
}

UOp buffer_of_state(const UOp& state) {
  const UOp* u = &state;
  while (u->is(Op::AFTER) || u->is(Op::REALIZED)) u = &u->src(0);
  return *u;
}

UOp tensor_node(const UOp& node, uint64_t id, bool is_view, const ValueOrigin& origin) {
  return UOp(Op::TENSOR, node.dtype(), {node}, TensorArg{id, is_view, IntrusivePtr<Resource>(new TensorValue(origin))});
}

UOp tensor_view(const UOp& tensor, const UOp& memory) {
  TensorArg arg = tensor.arg_as<TensorArg>();
  arg.is_view = true;
  return UOp(Op::TENSOR, memory.dtype(), {memory}, std::move(arg));
}

bool is_detached_view(const UOp& view) {
  return std::ranges::any_of(links_of(view), [](const UOp& u) { return u.is(Op::DETACH); });
}

UOp plain_view(const UOp& view) {
  UOp out = base_of_view(view);
  const auto links = links_of(view);
  for (size_t i = links.size(); i-- > 0;)
    if (links[i].in(Group::movement) || links[i].is(Op::BITCAST))
      out = on_top_of(out, links[i], links[i].is(Op::BITCAST) ? links[i].dtype() : out.dtype());
  return out;
}

UOp view_of(const UOp& view, const UOp& base, const std::function<TensorArg(const TensorArg&)>& renamed) {
  UOp out = base;
  const auto links = links_of(view);
  for (size_t i = links.size(); i-- > 0;) {
    if (links[i].is(Op::REALIZED)) continue;  // of the base that was
    if (renamed && links[i].is(Op::TENSOR))
      out = UOp(Op::TENSOR, out.dtype(), {out}, renamed(links[i].arg_as<TensorArg>()));
    else
      out = on_top_of(out, links[i], links[i].is(Op::BITCAST) ? links[i].dtype() : out.dtype());
  }
  return out;
}

UOp store_through(const UOp& view, const UOp& value) {
  UOp target = base_of_view(view), written = value;
  const auto links = links_of(view);
  bool detached = false;
  for (size_t i = links.size(); i-- > 0;) {
    detached = detached || links[i].is(Op::DETACH);
    if (links[i].in(Group::movement)) target = on_top_of(target, links[i], target.dtype());
  }
  if (detached) written = UOp(Op::DETACH, written.dtype(), {written});
  if (written.dtype() != target.dtype()) written = bitcast(written, target.dtype());
  return store(target, written);
}

bool overlaps_itself(const UOp& view) {
  const auto links = links_of(view);
  return std::any_of(links.begin(), links.end(), [](const UOp& u) { return u.is(Op::EXPAND) && shape_of(u) != shape_of(u.src(0)); });
}

UOp whole_memory(const UOp& node) {
  const UOp* u = &node;
  while (u->is(Op::RESHAPE) || u->is(Op::UNSHARD) || u->is(Op::DETACH) || u->is(Op::REALIZED) ||
         (u->is(Op::TENSOR) && u->arg_as<TensorArg>().is_view))
    u = &u->src(0);
  return is_plain_memory(*u) && all_known(shape_of(node)) ? *u : UOp();
}

UOp whole_buffer(const UOp& node) {
  UOp memory = whole_memory(node);
  return memory && memory.is(Op::BUFFER) ? memory : UOp();
}

ShardingArg Placements::of(const UOp& value) {
  const Devices devices = devices_of(value);
  if (devices.empty()) return {Device::default_name(), {}};
  if (!devices.are_several()) return {devices, {}};
  const UOp* root = &value;
  while (root->in(Group::identity) || root->is(Op::REALIZED)) root = &root->src(0);
  if ((root->is(Op::SHARD) || root->is(Op::UNSHARD)) && has_gathered_axes(root->arg_as<ShardingArg>()))
    return {devices.apart(), root->arg_as<ShardingArg>().axes};
  roots_.push_back(schedule::inline_calls(value));
  return {devices.apart(), shardings_.of(roots_.back())};
}

namespace {

/// One memory for each part: shards on one device that are equal have it together.
UOp make_parts(const Shape& shape, DType dtype, const ShardingArg& where, bool weak) {
  const int64_t size = numel(shard_shape(shape, where.axes)).value();
  const auto place = [&](size_t shard) {
    int64_t at = 0;
    for (const ShardedAxis& a : where.axes) at = at * a.mesh.count + a.mesh.at(shard);
    return uint64_t(at);
  };
  const Devices parts = where.devices.with_values(place);
  UOps memory;
  for (size_t p = 0; p < parts.part_count(); ++p) memory.push_back(make_buffer(size, dtype, parts[parts.first_shard(p)], weak));
  UOps sources{UOp(Op::MSTACK, dtype, memory, ShardingArg{parts, {}})};
  for (const UOp& n : size_nodes(shape)) sources.push_back(n);
  return UOp(Op::UNSHARD, dtype, sources, where);
}

}  // namespace

UOp make_memory(const Shape& shape, DType dtype, const ShardingArg& where, bool weak) {
  int64_t size = 1;
  Shape room;
  SmallVector<std::pair<SInt, SInt>, 6> used;
  for (const SInt& s : shape) {
    size *= s.max();
    room.push_back(s.max());
    used.push_back({0, s});
  }
  const bool is_divided = where.devices.are_several();
  const UOp memory = is_divided ? make_parts(room, dtype, where, weak) : make_buffer(size, dtype, where.devices.only(), weak);
  if (all_known(shape)) return is_divided || shape.size() == 1 ? memory : reshape(memory, shape);
  return shrink(is_divided ? memory : reshape(memory, room), used);
}

UOp copied(const UOp& value) {
  const Shape& shape = shape_of(value);
  if (is_empty(shape)) return UOp(Op::CONTIGUOUS, value.dtype(), {value});
  const ShardingArg where = Placements().of(value);
  if (!all_known(shape) || where.devices.are_several()) {
    const UOp room = make_memory(shape, value.dtype(), where), memory = state_of_view(room);
    return view_of(room, state_after(memory, store(room, value)));
  }
  const Shape flat{numel(shape)};
  const UOp memory = make_memory(flat, value.dtype(), where);
  return reshape(state_after(memory, store(memory, reshape(value, flat))), shape);
}

UOp base_in_memory(const UOp& base) { return base.is(Op::TENSOR) ? tensor_view(base, copied(base.src(0))) : copied(base); }

UOp upload(std::span<const std::byte> bytes, DType dtype, Symbol device) {
  UOp memory = make_buffer(static_cast<int64_t>(bytes.size() / itemsize(dtype)), dtype, device);
  if (!buffer_of(memory).device().target().computes())  // where new memory is the beginning of a file that holds something else
    throw DeviceError(fmt::format("{}: it only holds data; make values on CPU and copy them with to(\"{}\")", device.str(), device.str()));
  buffer_of(memory).copyin(bytes);
  if (Observer* r = Observer::current()) r->uploaded(memory, bytes);
  return memory;
}

}  // namespace tinygrad::tensor
