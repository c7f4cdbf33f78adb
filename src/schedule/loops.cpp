#include "schedule/loops.h"

#include <algorithm>
#include <utility>

#include "shape/ranges.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::schedule {

UOp Loops::open(int kernel, const SInt& given, AxisKind kind, Ids around) {
  const SInt size = given.known() ? given : SInt(symbolic::simplify_index(given.uop()));  // as it will be in index expressions
  if (size.known() && size.value() == 1) return index_const(0);
  if (numbers_.size() <= size_t(kernel)) numbers_.resize(size_t(kernel) + 1);
  std::vector<size_t>& numbers = numbers_[size_t(kernel)];
  const int id = int(numbers.size());
  around.push_back(id);
  numbers.push_back(all_.size());
  all_.push_back({.size = double(std::max<int64_t>(size.max(), 1)),
                  .reduces = kind == AxisKind::reduce,
                  .around = std::move(around),
                  .range = range(size.uop(), {.id = id, .kind = kind})});
  return all_.back().range;
}

void Loops::add_around(int kernel, const UOp& expression, Ids& ids) const {
  for (const UOp& r : ranges_of(expression))
    for (int id : of(kernel, r).around) ids.push_back(id);
}

NodeMap<UOp> Loops::with_own_ids(int kernel) const {
  NodeMap<UOp> out;
  if (size_t(kernel) >= numbers_.size()) return out;
  for (const size_t n : numbers_[size_t(kernel)]) {
    const UOp& local = all_[n].range;
    RangeArg arg = local.arg_as<RangeArg>();
    arg.id = int32_t(n);
    out[local] = local.with_arg(arg);
  }
  return out;
}

}  // namespace tinygrad::schedule
