#include "codegen/prepare/merge_ranges.h"

#include <algorithm>
#include <optional>

#include "codegen/kernel_axes.h"
#include "codegen/rebuild.h"
#include "shape/ranges.h"
#include "symbolic/linear.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

struct Pair {
  UOp outer, inner;
};

bool depends_on(const UOp& u, const UOp& range) {
  const OpenRanges open = ranges_of(u);
  return std::find(open.begin(), open.end(), range) != open.end();
}
bool depends_on(const UOp& u, const Pair& p) { return depends_on(u, p.outer) || depends_on(u, p.inner); }

/// The outer range adds what all steps of the inner one add together.
bool steps_through(const UOp& index, const Pair& p) {
  const auto sum = symbolic::linear(index);
  if (!sum) return false;
  int64_t outer = 0, inner = 0;
  for (const auto& t : sum->terms) {
    if (t.node == p.outer)
      outer = t.factor;
    else if (t.node == p.inner)
      inner = t.factor;
    else if (depends_on(t.node, p))
      return false;
  }
  return outer == inner * constant_size(p.inner);
}

/// Indices of memory are the only use of the two, and they are closed together.
bool can_merge(const std::vector<UOp>& nodes, const Pair& p) {
  const auto &a = p.outer.arg_as<RangeArg>(), &b = p.inner.arg_as<RangeArg>();
  if (a.kind != b.kind || (a.kind != AxisKind::loop && a.kind != AxisKind::reduce)) return false;
  if (constant_size(p.outer) == 0 || constant_size(p.inner) == 0) return false;
  for (const UOp& u : nodes) {
    if (closes(u, p.outer) != closes(u, p.inner)) return false;
    if (u.is(Op::STAGE) && closes(u, p.outer) && !u.arg_as<StageArg>().layout.empty()) return false;  // they may lie apart
    if (u.dtype() == DType::index) continue;
    const std::span<const UOp> used = u.src().first(u.src_count() - closed_ranges(u).size());
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i].dtype() == DType::index && depends_on(used[i], p) && !(u.is(Op::INDEX) && i == 1 && steps_through(used[i], p)))
        return false;
  }
  return true;
}

UOp merge(const UOp& sink, const Pair& p) {
  UOp merged(Op::RANGE, DType::index, {index_const(constant_size(p.outer) * constant_size(p.inner))}, p.outer.arg());
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    if (u == p.outer) return index_const(0);
    if (u == p.inner) return merged;
    if (!closes(u, p.outer)) return u.with_src(sources);
    UOps kept;
    for (size_t i = 0; i < sources.size(); ++i)
      if (i == 0 || u.src(i) != p.outer) kept.push_back(sources[i]);
    return u.with_src(kept);
  });
}

std::optional<Pair> find_pair(const UOp& sink) {
  const std::vector<UOp> nodes = toposort(sink);
  for (const UOp& u : nodes) {
    const auto closed = closed_ranges(u);
    for (size_t i = 0; i + 1 < closed.size(); ++i)
      if (Pair p{closed[i], closed[i + 1]}; can_merge(nodes, p)) return p;
  }
  return std::nullopt;
}

}  // namespace

UOp merge_ranges(const UOp& sink) {
  UOp graph = sink;
  while (const auto pair = find_pair(graph)) graph = merge(graph, *pair);
  return graph;
}

}  // namespace tinygrad::codegen
