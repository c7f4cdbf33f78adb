#pragma once
/// Values made from nothing. They are constants and index arithmetic: no memory until realized. ctx.device says where they live.

#include <optional>

#include "ops/operand.h"

namespace tinygrad::ops {

/// The dtype of indices into an axis of n elements: `dtype`, or int64 where that does not count so far.
DType index_dtype(const SInt& n, DType dtype = DType::int32);
/// The numbers 0 .. n-1 in an integer dtype.
UOp iota(const SInt& n, DType dtype = DType::int32, const OpsContext& ctx = {});
/// iota along one axis of a shape with `rank` axes, the others of size 1.
UOp iota_along(int axis, size_t rank, const SInt& n, DType dtype = DType::int32, const OpsContext& ctx = {});

/// One value everywhere. Its dtype is by default that of the value's kind (bool, default int, int64 where that does not hold it, default
/// float). ValueError for a number that a given dtype does not hold.
UOp full(const Shape& shape, const Operand& value, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
UOp zeros(const Shape& shape, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
UOp ones(const Shape& shape, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
/// A tensor of the shape, dtype and device of `x`.
UOp full_like(const UOp& x, const Operand& value, std::optional<DType> dtype = {});
UOp zeros_like(const UOp& x, std::optional<DType> dtype = {});
UOp ones_like(const UOp& x, std::optional<DType> dtype = {});

/// start, start + step, ... before stop. Of the default int if all three are integers (int64 where it does not hold them), else of the
/// default float. ValueError for a step of 0 or values the dtype does not hold.
UOp arange(const Scalar& start, const Scalar& stop, const Scalar& step, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
UOp arange(const SInt& stop, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
UOp arange(const SInt& start, const SInt& stop, int64_t step, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
UOp linspace(double start, double stop, int64_t steps, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
/// Ones on the diagonal of an n by m matrix.
UOp eye(const SInt& n, std::optional<SInt> m = {}, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
/// Zero below (above) the given diagonal of the last two axes.
UOp triu(const UOp& x, const SInt& diagonal = 0);
UOp tril(const UOp& x, const SInt& diagonal = 0);

}  // namespace tinygrad::ops
