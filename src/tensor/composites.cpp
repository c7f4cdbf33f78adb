// Reductions, products, decompositions, convolutions, normalizations and losses.
#include <concepts>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "base/options.h"
#include "device/device.h"
#include "dtype/visit.h"
#include "ops/hash.h"
#include "ops/linalg.h"
#include "ops/nn.h"
#include "ops/resize.h"
#include "tensor/handle.h"
#include "tensor/index_check.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

namespace tinygrad {

using namespace tensor;

namespace {
UOp node_or_null(const Tensor& t) { return t.defined() ? t.uop() : UOp(); }
ops::PerAxis per_axis(const Sizes& sizes) {
  return sizes.size() == 1 ? ops::PerAxis(sizes[0]) : ops::PerAxis(std::span<const int64_t>(sizes));
}
ValuesAndIndices wrap_both(const ops::ValuesAndIndices& both, const char* operation = __builtin_FUNCTION()) {
  return {wrap(both.values, operation), wrap(both.indices, operation)};
}
ops::PoolOptions to_pool(const PoolOptions& o) {
  ops::PoolOptions out{
      .kernel_size = std::span<const int64_t>(o.kernel_size), .ceil_mode = o.ceil_mode, .count_include_pad = o.count_include_pad};
  if (!o.stride.empty()) out.stride = per_axis(o.stride);
  out.dilation = per_axis(o.dilation);
  out.padding = per_axis(o.padding);
  return out;
}
/// Where it pays is measured on CPUs, and on NULL, which stands for one; GPUs have units for matrix products, and less memory. Outside of
/// training windows stay as they are, so jitted functions transform them once.
ops::Winograd winograd_on(std::string_view device) {
  const Options& options = current_options();
  switch (options.wino) {
    case 0: return ops::Winograd::never;
    case 2: return ops::Winograd::always;
    default: break;
  }
  if (!Device::get(named_devices(device).first().str()).target().has_threads) return ops::Winograd::never;
  return options.training ? ops::Winograd::where_it_pays : ops::Winograd::with_fixed_windows;
}

}  // namespace

Tensor Tensor::sum(const AxisList& axes, const ReduceOptions& o) const { return wrap(ops::sum(uop(), to_axes(axes), o.keepdim, o.dtype)); }
Tensor Tensor::prod(const AxisList& axes, const ReduceOptions& o) const {
  return wrap(ops::prod(uop(), to_axes(axes), o.keepdim, o.dtype));
}
Tensor Tensor::max(const AxisList& axes, const ReduceOptions& o) const {
  return wrap(ops::max(uop(), ops::not_empty_axes("max", uop(), to_axes(axes)), o.keepdim));
}
Tensor Tensor::min(const AxisList& axes, const ReduceOptions& o) const {
  return wrap(ops::min(uop(), ops::not_empty_axes("min", uop(), to_axes(axes)), o.keepdim));
}
Tensor Tensor::mean(const AxisList& axes, const ReduceOptions& o) const { return wrap(ops::mean(uop(), to_axes(axes), o.keepdim)); }
Tensor Tensor::any(const AxisList& axes, const ReduceOptions& o) const { return wrap(ops::any(uop(), to_axes(axes), o.keepdim)); }
Tensor Tensor::all(const AxisList& axes, const ReduceOptions& o) const { return wrap(ops::all(uop(), to_axes(axes), o.keepdim)); }
Tensor Tensor::var(const AxisList& axes, const VarOptions& o) const {
  return wrap(ops::var(uop(), to_axes(axes), o.keepdim, o.correction));
}
Tensor Tensor::std(const AxisList& axes, const VarOptions& o) const {
  return wrap(ops::std_dev(uop(), to_axes(axes), o.keepdim, o.correction));
}
std::pair<Tensor, Tensor> Tensor::var_mean(const AxisList& axes, const VarOptions& o) const {
  return {var(axes, o), mean(axes, {.keepdim = o.keepdim})};
}
std::pair<Tensor, Tensor> Tensor::std_mean(const AxisList& axes, const VarOptions& o) const {
  return {std(axes, o), mean(axes, {.keepdim = o.keepdim})};
}
Tensor Tensor::argmax(std::optional<int> axis, const ReduceOptions& o) const { return wrap(ops::argmax(uop(), axis, o.keepdim)); }
Tensor Tensor::argmin(std::optional<int> axis, const ReduceOptions& o) const { return wrap(ops::argmin(uop(), axis, o.keepdim)); }
Tensor Tensor::logsumexp(const AxisList& axes, const ReduceOptions& o) const {
  return wrap(ops::logsumexp(uop(), to_axes(axes), o.keepdim, context()));
}
Tensor Tensor::softmax(const AxisList& axes, std::optional<DType> dtype) const {
  return wrap(ops::softmax(uop(), to_axes(axes), dtype, context()));
}
Tensor Tensor::log_softmax(const AxisList& axes, std::optional<DType> dtype) const {
  return wrap(ops::log_softmax(uop(), to_axes(axes), dtype, context()));
}
Tensor Tensor::softmin(const AxisList& axes, std::optional<DType> dtype) const {
  return wrap(ops::softmin(uop(), to_axes(axes), dtype, context()));
}
Tensor Tensor::normalize(double p, int axis, double eps) const { return wrap(ops::normalize(uop(), p, axis, eps, context())); }

Tensor Tensor::cumsum(int axis) const { return wrap(ops::cumsum(uop(), axis)); }
Tensor Tensor::cumprod(int axis) const { return wrap(ops::cumprod(uop(), axis)); }
ValuesAndIndices Tensor::cummax(int axis) const { return wrap_both(ops::cummax(uop(), axis)); }
ValuesAndIndices Tensor::cummin(int axis) const { return wrap_both(ops::cummin(uop(), axis)); }
Tensor Tensor::logcumsumexp(int axis) const { return wrap(ops::logcumsumexp(uop(), axis, context())); }
ValuesAndIndices Tensor::sort(int axis, bool descending) const { return wrap_both(ops::sort(uop(), axis, descending, context())); }
Tensor Tensor::argsort(int axis, bool descending) const { return wrap(ops::argsort(uop(), axis, descending, context())); }
ValuesAndIndices Tensor::topk(int64_t k, int axis, bool largest) const { return wrap_both(ops::topk(uop(), k, axis, largest, context())); }
Tensor Tensor::allclose(const Tensor& x, const CloseOptions& o) const {
  return wrap(ops::allclose(uop(), x.uop(), o.rtol, o.atol, o.equal_nan));
}

Tensor Tensor::matmul(const Tensor& w, std::optional<DType> dtype) const { return wrap(ops::matmul(uop(), w.uop(), dtype)); }
Tensor Tensor::einsum(std::string_view formula, std::span<const Tensor> operands, std::optional<DType> dtype) {
  return wrap(ops::einsum(formula, to_nodes(operands), dtype));
}
QR Tensor::qr() const {
  const ops::QR parts = ops::qr(uop(), context());
  return {wrap(parts.q), wrap(parts.r)};
}
SVD Tensor::svd(bool full_matrices) const {
  const ops::SVD parts = ops::svd(uop(), full_matrices, context());
  return {wrap(parts.u), wrap(parts.s), wrap(parts.vt)};
}
Tensor Tensor::newton_schulz(int64_t steps, const std::vector<double>& params, double eps) const {
  return wrap(ops::newton_schulz(uop(), steps, params, eps, context()));
}
Tensor Tensor::keccak(int64_t rate, uint8_t suffix) const { return wrap(ops::keccak(uop(), ops::KeccakConfig::of(rate, suffix))); }
Tensor Tensor::keccak(std::string_view name) const { return wrap(ops::keccak(uop(), ops::KeccakConfig::named(name))); }
Tensor Tensor::hash() const { return wrap(ops::hash(uop())); }
Tensor Tensor::linear(const Tensor& weight, const Tensor& bias, std::optional<DType> dtype) const {
  return wrap(ops::linear(uop(), weight.uop(), node_or_null(bias), dtype));
}
Tensor Tensor::sequential(std::span<const std::function<Tensor(const Tensor&)>> layers) const {
  Tensor x = layers.empty() ? wrap(uop()) : *this;
  for (const auto& layer : layers) {
    if (!layer) throw ValueError("sequential: one of the layers is empty");
    x = layer(x);
  }
  return x;
}
Tensor Tensor::conv2d(const Tensor& weight, const Tensor& bias, const ConvOptions& o) const {
  const ops::ConvOptions options{o.groups, per_axis(o.stride), per_axis(o.dilation), per_axis(o.padding), o.dtype, winograd_on(device())};
  return wrap(ops::conv2d(uop(), weight.uop(), node_or_null(bias), options));
}
Tensor Tensor::conv_transpose2d(const Tensor& weight, const Tensor& bias, const ConvTransposeOptions& o) const {
  const ops::ConvTransposeOptions options{o.groups, per_axis(o.stride), per_axis(o.dilation), per_axis(o.padding),
                                          per_axis(o.output_padding)};
  return wrap(ops::conv_transpose2d(uop(), weight.uop(), node_or_null(bias), options));
}
Tensor Tensor::avg_pool2d(const PoolOptions& o) const { return wrap(ops::avg_pool2d(uop(), to_pool(o))); }
Tensor Tensor::max_pool2d(const PoolOptions& o) const { return wrap(ops::max_pool2d(uop(), to_pool(o))); }
ValuesAndIndices Tensor::max_pool2d_with_indices(const PoolOptions& o) const {
  return {max_pool2d(o), wrap(ops::max_pool2d_indices(uop(), to_pool(o)))};
}
Tensor Tensor::max_unpool2d(const Tensor& indices, const PoolOptions& o, const Sizes& output_size) const {
  return wrap(ops::max_unpool2d(uop(), indices.uop(), to_pool(o),
                                output_size.empty() ? std::nullopt : std::optional<Shape>(to_shape(output_size))));
}
Tensor Tensor::interpolate(const Sizes& size, const InterpolateOptions& o) const { return wrap(ops::interpolate(uop(), size, o)); }
Tensor Tensor::layernorm(const std::vector<int>& axes, double eps) const { return wrap(ops::layernorm(uop(), to_axes(axes), eps)); }
Tensor Tensor::batchnorm(const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& invstd, const AxisList& axes) const {
  if (!axes.get()) throw ValueError("batchnorm: expects the axes of the statistics, got none");
  return wrap(ops::batchnorm(uop(), node_or_null(weight), node_or_null(bias), mean.uop(), invstd.uop(), to_axes(*axes.get())));
}
Tensor Tensor::scaled_dot_product_attention(const Tensor& key, const Tensor& value, const AttentionOptions& o) const {
  ops::AttentionOptions options{.mask = node_or_null(o.mask), .is_causal = o.is_causal, .enable_gqa = o.enable_gqa};
  if (o.dropout_p > 0) options.dropout = [p = o.dropout_p](const UOp& weights) { return wrap(weights).dropout(p).uop(); };
  return wrap(ops::scaled_dot_product_attention(uop(), key.uop(), value.uop(), options));
}
Tensor Tensor::scaled_dot_product_attention(const Tensor& key, const Tensor& value) const {
  return scaled_dot_product_attention(key, value, AttentionOptions{});
}
Tensor Tensor::binary_crossentropy(const Tensor& y, Reduction r) const {
  return wrap(ops::binary_crossentropy(uop(), y.uop(), r, context()));
}
Tensor Tensor::binary_crossentropy_logits(const Tensor& y, Reduction r, const Tensor& pos_weight) const {
  return wrap(ops::binary_crossentropy_logits(uop(), y.uop(), r, node_or_null(pos_weight), context()));
}

namespace {

/// IndexError for class indices that are no class, where they are in memory that can be looked at without waiting, or CHECK_OOB says so.
/// What is computed later gives NaN for them.
void check_labels(const char* op, const Tensor& y, std::optional<int64_t> ignore_index, const Tensor& logits, int axis) {
  const int64_t ignored = ignore_index.value_or(ops::ignored_target);
  const Shape& shape = shape_of(logits.uop());
  if (size_t(axis) >= shape.size() || !is_int(y.dtype())) return;  // there is another error to come
  check_indices(op, y, logits, axis, false, ignored);
  const SInt& classes = shape[size_t(axis)];
  if (!classes.known()) return;
  bool looked = false;
  if (const auto bad = first_out_of_range(y.uop(), 0, classes.value(), ignored, int64_t{1} << 20, looked))
    throw IndexError(fmt::format("{}: the target at {} is {}, expects one of {} classes, or {} to be ignored", op, bad->at, bad->value,
                                 classes.value(), ignored));
}

}  // namespace

Tensor Tensor::sparse_categorical_crossentropy(const Tensor& y, const SparseCrossEntropyOptions& o) const {
  check_labels("sparse_categorical_crossentropy", y, o.ignore_index, *this, ndim() - 1);
  return wrap(ops::sparse_categorical_crossentropy(uop(), y.uop(), o.ignore_index, o.label_smoothing, o.reduction, context()));
}
Tensor Tensor::cross_entropy(const Tensor& y, const CrossEntropyOptions& o) const {
  if (shape_of(y.uop()) != shape_of(uop())) check_labels("cross_entropy", y, o.ignore_index, *this, ndim() == 1 ? 0 : 1);
  return wrap(ops::cross_entropy(uop(), y.uop(), o.ignore_index, o.reduction, o.label_smoothing, context()));
}

Tensor Tensor::nll_loss(const Tensor& y, const Tensor& weight, const NllOptions& o) const {
  check_labels("nll_loss", y, o.ignore_index, *this, 1);
  return wrap(ops::nll_loss(uop(), y.uop(), node_or_null(weight), o.ignore_index, o.reduction, context()));
}

}  // namespace tinygrad
