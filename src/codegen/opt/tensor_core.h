#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The kernel with a sum of products over a range made by a tensor core of the target (see TC in apply_opts.h). The core's work-items
/// become a local axis, the elements that each holds an upcast axis. ValueError where no sum of products has the core's dtypes.
UOp apply_tensor_core(const UOp& sink, const Opt& opt, const Target& target);

bool has_tensor_core(const UOp& sink);

}  // namespace tinygrad::codegen
