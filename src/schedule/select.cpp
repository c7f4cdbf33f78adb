#include "schedule/select.h"

#include <algorithm>
#include <utility>

#include "schedule/place.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

const UOp& below_movement(const UOp& u) {
  const UOp* x = &u;
  while (x->in(Group::movement)) x = &x->src(0);
  return *x;
}

bool depends_on(const UOp& u, const UOp& range) { return is_open_over(u, std::span(&range, 1)); }

/// The index that is compared with `range`, and what else must hold; a null index if the condition is no such comparison.
std::pair<UOp, UOp> compared_index(const UOp& condition, const UOp& range) {
  if (condition.is(Op::AND)) {
    for (size_t i = 0; i < 2; ++i)
      if (auto [at, rest] = compared_index(condition.src(i), range); at) return {at, both(rest, condition.src(1 - i))};
    return {};
  }
  if (!condition.is(Op::CMPEQ)) return {};
  for (size_t i = 0; i < 2; ++i) {
    const UOp &position = condition.src(i), &at = condition.src(1 - i);
    const bool is_range = position.is(Op::CAST) && position.src(0) == range;
    if (is_range && is_int(at.dtype()) && !depends_on(at, range)) return {at, {}};
  }
  return {};
}

}  // namespace

bool is_selection(const UOp& u) {
  if (!u.is(Op::REDUCE) || u.src_count() != 1 || u.arg_as<ReduceArg>().op != Op::ADD || u.arg_as<ReduceArg>().axes.size() != 1)
    return false;
  const UOp& x = below_movement(u.src(0));
  if (!x.is(Op::WHERE) || !is_const(x.src(2), 0)) return false;
  const UOp& condition = below_movement(x.src(0));
  if (!condition.is(Op::CMPEQ)) return false;
  return below_movement(condition.src(0)).is(Op::IOTA) || below_movement(condition.src(1)).is(Op::IOTA);
}

UOp selected(const UOp& x, const UOp& range) {
  if (!x.is(Op::WHERE) || !is_const(x.src(2), 0)) return {};
  const auto [at, rest] = compared_index(x.src(0), range);
  if (!at) return {};
  const UOp index = cast(at, DType::index);
  const UOp inside = logical_not(index < 0) & (index < range.src(0));
  const std::span<const UOp> ranges(&range, 1), value(&x.src(1), 1);
  NodeMap<UOp> gated, moved;
  std::vector<UOp> held;
  const std::vector<UOp> nodes = toposort_where(value, [&](const UOp& u) { return depends_on(u, range); });
  for (const UOp& u : nodes) {
    if (!u.is(Op::LOAD) || !depends_on(u, range)) continue;
    const UOp& place = u.src(0);
    const std::vector<UOp> below = toposort(place);
    if (std::any_of(below.begin(), below.end(), [&](const UOp& b) { return gated.contains(b); })) return {};
    held.push_back(load(index_valid(place.src(0), place.src(1), place.src_count() > 2 ? place.src(2) & inside : inside)));
    gated[u] = held.back();
  }
  moved[range] = index;
  const UOp picked = substitute_open(substitute_open(value, ranges, std::move(gated)), ranges, moved)[0];
  const UOp condition = rest ? inside & substitute(rest, moved) : inside;
  return picked.is(Op::LOAD) && !rest ? picked : where(condition, picked, x.src(2));
}

}  // namespace tinygrad::schedule
