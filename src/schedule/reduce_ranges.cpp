#include "schedule/reduce_ranges.h"

#include <algorithm>

#include "shape/ranges.h"
#include "shape/shape.h"
#include "uop/build.h"

namespace tinygrad::schedule {

UOp ReduceRanges::joined_key(const UOp& reduce, const UOp* max, const Use& use) {
  if (!max) return {};
  UOps key{index_const(use.kernel), *max};
  for (int a : reduce.arg_as<ReduceArg>().axes) key.push_back(shape_of(reduce.src(0))[size_t(a)].uop());
  return held_.emplace_back(Op::TUPLE, DType::void_, key);
}

const UOps* ReduceRanges::joined(const UOp& reduce, const UOp* max, const Use& use, Around around) {
  const UOp key = joined_key(reduce, max, use);
  const UOps* made = key ? joined_.find(key) : nullptr;
  if (!made || (use.place.valid && is_open_over(use.place.valid, *made))) return nullptr;
  const Loops::Ids outside = around();
  const auto is_inside = [&](const UOp& r) { return r.is(Op::RANGE) && std::ranges::binary_search(outside, Loops::id(r)); };
  return std::ranges::any_of(*made, is_inside) ? nullptr : made;
}

UOps ReduceRanges::at(const UOp& reduce, const UOp* max, int depth, const Shape& shape, const Use& use, Around around) {
  if (const UOps* made = joined(reduce, max, use, around)) return *made;
  const UOps out = own(reduce, depth, shape, use, around);
  if (const UOp key = joined_key(reduce, max, use); key && !joined_.contains(key)) {
    joined_[key] = out;
    for (const UOp& r : out)
      if (r.is(Op::RANGE)) loops_.of(use.kernel, r).max = max;
  }
  return out;
}

UOps ReduceRanges::own(const UOp& reduce, int depth, const Shape& shape, const Use& use, Around around) {
  const Axes& axes = reduce.arg_as<ReduceArg>().axes;
  UOps key{index_const(use.kernel), index_const(depth), use.place.valid ? use.place.valid : bool_const(true)};
  for (const UOp& e : use.place.at) key.push_back(e);
  for (int a : axes) key.push_back(shape[size_t(a)].uop());
  const UOp k(Op::TUPLE, DType::void_, key);
  if (const UOps* shared = own_.find(k)) return *shared;
  held_.push_back(k);
  Loops::Ids outer = around();
  UOps out;
  for (int a : axes) {
    out.push_back(loops_.open(use.kernel, shape[size_t(a)], AxisKind::reduce, outer));
    if (out.back().is(Op::RANGE)) outer.push_back(Loops::id(out.back()));
  }
  own_[k] = out;
  return out;
}

}  // namespace tinygrad::schedule
