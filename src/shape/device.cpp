#include "shape/device.h"

#include <mutex>
#include <set>

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
    if (!found.empty())
      throw DeviceError(fmt::format("{}: the sources live on {} and {}; move one of them with .to(\"{}\")", name(u.op()), to_string(found),
                                    to_string(d), to_string(holds_files(found) ? d : found)));
    found = d;
  }
  return found;
}

Devices joined(std::span<const UOp> shards) {
  std::vector<Symbol> names;
  for (const UOp& s : shards) names.push_back(stored(s).only());
  return Devices::of(names);
}

Devices call_rule(const UOp& u) {
  const UOp& body = u.src(0);
  if (body.is(Op::COPY)) return body.arg_as<DeviceArg>().device;
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
    case Op::MSTACK: return joined(u.src());
    case Op::MSELECT: return stored(u.src(0))[size_t(u.arg_as<TupleArg>().index)];
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

Devices Devices::of(std::span<const Symbol> names) {
  // Never destroyed: facts of nodes may be asked for until the last moment.
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::vector<Symbol>>& sets = *new std::set<std::vector<Symbol>>;
  Devices out;
  if (names.size() == 1) out.only_ = names[0];
  if (names.size() < 2) return out;
  std::lock_guard lock(mutex);
  out.several_ = &*sets.emplace(names.begin(), names.end()).first;
  return out;
}

Symbol Devices::operator[](size_t shard) const {
  if (shard >= size()) throw DeviceError(fmt::format("no shard {} of a value that lives on {} only", shard, to_string(*this)));
  return several_ ? (*several_)[shard] : only_;
}

Symbol Devices::only() const {
  if (several_) throw DeviceError(fmt::format("a value lives on {}, where one device is expected", to_string(*this)));
  return only_;
}

std::string to_string(const Devices& devices) {
  std::string out;
  for (size_t i = 0; i < devices.size(); ++i) out += (i == 0 ? "" : ", ") + std::string(devices[i].str());
  return out;
}

Devices devices_of(const UOp& u) {
  const CachedFact* f = shape::fact_bottom_up(u, FactSlot::device, device_sources, [](const UOp& n) { return new DeviceFact(infer(n)); });
  return static_cast<const DeviceFact*>(f)->devices;
}

Symbol device_of(const UOp& u) { return devices_of(u).only(); }

}  // namespace tinygrad
