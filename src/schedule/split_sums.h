#pragma once
#include "uop/uop.h"

namespace tinygrad::schedule {

/// Takes the sum over axes of many products apart, each of which has more elements than its factors, such as what all steps of a loop add
/// to the gradient of one weight: a few of them at a time are summed up, and added to what is there. The products could not be stored, so
/// one kernel would have all of them; now equal steps give equal kernels.
UOp split_sums(const UOp& sink);

}  // namespace tinygrad::schedule
