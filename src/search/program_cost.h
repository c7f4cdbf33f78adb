#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::search {

/// What can be told of a linear program without compiling it.
struct ProgramCost {
  /// How much it executes: vector operations and accesses, by the loops around them. It knows nothing of caches: good for telling what is
  /// not worth compiling, not for choosing.
  double run = 0;
  /// Instructions of the machine, roughly: what compiling it costs.
  double size = 0;
};
ProgramCost program_cost(const UOp& linear, const Target& target);

}  // namespace tinygrad::search
