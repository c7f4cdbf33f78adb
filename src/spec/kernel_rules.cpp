// One kernel: what the scheduler gives to the code generator.
#include <fmt/core.h>

#include "shape/ranges.h"
#include "shape/shape.h"
#include "spec/border.h"
#include "symbolic/bounds.h"
#include "uop/graph.h"

namespace tinygrad::spec {

using namespace rewrite;

namespace {

OpSet kernel_ops() {
  using enum Op;
  return ops({CONST, VAR, PARAM, INDEX, LOAD, STORE, AFTER, GROUP, SINK, END, RANGE, REDUCE, FUNCTION, TUPLE, GETTUPLE, WEIGHT}) |
         ops(Group::elementwise);
}

Verdict is_kernel_root(const Match& m, KernelGraph& graph) {
  const UOp& u = m.root();
  if (u != graph.root) return Violation{"a SINK inside", "one SINK at the root"};
  if (!std::holds_alternative<KernelArg>(u.arg())) return Violation{"no KernelArg", "a KernelArg"};
  for (const UOp& s : u.src())
    if (!s.is(Op::END) && !s.is(Op::STORE) && !s.is(Op::GROUP)) return Violation{std::string(name(s.op())), "ENDs and STOREs"};
  // Slots and ranges are numbered from 0, so the last of each tells whether there are gaps.
  if (!graph.params.empty() && graph.params.rbegin()->first != int32_t(graph.params.size()) - 1)
    return Violation{fmt::format("slot {} of {} PARAMs", graph.params.rbegin()->first, graph.params.size()), "slots without gaps"};
  return {};
}

/// PARAMs of FUNCTION bodies are scalars and have slots of their own.
Verdict is_argument(const Match& m, KernelGraph& graph) {
  const UOp& u = m.root();
  if (!graph.own.contains(u))
    return expect(u.src_count() == 0, [&] { return Violation{describe_value(u), "a scalar in the body of a FUNCTION"}; });
  const Shape& shape = shape_of(u);
  if (shape.size() != 1 || !shape[0].known()) return Violation{to_string(shape), "flat memory of a known size"};
  if (u.dtype() == DType::index) return Violation{"dtypes.index", "a dtype that memory holds"};
  const int32_t slot = u.arg_as<ParamArg>().slot;
  if (slot < 0) return Violation{fmt::format("slot {}", slot), "slots from 0"};
  const auto [at, is_new] = graph.params.try_emplace(slot, u);
  return expect(is_new || at->second == u,
                [&] { return Violation{fmt::format("another PARAM of slot {}", slot), "one PARAM for a slot"}; });
}

Verdict is_a_loop(const Match& m, KernelGraph& graph) {
  const UOp& u = m.root();
  const auto& r = u.arg_as<RangeArg>();
  if (!graph.optimized && r.kind != AxisKind::loop && r.kind != AxisKind::reduce)
    return Violation{to_string(u.arg()), "kind loop or reduce"};
  const auto [at, is_new] = graph.ranges.try_emplace(r.id, u);
  return expect(is_new || at->second == u,
                [&] { return Violation{fmt::format("another RANGE with the id {}", r.id), "one RANGE for an id"}; });
}

Verdict closes_kind(const Match& m, KernelGraph& graph) {
  if (graph.optimized) return {};
  const AxisKind kind = m.root().is(Op::END) ? AxisKind::loop : AxisKind::reduce;
  for (const UOp& r : closed_ranges(m.root()))
    if (r.arg_as<RangeArg>().kind != kind) return Violation{to_string(r.arg()), "loops in END, reduce ranges in REDUCE"};
  return {};
}

/// A REDUCE over a RANGE inside of another REDUCE over it is a loop before that one. It cannot be if it stands in a loop inside of that.
Verdict closes_its_own(const Match& m, KernelGraph& graph) {
  const UOp& u = m.root();
  if (graph.optimized) return {};
  const UOps reduces = graph.reduces_in(u.src());
  for (const UOp& r : closed_ranges(u))
    for (const UOp& inner : reduces)
      if (closes(inner, r) && !std::ranges::all_of(ranges_of(inner), [&](const UOp& s) { return is_open_over(u, std::span(&s, 1)); }))
        return Violation{fmt::format("{} closed in a loop inside too", to_string(r.arg())), "a RANGE of its own for each loop"};
  return {};
}

Verdict is_scalar(const Match& m) {
  return expect(shape_of(m.root()).empty(), [&] { return Violation{describe_value(m.root()), "shape ()"}; });
}

Verdict counts_with_index(const Match& m) { return verdict(m.root().dtype() == DType::index, repr(m.root().dtype()), "dtypes.index"); }

/// An indexed node is memory, since values have no axes in a kernel.
Verdict is_place(const Match& m) {
  const UOp& u = m.root();
  if (u.src(1).dtype() != DType::index) return Violation{fmt::format("an index of {}", repr(u.src(1).dtype())), "dtypes.index"};
  return expect(u.arg_as<IndexArg>().width == 1, [&] { return Violation{to_string(u.arg()), "width 1"}; });
}

/// An index that no element has; others may still be outside, where nothing executes them.
Verdict is_within_memory(const Match& m, KernelGraph& graph) {
  const UOp& u = m.root();
  if (u.src_count() > 2) return {};
  const SInt size = shape_of(graph.memory_of(u))[0];
  const symbolic::Bounds b = symbolic::bounds(u.src(1));
  return expect(size.value() == 0 || (b.max >= 0 && b.min < size.value()), [&] {
    return Violation{fmt::format("an index from {} to {}", b.min, b.max), fmt::format("an element below {}", to_string(size))};
  });
}

}  // namespace

const BorderRules<KernelGraph>& kernel_rules() {
  using enum Op;
  static const auto& table = *new BorderRules<KernelGraph>{
      {any_but(kernel_ops()), [](const Match& m) { return verdict(false, name(m.root().op()), "an op of kernels"); }, "op"},
      {pat(CONST), [](const Match& m) { return verdict(m.root().arg_as<ConstArg>().device.empty(), "a device", "no device"); }, "constant"},
      {pat({VAR, RANGE}), counts_with_index, "index dtype"},
      {pat(RANGE), is_a_loop, "range"},
      {pat(PARAM), is_argument, "param"},
      {pat(INDEX), is_place, "place"},
      {pat(INDEX), is_within_memory, "index bounds"},
      {pat(LOAD), [](const Match& m) { return verdict(m.root().src_count() == 1, "an alternative", "validity in the INDEX"); }, "load"},
      {pat(STORE),
       [](const Match& m) {
         return verdict(m.root().src_count() == 2 && m.root().src(0).is(INDEX), "a gate or a view", "STORE(INDEX, x)");
       },
       "store"},
      {pat(REDUCE), [](const Match& m) { return verdict(m.root().arg_as<ReduceArg>().axes.empty(), "axes", "ranges"); }, "reduce"},
      {pat({END, REDUCE}), closes_kind, "closed kind"},
      {pat(REDUCE), closes_its_own, "own ranges"},
      {any_but(ops({PARAM, AFTER}) | ops(Group::effect)), is_scalar, "scalar"},
      {pat(SINK), is_kernel_root, "root"},
  };
  return table;
}

}  // namespace tinygrad::spec
