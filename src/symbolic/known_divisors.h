#pragma once
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::symbolic {

/// Powers of two that divide integer expressions whatever their variables are; wrapping around in the dtype does not change them.
class KnownDivisors {
 public:
  static constexpr int most_power = 62;  ///< of zero, which everything divides

  /// n if 2^n is the largest that is known.
  int power_of_two(const UOp& u);

 private:
  int compute(const UOp& u) const;

  std::vector<UOp> held_;
  NodeMap<int> power_;
};

}  // namespace tinygrad::symbolic
