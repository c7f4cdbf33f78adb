#pragma once
/// What reductions need to know of their op.

#include <span>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// The body of a FUNCTION with its PARAM slots replaced by the arguments.
UOp inline_function(const UOp& function, std::span<const UOp> arguments);

/// Two partial results of a REDUCE as one: one value for an ALU op, all that are carried for the general form.
UOps merge_partials(const UOp& reduce, std::span<const UOp> a, std::span<const UOp> b);

/// The carried values after one step that takes `x`.
UOps reduce_step(const UOp& reduce, std::span<const UOp> carried, std::span<const UOp> x);

/// The values that a REDUCE combines, and their identities: one each for an ALU op.
UOps reduced_values(const UOp& reduce);
UOps reduce_identities(const UOp& reduce);

/// A REDUCE of the same kind over other values and ranges.
UOp make_reduce(const UOp& like, std::span<const UOp> values, std::span<const UOp> ranges);

/// The carried values of a REDUCE, as nodes: the REDUCE itself, or its elements.
UOps reduce_results(const UOp& reduce);

/// A REDUCE over `ranges` of what `like` carries: partial results are merged.
UOps reduce_partials(const UOp& like, std::span<const UOp> partials, std::span<const UOp> ranges);

}  // namespace tinygrad::codegen
