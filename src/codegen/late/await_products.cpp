#include "codegen/late/await_products.h"

#include <algorithm>

#include "uop/build.h"
#include "uop/node_map.h"

namespace tinygrad::codegen {

namespace {

bool names_lanes(const UOp& u) { return u.is(Op::INDEX) || u.is(Op::STACK) || u.is(Op::SHRINK); }

/// Instructions after which another path may run, or other work-items go on.
bool ends_straight_line(const UOp& u) { return u.is(Op::RANGE) || u.is(Op::END) || u.is(Op::IF) || u.is(Op::ENDIF) || u.is(Op::BARRIER); }

/// The sources of the others only order them.
bool takes_values(const UOp& u) { return !ends_straight_line(u) && !u.is(Op::COMMIT) && !u.is(Op::WAIT); }

class Waits {
 public:
  explicit Waits(const UOp& linear) : linear_(linear) {
    for (const UOp& u : linear.src())
      if (takes_values(u))
        for (const UOp& s : u.src()) ++users_[s];
  }

  UOp add() {
    UOps out;
    for (const UOp& u : linear_.src()) {
      if (needs_wait(u)) {
        out.push_back(UOp(Op::WMMA_WAIT, DType::void_, products_));
        under_way_ = NodeSet();
        products_.clear();
      }
      if (is_asynchronous(u))
        begin(u);
      else if (names_lanes(u) && takes_from_under_way(u))
        under_way_.insert(u);
      out.push_back(u);
    }
    return linear_.with_src(out);
  }

 private:
  bool needs_wait(const UOp& u) const {
    if (products_.empty()) return false;
    return ends_straight_line(u) || (takes_values(u) && !names_lanes(u) && !goes_on(u) && takes_from_under_way(u));
  }
  bool takes_from_under_way(const UOp& u) const {
    return std::ranges::any_of(u.src(), [&](const UOp& s) { return under_way_.contains(s); });
  }
  /// True for a product that adds to sums which are under way and which nothing else takes.
  bool goes_on(const UOp& u) const {
    return is_asynchronous(u) && u.src(2).is(Op::WMMA) && under_way_.contains(u.src(2)) && *users_.find(u.src(2)) == 1;
  }

  void begin(const UOp& product) {
    if (goes_on(product))
      *std::ranges::find(products_, product.src(2)) = product;
    else
      products_.push_back(product);
    under_way_.insert(product);
  }

  const UOp& linear_;
  NodeMap<int> users_;
  UOps products_;      ///< under way, each the last of those that add to the same sums
  NodeSet under_way_;  ///< all of them, and nodes that only name lanes of their sums
};

}  // namespace

UOp await_products(const UOp& linear) {
  const auto has = [&](auto&& is) { return std::ranges::any_of(linear.src(), is); };
  return has(is_asynchronous) && !has([](const UOp& u) { return u.is(Op::WMMA_WAIT); }) ? Waits(linear).add() : linear;
}

}  // namespace tinygrad::codegen
