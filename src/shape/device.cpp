#include "shape/device.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "shape/bottom_up.h"
#include "uop/graph.h"

namespace tinygrad {

namespace {

struct DeviceFact final : CachedFact {
  explicit DeviceFact(Devices d) : devices(d) {}
  Devices devices;
};

Devices stored(const UOp& u) { return static_cast<const DeviceFact*>(u->fact(FactSlot::device))->devices; }

/// Nothing is computed in files, and this room knows of devices no more than their names.
bool holds_files(const Devices& devices) { return devices.size() == 1 && devices.only().str().starts_with("DISK:"); }

Devices common(const UOp& u, std::span<const UOp> sources) {
  Devices found;
  for (const UOp& s : sources) {
    const Devices d = stored(s);
    if (d.empty() || d == found) continue;
    if (found.empty() || (d.are_several() && !found.are_several() && d.has(found.only()))) {
      found = d;
    } else if (found.has_same_shards(d)) {
      found = Devices::common_values(found, d);
    } else if (!(found.are_several() && !d.are_several() && found.has(d.only()))) {
      throw DeviceError(fmt::format("{}: the sources live on {} and {}; move one of them with .to(\"{}\")", name(u.op()), to_string(found),
                                    to_string(d), to_string(holds_files(found) ? d : found)));
    }
  }
  return found;
}

/// Shards that see the same of what they combine have the same result.
Devices collective_rule(const UOp& u) {
  const CollectiveArg& arg = u.arg_as<CollectiveArg>();
  Devices from = stored(u.src(0));
  if (from.empty()) from = arg.devices.with_values([](size_t) { return uint64_t(0); });  // of a constant all shards have the same
  switch (arg.kind) {
    case Collective::scatter: return arg.devices.with_values([&](size_t s) { return uint64_t(arg.at(s)); });
    case Collective::gather: return arg.devices;
    case Collective::allreduce:
    case Collective::allgather: return from.with_values([&](size_t s) { return uint64_t(from.value_of(arg.line(s)[0])); });
    case Collective::reducescatter:
      return from.with_values([&](size_t s) { return uint64_t(from.value_of(arg.line(s)[0])) << 32 | uint64_t(arg.at(s)); });
  }
  return from;
}

Devices call_rule(const UOp& u) {
  const UOp& body = u.src(0);
  if (body.is(Op::COPY)) return body.arg_as<DeviceArg>().device;
  if (body.is(Op::COLLECTIVE)) return stored(u.src(1));
  if (body.is(Op::FUNCTION) && !stored(body).empty()) return stored(body);
  return common(u, u.src().subspan(1));
}

Devices infer(const UOp& u) {
  switch (u.op()) {
    case Op::CONST: return u.arg_as<ConstArg>().device;
    case Op::BUFFER: return u.arg_as<BufferArg>().device;
    case Op::PARAM: return u.arg_as<ParamArg>().device;
    case Op::IOTA:
    case Op::COPY: return u.arg_as<DeviceArg>().device;
    case Op::CALL: return call_rule(u);
    case Op::VAR: return u.arg_as<VarArg>().devices;
    case Op::MSTACK: return u.arg_as<ShardingArg>().devices;
    case Op::SHARD:
    case Op::UNSHARD: return u.arg_as<ShardingArg>().devices.apart();
    case Op::COLLECTIVE: return collective_rule(u);
    case Op::REALIZED:
    case Op::AFTER: return stored(u.src(0));
    case Op::GETTUPLE:
      if (u.src(0).is(Op::TUPLE)) return stored(u.src(0).src(size_t(u.arg_as<TupleArg>().index)));
      return stored(u.src(0));
    // Groups of effects and of values: their members may live anywhere.
    case Op::SINK:
    case Op::GROUP:
    case Op::LINEAR:
    case Op::TUPLE: return {};
    case Op::FUNCTION: return u.src(0).is(Op::TUPLE) ? common(u, u.src(0).src()) : stored(u.src(0));
    default: return common(u, u.src());
  }
}

std::span<const UOp> device_sources(const UOp& u) { return u.is(Op::CALL) && !u.src(0).is(Op::FUNCTION) ? u.src().subspan(1) : u.src(); }

}  // namespace

Devices devices_of(const UOp& u) {
  const CachedFact* f = shape::fact_bottom_up(u, FactSlot::device, device_sources, [](const UOp& n) { return new DeviceFact(infer(n)); });
  return static_cast<const DeviceFact*>(f)->devices;
}

Symbol device_of(const UOp& u) { return devices_of(u).only(); }

}  // namespace tinygrad
