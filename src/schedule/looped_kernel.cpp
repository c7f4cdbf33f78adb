#include "schedule/looped_kernel.h"

#include <algorithm>
#include <optional>

#include "schedule/kernel_calls.h"
#include "shape/ranges.h"
#include "symbolic/linear.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::schedule {

namespace {

/// With `own` where a REDUCE closes the range, and its value in the loop elsewhere.
UOp replaced(const UOp& value, const UOp& taken, const UOp& own, const NodeMap<UOp>& anywhere) {
  if (is_output_loop(taken)) return substitute(value, anywhere);
  NodeMap<UOp> sums;
  std::vector<UOp> held;
  for (const UOp& u : toposort(value)) {
    if (!u.is(Op::REDUCE) || !closes(u, taken)) continue;
    UOps sources{substitute(u.src(0), anywhere)};
    for (const UOp& r : closed_ranges(u)) sources.push_back(r == taken ? own : r);
    held.push_back(u.with_src(sources));
    sums[u] = held.back();
  }
  return substitute(value, sums);
}

}  // namespace

bool reads(const UOp& nest, const UOp& memory) {
  return std::ranges::any_of(toposort(nest), [&](const UOp& u) { return u.is(Op::LOAD) && u.src(0).src(0) == memory; });
}

int64_t elements(const UOp& memory) { return const_value(memory.src(0))->as_int(); }

int64_t size_of(const UOp& range) {
  const Scalar* n = const_value(range.src(0));
  return n ? n->as_int() : 0;
}

bool is_output_loop(const UOp& range) { return range.arg_as<RangeArg>().kind == AxisKind::loop; }

bool moves_by_parts(const UOp& at, const UOp& memory, const UOp& range) {
  const int64_t n = size_of(range);
  if (elements(memory) % n != 0) return false;
  const int64_t part = elements(memory) / n;
  std::optional<symbolic::Linear> rest = symbolic::linear(symbolic::simplify_index(at));
  if (!rest) return false;
  const auto own = std::ranges::find(rest->terms, range, &symbolic::Term::node);
  if (own == rest->terms.end() || own->factor != part) return false;
  own->factor = 0;
  rest->drop_zeros();
  const auto moves = [&](const symbolic::Term& t) { return is_open_over(t.node, std::span(&range, 1)); };
  if (std::ranges::any_of(rest->terms, moves)) return false;
  const symbolic::Bounds b = rest->bounds();
  return b.has_min() && b.has_max() && b.min >= 0 && b.max < part;
}

std::vector<UOp> sums_over(const UOp& nest, const UOp& range) {
  const auto is_known = [](const UOp& r) { return size_of(r) > 0; };
  if (!std::ranges::all_of(loops_of(nest), is_known)) return {};
  std::vector<UOp> sums;
  for (const UOp& s : stores_of(nest)) {
    const size_t before = sums.size();
    for (const UOp& u : toposort(stored_value(s))) {
      if (!u.is(Op::REDUCE) || !closes(u, range)) continue;
      if (u.arg_as<ReduceArg>().op != Op::ADD || !std::ranges::all_of(ranges_of(u), is_output_loop)) return {};
      if (std::ranges::find(sums, u) == sums.end()) sums.push_back(u);
    }
    if (sums.size() == before) return {};
  }
  return sums;
}

UOp in_loop(const UOp& nest, const UOp& taken, const UOp& loop, int64_t at_once, const NodeMap<UOp>& parts) {
  const UOp own = at_once == 1 ? index_const(0) : range(index_const(at_once), taken.arg_as<RangeArg>());
  NodeMap<UOp> in_part, anywhere, accesses;
  in_part[taken] = own;
  anywhere[taken] = at_once == 1 ? loop : loop * at_once + own;
  const auto place = [&](const UOp& at, const UOp* part) { return symbolic::simplify_index(substitute(at, part ? in_part : anywhere)); };
  std::vector<UOp> held;
  for (const UOp& u : toposort(nest)) {
    const UOp* part = u.is(Op::INDEX) ? parts.find(u.src(0)) : nullptr;
    if (!part) continue;
    UOps sources{*part, place(u.src(1), part)};
    if (u.src_count() > 2) sources.push_back(substitute(u.src(2), anywhere));
    held.push_back(u.with_src(sources));
    accesses[u] = held.back();
  }
  const auto moved = [&](const UOp& value) { return replaced(substitute(value, accesses), taken, own, anywhere); };
  std::vector<UOp> loops, stores;
  for (const UOp& r : loops_of(nest))
    if (r != taken)
      loops.push_back(r);
    else if (at_once > 1)
      loops.push_back(own);
  for (const UOp& s : stores_of(nest)) {
    const UOp* part = parts.find(stored_to(s));
    stores.push_back(stored(part ? *part : stored_to(s), place(stored_at(s), part), moved(stored_value(s))));
  }
  return nest_of(stores, loops);
}

}  // namespace tinygrad::schedule
