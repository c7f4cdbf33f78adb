#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The longest stride, in elements, at which one access covers all lanes and the elements between them.
inline constexpr int64_t most_apart = 4;

/// Replaces ranges of kind lane by the vector of their values: what depends on one gets the shape (n). A LOAD or STORE at consecutive
/// elements becomes one access of width n, one that all lanes share is made once, and any other is one access per lane. Accesses of every
/// second to fourth element are one access of the run that they lie in: LOADs where vectors compute and may begin anywhere, STOREs where
/// they fill it. A REDUCE over lanes becomes a tree of half vectors. Scalars that meet vectors are expanded.
UOp vectorize_lanes(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
