#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// A REDUCE over ranges of kind group becomes one over what the work-items have reduced: their partial results are a STAGE of group scope,
/// which each of them then reads. No REDUCE closes such a range afterwards.
UOp group_reduces(const UOp& sink);

}  // namespace tinygrad::codegen
