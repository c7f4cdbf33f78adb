// The tensor graph: what ops and tensors hand to the scheduler.
#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "shape/device.h"
#include "shape/shape.h"
#include "spec/border.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::spec {

using namespace rewrite;

namespace {

OpSet tensor_ops() {
  using enum Op;
  return ops({CONST,  VAR,      BIND,  IOTA, REDUCE, BUFFER,   PARAM, STORE,    COPY,  CONTIGUOUS, CONTIGUOUS_BACKWARD,
              DETACH, AFTER,    GROUP, SINK, CALL,   FUNCTION, TUPLE, GETTUPLE, STACK, MSTACK,     SHARD,
              TENSOR, REALIZED, KNOWN, WEAK}) |
         ops(Group::movement) | ops(Group::elementwise);
}

Verdict is_device_memory(const Match& m, TensorGraph& graph) {
  const UOp& u = m.root();
  const auto& b = u.arg_as<BufferArg>();
  if (b.scope != Scope::device) return Violation{to_string(u.arg()), "scope device"};
  if (b.device.empty()) return Violation{"no device", "the device that the memory is on"};
  if (u.dtype() == DType::index) return Violation{"dtypes.index", "a dtype that memory holds"};
  const auto [at, is_new] = graph.buffers.try_emplace(b.id, u);
  return expect(is_new || at->second == u,
                [&] { return Violation{fmt::format("another BUFFER with the id {}", b.id), "one BUFFER for an id"}; });
}

/// PARAMs are what calls bind; buffers of the user are BUFFERs.
Verdict is_in_a_function(const Match& m, TensorGraph& graph) {
  return verdict(!graph.own.contains(m.root()), "a PARAM outside of a FUNCTION", "a BUFFER");
}

Verdict binds_a_variable(const Match& m) {
  const UOp &var = m.root().src(0), &value = m.root().src(1);
  if (!var.is(Op::VAR) || !value.is(Op::CONST))
    return Violation{fmt::format("{} and {}", name(var.op()), name(value.op())), "a VAR and a CONST"};
  const auto& limits = var.arg_as<VarArg>();
  const int64_t v = const_value(value)->as_int();
  return expect(v >= limits.min && v <= limits.max,
                [&] { return Violation{fmt::format("{} for {}", v, to_string(var.arg())), "a value within the bounds"}; });
}

/// Two elements of a stored view must not be one element of memory, and each must be one.
Verdict stores_to_a_view(const Match& m, TensorGraph& graph) {
  const UOp& u = m.root();
  if (u.src_count() > 2) return Violation{"a gate", "a target and a value"};
  for (const UOp* t = &u.src(0); t->in(Group::movement); t = &below_view(*t))
    if (t->is(Op::PAD)) return Violation{"a padded view", "a view whose elements are in memory"};
  const UOp& target = u.src(0);
  return verdict(bool(graph.memory_of(target)), name(target.op()), "a view of memory");
}

/// AFTER(view, STORE(view of the same memory, value)).
Verdict follows_its_own_stores(const Match& m, TensorGraph& graph) {
  const UOp& u = m.root();
  const UOp memory = graph.memory_of(u.src(0));
  for (const UOp& s : u.src().subspan(1))
    if (s.is(Op::STORE) && graph.memory_of(s.src(0)) != memory)
      return Violation{fmt::format("a store to {}", print_expr(graph.memory_of(s.src(0)))),
                       fmt::format("stores to {}", print_expr(memory))};
  return {};
}

Verdict calls_a_function(const Match& m) {
  const UOp& body = m.root().src(0);
  return verdict(body.is(Op::FUNCTION), name(body.op()), "a FUNCTION as body");
}

/// A BUFFER for each part, on its device.
Verdict has_its_parts(const Match& m) {
  const UOp& u = m.root();
  const Devices devices = u.arg_as<ShardingArg>().devices;
  if (u.src_count() != devices.part_count())
    return Violation{fmt::format("{} sources", u.src_count()), fmt::format("one for each of {} parts", devices.part_count())};
  for (size_t p = 0; p < u.src_count(); ++p)
    if (!u.src(p).is(Op::BUFFER) || device_of(u.src(p)) != devices[devices.first_shard(p)])
      return Violation{print_expr(u.src(p)), fmt::format("a BUFFER on {}", devices[devices.first_shard(p)].str())};
  return {};
}

Verdict has_its_devices(const Match& m) {
  try {
    devices_of(m.root());
    return {};
  } catch (const DeviceError& e) {
    return Violation{e.what(), "sources on the same devices"};
  }
}

}  // namespace

const BorderRules<TensorGraph>& tensor_rules() {
  using enum Op;
  static const auto& table = *new BorderRules<TensorGraph>{
      {any_but(tensor_ops()), [](const Match& m) { return verdict(false, name(m.root().op()), "an op of tensor graphs"); }, "op"},
      {pat(SINK),
       [](const Match& m, TensorGraph& graph) {
         return verdict(m.root() == graph.root && std::holds_alternative<NoArg>(m.root().arg()), "a SINK inside, or of a kernel",
                        "one SINK at the root");
       },
       "root"},
      {pat(BUFFER), is_device_memory, "buffer"},
      {pat(PARAM), is_in_a_function, "param"},
      {pat(BIND), binds_a_variable, "bound variable"},
      {pat(STORE), stores_to_a_view, "store target"},
      {pat(AFTER), follows_its_own_stores, "state of memory"},
      {pat(CALL), calls_a_function, "call"},
      {pat(COPY), [](const Match& m) { return verdict(!m.root().arg_as<DeviceArg>().device.empty(), "no device", "a device"); }, "copy"},
      {pat(MSTACK), has_its_parts, "parts"},
      {any_node(), has_its_devices, "device"},
  };
  return table;
}

}  // namespace tinygrad::spec
