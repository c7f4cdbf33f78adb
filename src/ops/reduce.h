#pragma once
/// Reductions over axes, and what is made of them: softmax, running sums, sorting.

#include <initializer_list>
#include <optional>

#include "ops/operand.h"

namespace tinygrad::ops {

/// Axes to reduce: one, several, or (the default) all.
class ReduceAxes {
 public:
  ReduceAxes() = default;
  ReduceAxes(int axis) : axes_(Axes{axis}) {}
  ReduceAxes(std::initializer_list<int> axes) : axes_(Axes(axes)) {}
  ReduceAxes(Axes axes) : axes_(std::move(axes)) {}
  /// The axes from the start, in order; IndexError naming `op`.
  Axes resolve(std::string_view op, size_t rank) const;

 private:
  std::optional<Axes> axes_;
};

/// The dtype of sums and products: that of floats and uint64, int64 for other integers and bools, as PyTorch's: their own would overflow
/// soon.
DType total_dtype(DType d);
/// Sums and products of integers and bools are int64 (of uint64: uint64); narrow floats are summed in float32 and rounded once. With
/// `dtype`, in that dtype, where integers wrap.
UOp sum(const UOp& x, const ReduceAxes& axes = {}, bool keepdim = false, std::optional<DType> dtype = {});
UOp prod(const UOp& x, const ReduceAxes& axes = {}, bool keepdim = false, std::optional<DType> dtype = {});
/// For how many elements a mask holds: int32, or int64 where that may be too many.
UOp count(const UOp& mask, const ReduceAxes& axes = {}, bool keepdim = false);
UOp max(const UOp& x, const ReduceAxes& axes = {}, bool keepdim = false);
UOp min(const UOp& x, const ReduceAxes& axes = {}, bool keepdim = false);
/// The axes of a reduction that users ask for and that is of one of the elements; ValueError if there are none.
Axes not_empty_axes(std::string_view op, const UOp& x, const ReduceAxes& axes);
UOp any(const UOp& x, const ReduceAxes& axes = {}, bool keepdim = false);
UOp all(const UOp& x, const ReduceAxes& axes = {}, bool keepdim = false);
/// Means of integers and bools are float32, as are the following.
UOp mean(const UOp& x, const ReduceAxes& axes = {}, bool keepdim = false);
/// The variance over n - correction; infinite or NaN where that is not positive. The gradient of std_dev() where it is 0 is 0.
UOp var(const UOp& x, const ReduceAxes& axes = {}, bool keepdim = false, int64_t correction = 1);
UOp std_dev(const UOp& x, const ReduceAxes& axes = {}, bool keepdim = false, int64_t correction = 1);
/// The first index of the greatest (least) element; without an axis, in the flattened value. Indices, here and below, are int32, or int64
/// where an axis is longer than that counts.
UOp argmax(const UOp& x, std::optional<int> axis = {}, bool keepdim = false);
UOp argmin(const UOp& x, std::optional<int> axis = {}, bool keepdim = false);
UOp logsumexp(const UOp& x, const ReduceAxes& axes = {}, bool keepdim = false, const OpsContext& ctx = {});
/// x divided by its p-norm over the axis, at least `eps`. A norm of 0 has the gradient 0.
UOp normalize(const UOp& x, double p = 2.0, int axis = 1, double eps = 1e-12, const OpsContext& ctx = {});
UOp allclose(const UOp& a, const UOp& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);

/// exp(x) over its sum, in `dtype` (by default that of x).
UOp softmax(const UOp& x, const ReduceAxes& axes = -1, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
UOp log_softmax(const UOp& x, const ReduceAxes& axes = -1, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
/// softmax(x, -1) of floats, and 0, with a gradient of 0, in rows that are all -inf.
UOp masked_softmax(const UOp& x);
UOp softmin(const UOp& x, const ReduceAxes& axes = -1, std::optional<DType> dtype = {}, const OpsContext& ctx = {});

// Running reductions: element i combines elements 0 ... i of the axis.
/// Integers give the dtype that sum() and prod() have of them, or `dtype`.
UOp cumsum(const UOp& x, int axis = 0, std::optional<DType> dtype = {});
UOp cumprod(const UOp& x, int axis = 0);
struct ValuesAndIndices {
  UOp values;
  UOp indices;
};
/// The running maximum (minimum) and the last index where it was reached.
ValuesAndIndices cummax(const UOp& x, int axis = 0);
ValuesAndIndices cummin(const UOp& x, int axis = 0);
UOp logcumsumexp(const UOp& x, int axis = 0, const OpsContext& ctx = {});

/// Stable, NaN greatest; the indices are of the default int, or int64. Up to 1024 elements (and where their number is not known) each
/// element's place is counted: n^2 comparisons in two kernels. More go through a bitonic network: n * log2(n)^2 / 4 in about log2(n)^2 / 5
/// kernels, twice that for 64-bit dtypes.
ValuesAndIndices sort(const UOp& x, int axis = -1, bool descending = false, const OpsContext& ctx = {});
UOp argsort(const UOp& x, int axis = -1, bool descending = false, const OpsContext& ctx = {});
/// The k greatest (least), in order.
ValuesAndIndices topk(const UOp& x, int64_t k, int axis = -1, bool largest = true, const OpsContext& ctx = {});

}  // namespace tinygrad::ops
