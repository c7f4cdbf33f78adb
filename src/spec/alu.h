#pragma once
/// ALU ops on arrays, each element as dtype/scalar_ops.h defines it.

#include <span>

#include "spec/value.h"

namespace tinygrad::spec {

/// The op on one element.
Scalar alu_element(Op op, std::span<const Scalar> sources);
/// The op on every element of the sources' common frame; `out` is the dtype of the result.
Value alu_values(Op op, DType out, std::span<const Value> sources);
Value cast_value(const Value& x, DType to);
/// The bytes read as another dtype of the same size.
Value bitcast_value(const Value& x, DType to);

/// What a REDUCE of an ALU op starts from.
Scalar reduce_identity(Op op, DType dtype);
/// Combines x over `closed` (axes in the order they run, missing ones repeat x `closed_sizes` times) and over the axes of its shape in
/// `axes`. The largest magnitude of a partial result goes to `*peak` if that is given (float64 only).
Value reduce_value(Op op, const Value& x, const AxisIds& closed, std::span<const int64_t> closed_sizes, const Axes& axes, double* peak);

}  // namespace tinygrad::spec
