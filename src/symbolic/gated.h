#pragma once
/// Index expressions that are used only where a condition holds.

#include <vector>

#include "uop/uop.h"

namespace tinygrad::symbolic {

struct Gated {
  UOp index, valid;
};

/// Another index, equal to this one wherever `valid` holds, that costs less; and the condition without what its other parts imply. Both in
/// normal form. Where the condition does not hold the index may be anything.
Gated simplify_gated(const UOp& index, const UOp& valid);

/// The parts of a condition that all must hold.
std::vector<UOp> clauses_of(const UOp& valid);

/// Whether an index is known to be less than 0, or not less than `size`, wherever the clause does not hold.
bool is_outside_unless(const UOp& index, int64_t size, const UOp& clause);

}  // namespace tinygrad::symbolic
