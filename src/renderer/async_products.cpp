#include "renderer/async_products.h"

#include <algorithm>

#include "uop/arg.h"

namespace tinygrad::renderer {
namespace {

bool names_lanes(const UOp& u) { return u.is(Op::INDEX) || u.is(Op::STACK) || u.is(Op::SHRINK); }

/// Instructions after which another path may run, or other work-items go on.
bool ends_straight_line(const UOp& u) { return u.is(Op::RANGE) || u.is(Op::END) || u.is(Op::IF) || u.is(Op::ENDIF) || u.is(Op::BARRIER); }

/// Instructions whose sources only order them.
bool takes_values(const UOp& u) { return !ends_straight_line(u) && !u.is(Op::COMMIT) && !u.is(Op::WAIT); }

}  // namespace

AsyncProducts::AsyncProducts(const UOp& linear) {
  for (const UOp& u : linear.src()) {
    any_ |= u.is(Op::WMMA) && core_of(u) != nullptr;
    if (takes_values(u))
      for (const UOp& s : u.src()) ++users_[s];
  }
}

const TensorCore* AsyncProducts::core_of(const UOp& wmma) {
  const TensorCore* core = find_tensor_core(wmma.arg_as<WmmaArg>().name);
  return core && core->b.in_memory ? core : nullptr;
}

bool AsyncProducts::must_wait(const UOp& u) {
  if (!any_) return false;
  const bool waits = needs(u);
  if (waits) under_way_ = NodeSet();
  if (u.is(Op::WMMA) ? core_of(u) != nullptr : names_lanes(u) && takes_from_under_way(u)) under_way_.insert(u);
  return waits;
}

bool AsyncProducts::needs(const UOp& u) const {
  if (under_way_.size() == 0) return false;
  if (ends_straight_line(u)) return true;
  return takes_values(u) && !names_lanes(u) && !goes_on(u) && takes_from_under_way(u);
}

bool AsyncProducts::takes_from_under_way(const UOp& u) const {
  return std::ranges::any_of(u.src(), [&](const UOp& s) { return under_way_.contains(s); });
}

bool AsyncProducts::goes_on(const UOp& wmma) const {
  if (!wmma.is(Op::WMMA) || !core_of(wmma)) return false;
  const UOp& sum = wmma.src(2);
  return sum.is(Op::WMMA) && under_way_.contains(sum) && *users_.find(sum) == 1;
}

}  // namespace tinygrad::renderer
