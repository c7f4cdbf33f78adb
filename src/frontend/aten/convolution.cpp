// Convolutions of one to three spatial axes, and their gradients.
#include "frontend/aten/convolution.h"

#include <fmt/core.h>

#include <algorithm>

#include "uop/uop.h"

namespace tinygrad::aten {

std::vector<Tensor> gradients(const Call& c, const std::function<Tensor(std::span<const Tensor>)>& f, const std::vector<Tensor>& at,
                              const Tensor& grad) {
  std::vector<Tensor> inputs;
  for (const Tensor& t : at) {
    const Tensor input = t.detach();
    // One node for two arguments would have one gradient.
    const bool is_there = std::ranges::any_of(inputs, [&](const Tensor& other) { return other.uop() == input.uop(); });
    inputs.push_back(is_there ? t.contiguous().detach() : input);
  }
  const Tensor out = f(inputs);
  if (out.shape() != grad.shape()) c.fail("the gradient does not have the result's shape");
  return out.gradient(inputs, grad.cast(out.dtype()));
}

namespace {

struct Convolution {
  Sizes stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
  size_t axes = 0;
};
Convolution convolution_of(const Call& c, const Tensor& weight) {
  Convolution out;
  out.axes = size_t(std::max(weight.ndim() - 2, 1));
  out.stride = c.integers("stride", out.axes);
  out.padding = c.integers("padding", out.axes);
  out.dilation = c.integers("dilation", out.axes);
  out.transposed = c.declares("transposed") ? c.flag("transposed") : c.declares("output_padding");
  out.output_padding = c.declares("output_padding") ? c.integers("output_padding", out.axes) : Sizes(out.axes, 0);
  out.groups = c.integer("groups");
  const auto below = [](const Sizes& all, int64_t least) { return std::ranges::any_of(all, [&](int64_t s) { return s < least; }); };
  if (below(out.stride, 1) || below(out.dilation, 1) || below(out.padding, 0) || below(out.output_padding, 0) || out.groups < 1)
    c.fail("a stride, padding, dilation or groups that there is not");
  return out;
}

Tensor forward(const Convolution& how, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (how.transposed)
    return x.conv_transpose2d(weight, bias,
                              {.groups = how.groups,
                               .stride = how.stride,
                               .dilation = how.dilation,
                               .padding = how.padding,
                               .output_padding = how.output_padding});
  return x.conv2d(weight, bias, {.groups = how.groups, .stride = how.stride, .dilation = how.dilation, .padding = how.padding});
}
/// In the dtype of the arguments; a batch of one is added where there is none.
Results run(const Call& c, const Convolution& how, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const DType dtype = x.dtype(), wide = wide_type(dtype);
  if (weight.dtype() != dtype || (bias.defined() && bias.dtype() != dtype)) c.fail("input, weight and bias have different dtypes");
  const bool batched = x.ndim() == weight.ndim();
  if (!batched && x.ndim() != weight.ndim() - 1) c.fail(fmt::format("{} axes beside a weight of {}", x.ndim(), weight.ndim()));
  const Tensor rows = batched ? x : x.unsqueeze(0);
  const DType inside = is_float(dtype) ? wide : DType::int64;
  const Tensor out = forward(how, rows.cast(inside), weight.cast(inside), bias.defined() ? bias.cast(inside) : bias).cast(dtype);
  return one(batched ? out : out.squeeze(0));
}
Results convolution(const Call& c) {
  const Tensor weight = c.tensor("weight");
  return run(c, convolution_of(c, weight), c.tensor("input"), weight, c.tensor("bias"));
}
/// Padding named "same" puts the odd element behind.
Results convolution_padded(const Call& c) {
  Tensor x = c.tensor("input");
  const Tensor weight = c.tensor("weight");
  Convolution how;
  how.axes = size_t(weight.ndim() - 2);
  how.stride = c.integers("stride", how.axes);
  how.dilation = c.integers("dilation", how.axes);
  how.padding = how.output_padding = Sizes(how.axes, 0);
  how.groups = c.integer("groups");
  const std::string_view padding = c.text("padding");
  if (padding == "same") {
    if (std::ranges::any_of(how.stride, [](int64_t s) { return s != 1; })) c.fail("padding 'same' with a stride");
    ExtentPairs around(size_t(x.ndim()), {0, 0});
    for (size_t i = 0; i < how.axes; ++i) {
      const int64_t total = how.dilation[i] * (weight.size(int(i) + 2) - 1);
      around[around.size() - how.axes + i] = {total / 2, total - total / 2};
    }
    x = x.pad(around);
  } else if (padding != "valid") {
    c.fail(fmt::format("padding '{}'", padding));
  }
  return run(c, how, x, weight, c.tensor("bias"));
}

Results convolution_backward(const Call& c) {
  const Tensor grad = c.tensor("grad_output"), x = c.tensor("input"), weight = c.tensor("weight");
  const Convolution how = convolution_of(c, weight);
  std::vector<bool> wanted;
  for (const Value& v : c["output_mask"].list()) wanted.push_back(v.boolean());
  if (wanted.size() != 3) c.fail("output_mask does not have 3 bools");
  const DType wide = wide_type(grad.dtype());
  const auto f = [&](std::span<const Tensor> at) { return forward(how, at[0], at[1], {}); };
  Results out(3);
  if (wanted[0] || wanted[1]) {
    const std::vector<Tensor> found = gradients(c, f, {x.cast(wide), weight.cast(wide)}, grad);
    if (wanted[0]) out[0] = found[0].cast(x.dtype());
    if (wanted[1]) out[1] = found[1].cast(weight.dtype());
  }
  if (wanted[2]) {
    std::vector<int> axes{0};
    for (int i = 2; i < grad.ndim(); ++i) axes.push_back(i);
    out[2] = grad.cast(wide).sum(axes).cast(grad.dtype());
  }
  return out;
}

}  // namespace

std::vector<Row> convolution_operators() {
  std::vector<Row> rows = {
      {"aten.convolution.default(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool "
       "transposed, SymInt[] output_padding, SymInt groups)",
       convolution},
      {"aten._convolution.default(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool "
       "transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32)",
       convolution},
      {"aten.convolution_backward.default(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] "
       "padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask)",
       convolution_backward},
  };
  const auto add = [&](std::string_view schema, Operator run) { rows.push_back({schema, std::move(run)}); };
  add("aten.conv1d.default(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] dilation=1, "
      "SymInt groups=1)",
      convolution);
  add("aten.conv2d.default(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] dilation=1, "
      "SymInt groups=1)",
      convolution);
  add("aten.conv3d.default(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] dilation=1, "
      "SymInt groups=1)",
      convolution);
  add("aten.conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, str padding=\"valid\", SymInt[1] "
      "dilation=1, "
      "SymInt groups=1)",
      convolution_padded);
  add("aten.conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str padding=\"valid\", SymInt[2] "
      "dilation=1, "
      "SymInt groups=1)",
      convolution_padded);
  add("aten.conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, str padding=\"valid\", SymInt[3] "
      "dilation=1, "
      "SymInt groups=1)",
      convolution_padded);
  add("aten.conv_transpose1d.default(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] "
      "output_padding=0, SymInt groups=1, SymInt[1] dilation=1)",
      convolution);
  add("aten.conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] "
      "output_padding=0, SymInt groups=1, SymInt[2] dilation=1)",
      convolution);
  add("aten.conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] "
      "output_padding=0, SymInt groups=1, SymInt[3] dilation=1)",
      convolution);
  return rows;
}

}  // namespace tinygrad::aten
