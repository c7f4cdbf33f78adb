// Operators that combine the elements along axes.
#include <numeric>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

/// The axes that a node reduces; nothing where it reduces none.
std::optional<std::vector<int>> reduced_axes(const Call& c, int64_t axes_input_since) {
  std::vector<int64_t> axes;
  if (c.version() < axes_input_since)
    axes = c.attribute("axes", axes);
  else if (c.has(1))
    axes = c.integers(1);
  const size_t rank = c.rank(0);
  if (axes.empty() && c.flag("noop_with_empty_axes")) return {};
  if (axes.empty()) {
    std::vector<int> all(rank);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  return normal_axes(c, axes, rank);
}

Sizes reduced_shape(const Sizes& shape, const std::vector<int>& axes, bool keepdim) {
  Sizes out;
  for (int i = 0; i < int(shape.size()); ++i) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!is_reduced) out.push_back(shape[size_t(i)]);
    if (is_reduced && keepdim) out.push_back(1);
  }
  return out;
}

using Reduction = Tensor (*)(const Tensor& x, const std::vector<int>& axes, bool keepdim);
using Map = Tensor (*)(const Tensor& x);

Tensor same(const Tensor& x) { return x; }
Tensor square(const Tensor& x) { return x * x; }
Tensor absolute(const Tensor& x) { return x.abs(); }
Tensor logarithm(const Tensor& x) { return x.log(); }
Tensor root(const Tensor& x) { return x.sqrt(); }

Tensor sum_of(const Tensor& x, const std::vector<int>& axes, bool keepdim) {
  return x.sum(axes, {.keepdim = keepdim, .dtype = {}}).cast(x.dtype());
}
Tensor product_of(const Tensor& x, const std::vector<int>& axes, bool keepdim) {
  return x.prod(axes, {.keepdim = keepdim, .dtype = {}}).cast(x.dtype());
}
Tensor mean_of(const Tensor& x, const std::vector<int>& axes, bool keepdim) {
  return x.mean(axes, {.keepdim = keepdim, .dtype = {}}).cast(x.dtype());
}
Tensor log_sum_exp_of(const Tensor& x, const std::vector<int>& axes, bool keepdim) {
  if (x.numel() == 0) return x.exp().sum(axes, {.keepdim = keepdim, .dtype = {}}).log();
  return x.logsumexp(axes, {.keepdim = keepdim, .dtype = {}}).cast(x.dtype());
}
/// Of no elements it is what is least (greatest) in the dtype.
template <bool greatest>
Tensor extreme_of(const Tensor& x, const std::vector<int>& axes, bool keepdim) {
  if (x.dtype() == DType::bool_)
    return greatest ? x.any(axes, {.keepdim = keepdim, .dtype = {}}) : x.all(axes, {.keepdim = keepdim, .dtype = {}});
  if (x.numel() == 0) {
    const Sizes shape = reduced_shape(x.shape(), axes, keepdim);
    const double infinity = std::numeric_limits<double>::infinity();
    if (x.is_floating_point()) return Tensor::full(shape, greatest ? -infinity : infinity, {.dtype = x.dtype()});
    const auto [least, most] = integer_range(element_type_of(x.dtype()));
    return Tensor::full(shape, greatest ? least : most, {.dtype = x.dtype()});
  }
  const ReduceOptions options{.keepdim = keepdim, .dtype = {}};
  return greatest ? x.max(axes, options) : x.min(axes, options);
}

template <Map before, Reduction reduction, Map after, int64_t axes_input_since>
Results reduce(Call& c) {
  const std::optional<std::vector<int>> axes = reduced_axes(c, axes_input_since);
  const Tensor x = before(c.tensor(0));
  if (!axes) return results(after(x).cast(c.tensor(0).dtype()));
  // Of a scalar there is nothing to reduce.
  if (axes->empty()) return results(after(reduction(x.reshape({1}), {0}, false)).cast(x.dtype()));
  return results(after(reduction(x, *axes, c.flag("keepdims", true))).cast(x.dtype()));
}

template <bool greatest>
Results extreme_index(Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = normal_axis(c, c.attribute("axis", 0), size_t(x.ndim()));
  const bool takes_last = c.flag("select_last_index");
  const Tensor from = takes_last ? x.flip(axis) : x;
  const ReduceOptions options{.keepdim = c.flag("keepdims", true), .dtype = {}};
  Tensor index = (greatest ? from.argmax(axis, options) : from.argmin(axis, options)).cast(DType::int64);
  if (takes_last) index = (x.size(axis) - 1) - index;
  return results(index);
}

template <bool is_product>
Results running(Call& c) {
  Tensor x = c.tensor(0);
  const int axis = normal_axis(c, c.integer(1), size_t(x.ndim()));
  const bool reversed = c.flag("reverse");
  if (reversed) x = x.flip(axis);
  if (c.flag("exclusive") && x.size(axis) > 0) {
    std::vector<std::pair<int64_t, int64_t>> amounts(size_t(x.ndim()), {0, 0});
    amounts[size_t(axis)] = {1, -1};
    x = x.pad(amounts, is_product ? 1 : 0);
  }
  Tensor out = (is_product ? x.cumprod(axis) : x.cumsum(axis)).cast(x.dtype());
  return results(reversed ? out.flip(axis) : out);
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "ArgMax", 1, extreme_index<true>},
    {onnx_domain, "ArgMin", 1, extreme_index<false>},
    {onnx_domain, "CumProd", 26, running<true>},
    {onnx_domain, "CumSum", 11, running<false>},
    {onnx_domain, "ReduceL1", 1, reduce<absolute, sum_of, same, 18>},
    {onnx_domain, "ReduceL2", 1, reduce<square, sum_of, root, 18>},
    {onnx_domain, "ReduceLogSum", 1, reduce<same, sum_of, logarithm, 18>},
    {onnx_domain, "ReduceLogSumExp", 1, reduce<same, log_sum_exp_of, same, 18>},
    {onnx_domain, "ReduceMax", 1, reduce<same, extreme_of<true>, same, 18>},
    {onnx_domain, "ReduceMean", 1, reduce<same, mean_of, same, 18>},
    {onnx_domain, "ReduceMin", 1, reduce<same, extreme_of<false>, same, 18>},
    {onnx_domain, "ReduceProd", 1, reduce<same, product_of, same, 18>},
    {onnx_domain, "ReduceSum", 1, reduce<same, sum_of, same, 13>},
    {onnx_domain, "ReduceSumSquare", 1, reduce<square, sum_of, same, 18>},
};

}  // namespace

std::span<const OperatorRow> reduce_operators() { return rows; }

}  // namespace tinygrad::onnx
