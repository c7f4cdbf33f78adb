#include "shape/ranges.h"

#include <algorithm>

#include "shape/bottom_up.h"
#include "uop/graph.h"

namespace tinygrad {

namespace {

/// An immutable sorted list that nodes share where their sources' lists agree.
struct RangeList {
  explicit RangeList(std::vector<UOp> r) : ranges(std::move(r)) {}
  void retain() const noexcept { count.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (count.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  const std::vector<UOp> ranges;
  mutable std::atomic<uint32_t> count{0};
};
using Shared = IntrusivePtr<const RangeList>;  // null: no ranges

/// For a RANGE the list is of its size's ranges alone: with itself in it the node would never die.
struct RangesFact final : CachedFact {
  explicit RangesFact(Shared l) : list(std::move(l)) {}
  Shared list;
};

bool before(const UOp& a, const UOp& b) {
  const auto &x = a.arg_as<RangeArg>(), &y = b.arg_as<RangeArg>();
  if (x.order != y.order) return x.order < y.order;
  if (x.id != y.id) return x.id < y.id;
  return compare(a, b) < 0;
}

const Shared& stored(const UOp& u) { return static_cast<const RangesFact*>(u->fact(FactSlot::ranges))->list; }

void merge_in(std::vector<UOp>& into, const UOp& range) {
  const auto at = std::lower_bound(into.begin(), into.end(), range, before);
  if (at == into.end() || *at != range) into.insert(at, range);
}

void merge_in(std::vector<UOp>& into, std::span<const UOp> ranges) {
  if (into.empty()) {
    into.assign(ranges.begin(), ranges.end());
    return;
  }
  for (const UOp& r : ranges) merge_in(into, r);
}

std::vector<UOp> list_of(const UOp& u) {
  std::vector<UOp> out;
  if (const Shared& s = stored(u)) out = s->ranges;
  if (u.is(Op::RANGE)) merge_in(out, u);
  return out;
}

/// The one list that all sources agree on, to be shared; false if they have to be merged.
bool sources_agree(std::span<const UOp> sources, Shared& out) {
  for (const UOp& s : sources) {
    if (s.is(Op::RANGE)) return false;
    const Shared& list = stored(s);
    if (!list || list == out) continue;
    if (out) return false;
    out = list;
  }
  return true;
}

Shared infer(const UOp& u) {
  const std::span<const UOp> sources = scope_sources(u), closed = closed_ranges(u);
  Shared shared;
  if (closed.empty() && sources_agree(sources, shared)) return shared;

  std::vector<UOp> open;
  for (const UOp& s : sources.first(sources.size() - closed.size())) {
    if (const Shared& list = stored(s)) merge_in(open, list->ranges);
    if (s.is(Op::RANGE)) merge_in(open, s);
  }
  // A closed range may depend on others; those stay open.
  for (const UOp& r : closed)
    if (const Shared& s = stored(r)) merge_in(open, s->ranges);
  std::erase_if(open, [&](const UOp& r) { return std::find(closed.begin(), closed.end(), r) != closed.end(); });
  if (open.empty()) return {};
  for (const UOp& s : sources)
    if (const Shared& same = stored(s); same && same->ranges == open) return same;
  return Shared(new RangeList(std::move(open)));
}

const Shared& fact_of(const UOp& u) {
  const CachedFact* f = shape::fact_bottom_up(u, FactSlot::ranges, scope_sources, [](const UOp& n) { return new RangesFact(infer(n)); });
  return static_cast<const RangesFact*>(f)->list;
}

}  // namespace

bool is_general_reduce(const UOp& u) { return u.is(Op::REDUCE) && u.arg_as<ReduceArg>().op == Op::FUNCTION; }

std::span<const UOp> closed_ranges(const UOp& u) {
  switch (u.op()) {
    case Op::END:
    case Op::STAGE: return u.src().subspan(1);
    case Op::REDUCE: return u.src().subspan(is_general_reduce(u) ? 4 : 1);
    default: return {};
  }
}

bool closes(const UOp& u, const UOp& range) {
  const std::span<const UOp> closed = closed_ranges(u);
  return std::ranges::find(closed, range) != closed.end();
}

OpenRanges ranges_of(const UOp& u) {
  const Shared& list = fact_of(u);
  if (!u.is(Op::RANGE)) return OpenRanges(list ? std::span(list->ranges) : std::span<const UOp>());
  if (!list) return OpenRanges(std::span(&u, 1));
  return OpenRanges(UOps(list_of(u)));
}

bool is_open_over(const UOp& u, std::span<const UOp> ranges) {
  const Shared& list = fact_of(u);
  for (const UOp& r : ranges)
    if (u == r || (list && std::find(list->ranges.begin(), list->ranges.end(), r) != list->ranges.end())) return true;
  return false;
}

std::vector<UOp> substitute_open(std::span<const UOp> roots, std::span<const UOp> ranges, NodeMap<UOp> map) {
  const auto changes = [&](const UOp& u) { return !map.contains(u) && is_open_over(u, ranges); };
  const auto replaced = [&](const UOp& u) {
    const UOp* other = map.find(u);
    return other ? *other : u;
  };
  const std::vector<UOp> order = toposort_where(roots, changes);
  for (const UOp& u : order) {
    if (!changes(u)) continue;
    UOps sources;
    for (const UOp& s : u.src()) sources.push_back(replaced(s));
    map[u] = u.with_src(sources);
  }
  std::vector<UOp> out;
  for (const UOp& r : roots) out.push_back(replaced(r));
  return out;
}

bool is_closed(const UOp& u) { return !u.is(Op::RANGE) && !fact_of(u); }

}  // namespace tinygrad
