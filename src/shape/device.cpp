#include "shape/device.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "shape/bottom_up.h"
#include "uop/graph.h"

namespace tinygrad {

namespace {

struct DeviceFact final : CachedFact {
  explicit DeviceFact(Symbol d) : device(d) {}
  Symbol device;
};

Symbol stored(const UOp& u) { return static_cast<const DeviceFact*>(u->fact(FactSlot::device))->device; }

/// Nothing is computed in files, and this room knows of devices no more than their names.
bool holds_files(Symbol device) { return device.str().starts_with("DISK:"); }

Symbol common(const UOp& u, std::span<const UOp> sources) {
  Symbol found;
  for (const UOp& s : sources) {
    const Symbol d = stored(s);
    if (d.empty() || d == found) continue;
    if (!found.empty())
      throw DeviceError(fmt::format("{}: the sources live on {} and {}; move one of them with .to(\"{}\")", name(u.op()), found.str(),
                                    d.str(), holds_files(found) ? d.str() : found.str()));
    found = d;
  }
  return found;
}

Symbol joined(std::span<const UOp> sources) {
  std::string names;
  for (const UOp& s : sources) names += (names.empty() ? "" : ",") + std::string(stored(s).str());
  return Symbol(names);
}

Symbol call_rule(const UOp& u) {
  const UOp& body = u.src(0);
  if (body.is(Op::COPY)) return body.arg_as<DeviceArg>().device;
  if (body.is(Op::FUNCTION) && !stored(body).empty()) return stored(body);
  return common(u, u.src().subspan(1));
}

Symbol infer(const UOp& u) {
  switch (u.op()) {
    case Op::CONST: return u.arg_as<ConstArg>().device;
    case Op::BUFFER: return u.arg_as<BufferArg>().device;
    case Op::PARAM: return u.arg_as<ParamArg>().device;
    case Op::IOTA:
    case Op::COPY: return u.arg_as<DeviceArg>().device;
    case Op::CALL: return call_rule(u);
    case Op::MSTACK: return joined(u.src());
    case Op::MSELECT: return nth_device(stored(u.src(0)), size_t(u.arg_as<TupleArg>().index));
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

Symbol device_of(const UOp& u) {
  const CachedFact* f = shape::fact_bottom_up(u, FactSlot::device, device_sources, [](const UOp& n) { return new DeviceFact(infer(n)); });
  return static_cast<const DeviceFact*>(f)->device;
}

size_t device_count(Symbol device) {
  const std::string_view names = device.str();
  return 1 + size_t(std::count(names.begin(), names.end(), ','));
}

Symbol nth_device(Symbol device, size_t n) {
  std::string_view names = device.str();
  for (size_t i = 0; i < n; ++i) {
    const size_t comma = names.find(',');
    if (comma == std::string_view::npos) throw DeviceError(fmt::format("no shard {} of a value that lives on {} only", n, device.str()));
    names.remove_prefix(comma + 1);
  }
  return Symbol(names.substr(0, names.find(',')));
}

}  // namespace tinygrad
