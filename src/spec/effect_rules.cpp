// Effects, memory and ranges in a graph of effects, at tensor level and inside kernels.
#include <fmt/core.h>

#include "shape/ranges.h"
#include "shape/shape.h"
#include "spec/border.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::spec {

using namespace rewrite;

namespace {

bool is_effect(const UOp& u) { return u.in(Group::effect) && u.dtype() == DType::void_; }

Verdict is_effect_source(const UOp& s) { return verdict(is_effect(s), name(s.op()), "an effect"); }

/// A BARRIER or a WAIT may also name the RANGEs of loops that it is inside of.
Verdict takes_effects(const Match& m) {
  for (const UOp& s : m.root().src())
    if (!((m.root().is(Op::BARRIER) || m.root().is(Op::WAIT)) && s.is(Op::RANGE)))
      if (Verdict v = is_effect_source(s)) return v;
  return {};
}

/// A SINK of a tensor graph also takes states of memory.
Verdict sinks_effects(const Match& m) {
  for (const UOp& s : m.root().src())
    if (!s.is(Op::AFTER))
      if (Verdict v = is_effect_source(s)) return v;
  return {};
}

/// The memory may be a place in it, and an effect may be a RANGE: inside its loop.
Verdict orders_effects(const Match& m, Graph& graph) {
  const UOp& u = m.root();
  if (!graph.memory_of(u.src(0))) return Violation{std::string(name(u.src(0).op())), "memory or a view of it in front"};
  for (const UOp& s : u.src().subspan(1))
    if (!s.is(Op::RANGE))
      if (Verdict v = is_effect_source(s)) return v;
  return {};
}

Verdict loads_from_memory(const Match& m, Graph& graph) {
  const UOp& place = m.root().src(0);
  return verdict(place.is(Op::INDEX) && graph.memory_of(place), name(place.op()), "an INDEX of memory");
}

/// From an argument to memory of the group.
Verdict fetches_to_group(const Match& m, Graph& graph) {
  const UOp &to = m.root().src(0), &from = m.root().src(1);
  const UOp near = to.is(Op::INDEX) ? graph.memory_of(to) : UOp(), far = from.is(Op::INDEX) ? graph.memory_of(from) : UOp();
  if (!near || !near.is(Op::BUFFER) || near.arg_as<BufferArg>().scope != Scope::group)
    return Violation{std::string(name(to.op())), "an INDEX of memory of the group"};
  return verdict(far && far.is(Op::PARAM), name(from.op()), "an INDEX of an argument");
}

Verdict stores_to_memory(const Match& m, Graph& graph) {
  const UOp& place = m.root().src(0);
  return verdict(bool(graph.memory_of(place)), name(place.op()), "a view of memory or an INDEX of it");
}

/// Flat memory, elements of a value with one axis, or those of a STAGE, row-major.
Verdict indexes_one_axis(const Match& m) {
  const UOp& from = m.root().src(0);
  if (from.is(Op::STAGE)) return {};
  if (is_image(from)) {
    const size_t wanted = m.root().arg_as<IndexArg>().width == 4 ? 3 : 4;
    return verdict(m.root().src_count() == wanted, "another number of places", "the row, the texel and, unless all are meant, the lane");
  }
  return expect(rank_of(from) == 1, [&] { return Violation{describe_value(from), "memory or a value with one axis"}; });
}

Verdict closes_ranges(const Match& m) {
  NodeSet seen;
  for (const UOp& r : closed_ranges(m.root())) {
    if (!r.is(Op::RANGE)) return Violation{std::string(name(r.op())), "RANGEs behind the first sources"};
    if (!seen.insert(r)) return Violation{fmt::format("{} twice", print_expr(r)), "each range once"};
  }
  return {};
}

/// A loop is one piece of code; the lanes of a vector axis end with each effect on vectors, and the work-items of a group with whatever
/// they do for each other.
Verdict ends_each_range_once(const Match& m, Graph& graph) {
  for (const UOp& r : closed_ranges(m.root())) {
    const AxisKind kind = r.arg_as<RangeArg>().kind;
    if (kind == AxisKind::lane || kind == AxisKind::local || kind == AxisKind::group) continue;
    if (!graph.ended.insert(r, m.root()).second) return Violation{fmt::format("another END of {}", print_expr(r)), "one END for a range"};
  }
  return {};
}

/// The first store of an effect that is not inside of a loop; null: there is none.
UOp outside_of(const UOp& effect, const UOp& loop) {
  std::vector<UOp> left{effect};
  while (!left.empty()) {
    const UOp u = left.back();
    left.pop_back();
    if (u.is(Op::STORE) && !is_open_over(u, std::span(&loop, 1))) return u;
    if (u.is(Op::GROUP)) left.insert(left.end(), u.src().begin(), u.src().end());
    if (u.is(Op::END)) left.push_back(u.src(0));
  }
  return {};
}

/// What does not depend on a loop is done in front of it, and so it is where a loop runs no iteration.
Verdict stays_in_loops(const Match& m) {
  for (const UOp& r : closed_ranges(m.root())) {
    if (!r.is(Op::RANGE) || r.src(0).dtype() != DType::index || SInt(r.src(0)).min() > 0) continue;
    if (const UOp u = outside_of(m.root().src(0), r))
      return Violation{fmt::format("{} outside of {}", print_expr(u), print_expr(r)), "stores inside of a loop that may have no iteration"};
  }
  return {};
}

Verdict has_no_open_ranges(const Match& m, Graph& graph) {
  const UOp& u = m.root();
  if (u != graph.root) return {};
  const OpenRanges open = ranges_of(u);
  return expect(open.empty(), [&] {
    return Violation{open.empty() ? "" : fmt::format("{}, which nothing closes", print_expr(open[0])), "no open range"};
  });
}

}  // namespace

const BorderRules<Graph>& effect_rules() {
  using enum Op;
  static const auto& table = *new BorderRules<Graph>{
      {pat({GROUP, BARRIER, COMMIT, WAIT}), takes_effects, "effects"},
      {pat(SINK), sinks_effects, "effects"},
      {pat(END), [](const Match& m) { return is_effect_source(m.root().src(0)); }, "effects"},
      {pat(AFTER), orders_effects, "state of memory"},
      {pat(LOAD), loads_from_memory, "place"},
      {pat(STORE), stores_to_memory, "store target"},
      {pat(FETCH), fetches_to_group, "copied places"},
      {pat(INDEX), indexes_one_axis, "indexed"},
      {pat({END, REDUCE, STAGE}), closes_ranges, "closed ranges"},
      {pat(END), ends_each_range_once, "closed once"},
      {pat(END), stays_in_loops, "loops of no iteration"},
      {pat(SINK), has_no_open_ranges, "open ranges"},
  };
  return table;
}

}  // namespace tinygrad::spec
