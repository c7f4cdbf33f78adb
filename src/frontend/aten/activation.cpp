// Activation functions, and the gradients of them that PyTorch's backward graphs have.
#include <cmath>
#include <numbers>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

/// Steps are computed in at least float32.
template <class F>
Results wide(const Call& c, F f, std::string_view name = "self") {
  const Tensor x = c.tensor(name);
  return one(f(x.cast(wide_type(x.dtype()))).cast(x.dtype()));
}
/// A function of floats.
template <class F>
Results wide_float(const Call& c, F f) {
  const Tensor x = c.tensor("self");
  if (!is_float(x.dtype())) c.fail("only for floats");
  return wide(c, f);
}
/// A gradient from that of the result and another tensor.
template <class F>
Results gradient(const Call& c, std::string_view other, F f, std::string_view grad = "grad_output") {
  const Promoted p = promoted(c, {grad, other});
  const DType dtype = wide_type(p.dtype);
  return one(f(p[0].cast(dtype), p[1].cast(dtype)).cast(p.dtype));
}

Results relu(const Call& c) {
  const Tensor x = c.tensor("self");
  if (is_bool(x.dtype())) c.fail("not for bools");
  return one(x.maximum(x.zeros_like()));
}
Results relu6(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(x.maximum(x.zeros_like()).minimum(x.full_like(6)));
}
Results hardtanh(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(x.maximum(typed(c["min_val"], x.dtype(), x.device())).minimum(typed(c["max_val"], x.dtype(), x.device())));
}
Results threshold(const Call& c) {
  const Tensor x = c.tensor("self");
  return one((x <= typed(c["threshold"], x.dtype(), x.device())).where(typed(c["value"], x.dtype(), x.device()), x));
}

Tensor normal_cdf(const Tensor& x) { return ((x * std::numbers::sqrt2 / 2).erf() + 1) * 0.5; }
Tensor normal_pdf(const Tensor& x) { return (x * x * -0.5).exp() * (std::numbers::inv_sqrtpi / std::numbers::sqrt2); }
/// sqrt(2 / pi) * (x + 0.044715 x^3), the argument of tanh.
constexpr double tanh_scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;

bool is_tanh(const Call& c) {
  const std::string_view approximate = c.text("approximate");
  if (approximate != "none" && approximate != "tanh") c.fail("approximate is neither none nor tanh");
  return approximate == "tanh";
}
Results gelu(const Call& c) {
  const bool by_tanh = is_tanh(c);
  return wide_float(c, [&](const Tensor& x) { return x.gelu(by_tanh ? GeluForm::tanh : GeluForm::erf); });
}
Results gelu_backward(const Call& c) {
  const bool by_tanh = is_tanh(c);
  return gradient(c, "self", [&](const Tensor& g, const Tensor& x) {
    if (!by_tanh) return g * (normal_cdf(x) + x * normal_pdf(x));
    const Tensor t = (tanh_scale * (x + cubic * x * x * x)).tanh();
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * tanh_scale * (1 + 3 * cubic * x * x));
  });
}

Tensor elu_of(const Tensor& x, double alpha, double scale, double input_scale) {
  const Tensor negative = (x.minimum(x.zeros_like()) * input_scale);
  // exp(x) - 1 as tanh(x / 2) * (exp(x) + 1), which keeps small ones exact.
  const Tensor below = (negative * 0.5).tanh() * (negative.exp() + 1) * (alpha * scale);
  return (x <= 0).where(below, x * scale);
}
Results elu(const Call& c) {
  return wide_float(c, [&](const Tensor& x) { return elu_of(x, c.number("alpha"), c.number("scale"), c.number("input_scale")); });
}
Results elu_backward(const Call& c) {
  const double alpha = c.number("alpha"), scale = c.number("scale"), input_scale = c.number("input_scale");
  const bool is_result = c.flag("is_result");
  return gradient(c, "self_or_result", [&](const Tensor& g, const Tensor& x) {
    const Tensor below = is_result ? g * input_scale * (x + alpha * scale) : g * input_scale * (alpha * scale) * (x * input_scale).exp();
    return (x <= 0).where(below, g * scale);
  });
}

Results leaky_relu_backward(const Call& c) {
  return gradient(c, "self", [&](const Tensor& g, const Tensor& x) { return (x > 0).where(g, g * c.number("negative_slope")); });
}
Results sigmoid_backward(const Call& c) {
  return gradient(c, "output", [](const Tensor& g, const Tensor& y) { return g * (1 - y) * y; });
}
Results tanh_backward(const Call& c) {
  return gradient(c, "output", [](const Tensor& g, const Tensor& y) { return g * (1 - y * y); });
}
Results silu_backward(const Call& c) {
  return gradient(c, "self", [](const Tensor& g, const Tensor& x) {
    const Tensor s = x.sigmoid();
    return g * s * (1 + x * (1 - s));
  });
}
Results threshold_backward(const Call& c) {
  const Promoted p = promoted(c, {"grad_output", "self"});
  return one((p[1] <= typed(c["threshold"], p.dtype, p[1].device())).where(p[0].zeros_like(), p[0]));
}
Results hardtanh_backward(const Call& c) {
  const Promoted p = promoted(c, {"grad_output", "self"});
  const Tensor min = typed(c["min_val"], p.dtype, p[1].device()), max = typed(c["max_val"], p.dtype, p[1].device());
  return one(((p[1] <= min) | (p[1] >= max)).where(p[0].zeros_like(), p[0]));
}
Results hardswish_backward(const Call& c) {
  return gradient(c, "self",
                  [](const Tensor& g, const Tensor& x) { return (x <= -3).where(g.zeros_like(), (x < 3).where(g * (x / 3 + 0.5), g)); });
}
Results hardsigmoid_backward(const Call& c) {
  return gradient(c, "self", [](const Tensor& g, const Tensor& x) { return ((x > -3) & (x < 3)).where(g * (1.0 / 6), g.zeros_like()); });
}
Tensor softplus_of(const Tensor& x, double beta, double threshold) {
  const Tensor scaled = x * beta;
  // log(1 + exp(z)) without overflow.
  const Tensor soft = scaled.maximum(scaled.zeros_like()) + log1p((-scaled.abs()).exp());
  return (scaled > threshold).where(x, soft / beta);
}
Results softplus(const Call& c) {
  return wide_float(c, [&](const Tensor& x) { return softplus_of(x, c.number("beta"), c.number("threshold")); });
}
Results softplus_backward(const Call& c) {
  const double beta = c.number("beta"), threshold = c.number("threshold");
  return gradient(c, "self", [&](const Tensor& g, const Tensor& x) { return (x * beta > threshold).where(g, g * (x * beta).sigmoid()); });
}
Results mish_backward(const Call& c) {
  return gradient(c, "self", [](const Tensor& g, const Tensor& x) {
    const Tensor t = softplus_of(x, 1, 20).tanh();
    return g * (t + x * x.sigmoid() * (1 - t * t));
  });
}
Tensor log_sigmoid_of(const Tensor& x) { return x.minimum(x.zeros_like()) - log1p((-x.abs()).exp()); }
Results log_sigmoid_forward(const Call& c) {
  const Tensor x = c.tensor("self");
  return {wide_float(c, log_sigmoid_of)[0], (-x.abs()).exp()};  // the second as on CPUs
}
Results log_sigmoid_backward(const Call& c) {
  return gradient(c, "self", [](const Tensor& g, const Tensor& x) { return g * (-x).sigmoid(); });
}

Results glu(const Call& c) {
  const Tensor x = c.tensor("self");
  const int axis = c.axis("dim", x.ndim());
  if (x.ndim() == 0 || x.size(axis) % 2 != 0) c.fail("an axis of an even size is expected");
  const std::vector<Tensor> halves = x.chunk(2, axis);
  const DType dtype = wide_type(x.dtype());
  return one((halves[0].cast(dtype) * halves[1].cast(dtype).sigmoid()).cast(x.dtype()));
}
Results glu_backward(const Call& c) {
  const Tensor x = c.tensor("self"), g = c.tensor("grad_output").cast(wide_type(x.dtype()));
  const int axis = c.axis("dim", x.ndim());
  const std::vector<Tensor> halves = x.cast(g.dtype()).chunk(2, axis);
  const Tensor s = halves[1].sigmoid();
  return one(Tensor::cat({g * s, g * halves[0] * s * (1 - s)}, axis).cast(x.dtype()));
}

/// The weight of each channel, or of all.
Tensor channel_weight(const Tensor& x, const Tensor& weight) {
  if (weight.numel() == 1) return weight.reshape({});
  Sizes shape(size_t(x.ndim()), 1);
  shape[x.ndim() > 1 ? 1 : 0] = weight.numel();
  return weight.reshape(shape);
}
Results prelu(const Call& c) {
  const Tensor x = c.tensor("self");
  return one((x > 0).where(x, x * channel_weight(x, c.tensor("weight"))));
}
Results prelu_kernel(const Call& c) {
  const Tensor x = c.tensor("self");
  return one((x > 0).where(x, x * c.tensor("weight")));
}
Results prelu_kernel_backward(const Call& c) {
  const Tensor g = c.tensor("grad_output"), x = c.tensor("self"), weight = c.tensor("weight");
  return {(x > 0).where(g, g * weight), (x > 0).where(g.zeros_like(), g * x)};
}

Results softshrink(const Call& c) {
  const double lambda = c.number("lambd");
  return wide_float(c, [&](const Tensor& x) {
    const Tensor inside = (x > lambda).where(x - lambda, (x < -lambda).where(x + lambda, x.zeros_like()));
    return x.isnan().where(x, inside);
  });
}
Results hardshrink(const Call& c) {
  const double lambda = c.number("lambd");
  return wide_float(c, [&](const Tensor& x) { return ((x >= -lambda) & (x <= lambda)).where(x.zeros_like(), x); });
}
Results shrink_backward(const Call& c, std::string_view grad) {
  const double lambda = c.number("lambd");
  return gradient(
      c, "self", [&](const Tensor& g, const Tensor& x) { return ((x >= -lambda) & (x <= lambda)).where(g.zeros_like(), g); }, grad);
}

constexpr double selu_alpha = 1.6732632423543772848170429916717, selu_scale = 1.0507009873554804934193349852946;

}  // namespace

std::vector<Row> activation_operators() {
  const auto log_sigmoid = [](const Call& c) { return wide_float(c, log_sigmoid_of); };
  return {
      {"aten.relu.default(Tensor self)", relu},
      {"aten.relu6.default(Tensor self)", relu6},
      {"aten.hardtanh.default(Tensor self, Scalar min_val=-1, Scalar max_val=1)", hardtanh},
      {"aten.threshold.default(Tensor self, Scalar threshold, Scalar value)", threshold},
      {"aten.gelu.default(Tensor self, *, str approximate=\"none\")", gelu},
      {"aten.elu.default(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)", elu},
      {"aten.celu.default(Tensor self, Scalar alpha=1.0)",
       [](const Call& c) {
         const double alpha = c.number("alpha");
         return wide_float(c, [&](const Tensor& x) { return elu_of(x, alpha, 1, 1 / alpha); });
       }},
      {"aten.selu.default(Tensor self)",
       [](const Call& c) { return wide_float(c, [](const Tensor& x) { return elu_of(x, selu_alpha, selu_scale, 1); }); }},
      {"aten.leaky_relu.default(Tensor self, Scalar negative_slope=0.01)",
       [](const Call& c) { return wide(c, [&](const Tensor& x) { return (x > 0).where(x, x * c.number("negative_slope")); }); }},
      {"aten.silu.default(Tensor self)", [](const Call& c) { return wide_float(c, [](const Tensor& x) { return x.silu(); }); }},
      {"aten.mish.default(Tensor self)",
       [](const Call& c) { return wide_float(c, [](const Tensor& x) { return x * softplus_of(x, 1, 20).tanh(); }); }},
      {"aten.softplus.default(Tensor self, Scalar beta=1, Scalar threshold=20)", softplus},
      {"aten.hardswish.default(Tensor self)",
       [](const Call& c) {
         return wide_float(c, [](const Tensor& x) { return x * (x + 3).maximum(x.zeros_like()).minimum(x.full_like(6)) / 6; });
       }},
      {"aten.hardsigmoid.default(Tensor self)",
       [](const Call& c) {
         return wide_float(c, [](const Tensor& x) { return (x + 3).maximum(x.zeros_like()).minimum(x.full_like(6)) / 6; });
       }},
      {"aten.log_sigmoid.default(Tensor self)", log_sigmoid},
      {"aten.log_sigmoid_forward.default(Tensor self)", log_sigmoid_forward},
      {"aten.glu.default(Tensor self, int dim=-1)", glu},
      {"aten.prelu.default(Tensor self, Tensor weight)", prelu},
      {"aten._prelu_kernel.default(Tensor self, Tensor weight)", prelu_kernel},
      {"aten.softshrink.default(Tensor self, Scalar lambd=0.5)", softshrink},
      {"aten.hardshrink.default(Tensor self, Scalar lambd=0.5)", hardshrink},
      {"aten.gelu_backward.default(Tensor grad_output, Tensor self, *, str approximate=\"none\")", gelu_backward},
      {"aten.elu_backward.default(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor "
       "self_or_result)",
       elu_backward},
      {"aten.leaky_relu_backward.default(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result)",
       leaky_relu_backward},
      {"aten.sigmoid_backward.default(Tensor grad_output, Tensor output)", sigmoid_backward},
      {"aten.tanh_backward.default(Tensor grad_output, Tensor output)", tanh_backward},
      {"aten.silu_backward.default(Tensor grad_output, Tensor self)", silu_backward},
      {"aten.threshold_backward.default(Tensor grad_output, Tensor self, Scalar threshold)", threshold_backward},
      {"aten.hardtanh_backward.default(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val)", hardtanh_backward},
      {"aten.hardswish_backward.default(Tensor grad_output, Tensor self)", hardswish_backward},
      {"aten.hardsigmoid_backward.default(Tensor grad_output, Tensor self)", hardsigmoid_backward},
      {"aten.softplus_backward.default(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold)", softplus_backward},
      {"aten.mish_backward.default(Tensor grad_output, Tensor self)", mish_backward},
      {"aten.log_sigmoid_backward.default(Tensor grad_output, Tensor self, Tensor buffer)", log_sigmoid_backward},
      {"aten.glu_backward.default(Tensor grad_output, Tensor self, int dim)", glu_backward},
      {"aten._prelu_kernel_backward.default(Tensor grad_output, Tensor self, Tensor weight)", prelu_kernel_backward},
      {"aten.softshrink_backward.default(Tensor grad_output, Tensor self, Scalar lambd)",
       [](const Call& c) { return shrink_backward(c, "grad_output"); }},
      {"aten.hardshrink_backward.default(Tensor grad_out, Tensor self, Scalar lambd)",
       [](const Call& c) { return shrink_backward(c, "grad_out"); }},
  };
}

}  // namespace tinygrad::aten
