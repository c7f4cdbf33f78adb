#pragma once
#include <vector>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

/// The memory under a chain of movement ops and AFTERs: its PARAM; null for a computed value.
UOp memory_of(const UOp& view);

/// The state of memory that a view reads: the innermost AFTER on the way to the PARAM, or the PARAM itself.
UOp state_of(const UOp& view);

/// The stores of a graph and the states they replace.
class Effects {
 public:
  explicit Effects(const std::vector<UOp>& order);

  /// STORE nodes in walking order.
  const std::vector<UOp>& stores() const { return stores_; }
  /// The stores that write over a state (a PARAM or an AFTER); empty if it lasts.
  const std::vector<int>& replaced_by(const UOp& state) const;
  /// Number of a STORE in stores().
  int number(const UOp& store) const { return *numbers_.find(store); }

  /// Values that must be computed into memory of their own, before a later state of something they read comes to be: the nodes that read a
  /// state and have a user that needs a store which replaces it.
  std::vector<UOp> hazards(const std::vector<UOp>& order) const;

 private:
  std::vector<UOp> stores_;
  NodeMap<int> numbers_;
  NodeMap<std::vector<int>> replaced_by_;
};

}  // namespace tinygrad::schedule
