#include "schedule/loops.h"

#include <algorithm>
#include <utility>

#include "shape/ranges.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::schedule {

UOp Loops::open(const SInt& given, AxisKind kind, Ids around) {
  const SInt size = given.known() ? given : SInt(symbolic::simplify_index(given.uop()));  // as it will be in index expressions
  if (size.known() && size.value() == 1) return index_const(0);
  const int id = int(all_.size());
  around.push_back(id);
  all_.push_back({.size = double(std::max<int64_t>(size.max(), 1)), .reduces = kind == AxisKind::reduce, .around = std::move(around)});
  return range(size.uop(), {.id = id, .kind = kind});
}

void Loops::add_around(const UOp& expression, Ids& ids) const {
  for (const UOp& r : ranges_of(expression))
    for (int id : of(r).around) ids.push_back(id);
}

}  // namespace tinygrad::schedule
