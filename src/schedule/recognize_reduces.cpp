#include "schedule/recognize_reduces.h"

#include <algorithm>

#include "schedule/select.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

bool is_of_places_only(const UOp& condition) {
  const std::vector<UOp> nodes = toposort(condition);
  return std::none_of(nodes.begin(), nodes.end(), [](const UOp& u) { return u.is(Op::LOAD) || u.is(Op::REDUCE); });
}

UOp ReduceWriter::written(int kernel, const UOp& u, std::span<const UOp> given, const UOp& x) {
  UOps ranges;
  for (const UOp& r : given)
    if (r.is(Op::RANGE)) ranges.push_back(r);
  const bool general = u.src_count() > 1;  // identity, step and merge follow
  const Op op = u.arg_as<ReduceArg>().op;
  if (ranges.empty() && !general) return x;
  if (ranges.size() == 1 && op == Op::ADD)
    if (const UOp one = selected(x, ranges[0])) return one;
  UOps sources{x};
  for (size_t i = 1; i < u.src_count(); ++i) sources.push_back(u.src(i));
  sources.append(ranges.begin(), ranges.end());
  return nested_sum(kernel, UOp(Op::REDUCE, u.dtype(), sources, ReduceArg{op, {}}));
}

/// A sum of sums, each perhaps padded with zeros, is one sum over all their ranges; over ranges of its own, as others may be summed over
/// only some of them.
UOp ReduceWriter::nested_sum(int kernel, const UOp& outer) {
  const UOp& x = outer.src(0);
  if (outer.arg_as<ReduceArg>().op != Op::ADD || is_general_reduce(outer)) return outer;
  const bool gated = x.is(Op::WHERE) && is_const(x.src(2), 0) && is_of_places_only(x.src(0));
  const UOp& inner = gated ? x.src(1) : x;
  if (!inner.is(Op::REDUCE) || inner.arg_as<ReduceArg>().op != Op::ADD || inner.dtype() != x.dtype()) return outer;
  UOps closed(closed_ranges(outer));
  const std::span<const UOp> below = closed_ranges(inner);
  closed.append(below.begin(), below.end());
  UOps sources{index_const(kernel)};
  sources.append(closed.begin(), closed.end());
  const UOp key(Op::TUPLE, DType::void_, sources);
  UOps* own = own_ranges_.find(key);
  if (!own) {
    held_.push_back(key);
    UOps made;
    for (const UOp& r : closed) made.push_back(loops_.open(kernel, SInt(r.src(0)), AxisKind::reduce, {}));
    own = &(own_ranges_[key] = made);
  }
  NodeMap<UOp> to_own;
  for (size_t i = 0; i < closed.size(); ++i) to_own[closed[i]] = (*own)[i];
  sources = {substitute(gated ? where(x.src(0), inner.src(0), x.src(2)) : inner.src(0), to_own)};
  sources.append(own->begin(), own->end());
  return UOp(Op::REDUCE, outer.dtype(), sources, outer.arg());
}

}  // namespace tinygrad::schedule
