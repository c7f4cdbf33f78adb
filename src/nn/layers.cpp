// Linear layers, convolutions, tables and cells.
#include <fmt/core.h>

#include <cmath>

#include <tinygrad/errors.h>
#include <tinygrad/nn.h>

#include "nn/named.h"
#include "nn/parameters.h"

namespace tinygrad::nn {

namespace {

void check_size(std::string_view layer, std::string_view what, int64_t size) {
  if (size < 1) throw ValueError(fmt::format("{}: got {} {}, expects at least 1", layer, size, what));
}

void check_each(std::string_view layer, std::string_view what, const Sizes& sizes, int64_t least) {
  for (int64_t s : sizes)
    if (s < least) throw ValueError(fmt::format("{}: got {} as {}, expects at least {}", layer, s, what, least));
}

void check_channels(std::string_view layer, int64_t in, int64_t out, int64_t groups, const Sizes& kernel) {
  check_size(layer, "input channels", in);
  check_size(layer, "output channels", out);
  if (kernel.empty()) throw ValueError(fmt::format("{}: the kernel has no axes", layer));
  check_each(layer, "a kernel size", kernel, 1);
  if (groups < 1 || in % groups || out % groups)
    throw ValueError(fmt::format("{}: {} groups do not divide {} input and {} output channels", layer, groups, in, out));
}

void check(std::string_view layer, int64_t in_channels, int64_t out_channels, const Convolution& c) {
  check_channels(layer, in_channels, out_channels, c.groups, c.kernel_size);
  check_each(layer, "the stride", c.stride, 1);
  check_each(layer, "the dilation", c.dilation, 1);
}

/// What is common to convolutions; the weight is (a, b, kernel...).
void draw(Convolution& layer, int64_t a, int64_t b, int64_t in_channels, int64_t out_channels, bool bias) {
  Sizes shape{a, b};
  double fan_in = static_cast<double>(in_channels);
  for (int64_t k : layer.kernel_size) {
    shape.push_back(k);
    fan_in *= static_cast<double>(k);
  }
  const double bound = 1 / std::sqrt(fan_in);
  layer.weight = state(Tensor::uniform(shape, -bound, bound));
  if (bias) layer.bias = state(Tensor::uniform({out_channels}, -bound, bound));
}

/// "3 -> 16, kernel 3x3", of a weight with these axes for what goes in and out.
std::string channels(const Convolution& c, int in, int out) {
  return in_and_out(c.weight, in, out) + ", kernel " + joined(c.kernel_size, "x");
}

/// (before, after) of each axis, the last axis first.
Sizes same_padding(const Sizes& kernel, const Conv2dOptions& options) {
  for (int64_t s : options.stride)
    if (s != 1) throw ValueError(fmt::format("Conv2d: a stride of {} gives no output of the same size", s));
  const Sizes& d = options.dilation;
  if (d.size() != 1 && d.size() != kernel.size())
    throw ValueError(fmt::format("Conv2d: {} numbers for the dilation of {} axes", d.size(), kernel.size()));
  Sizes out;
  for (size_t i = kernel.size(); i-- > 0;) {
    const int64_t all = (d.size() == 1 ? d[0] : d[i]) * (kernel[i] - 1);
    out.insert(out.end(), {all / 2, all - all / 2});
  }
  return out;
}

}  // namespace

Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options) {
  check_size("Linear", "input features", in_features);
  check_size("Linear", "output features", out_features);
  const double bound = 1 / std::sqrt(static_cast<double>(in_features));
  weight = state(Tensor::uniform({out_features, in_features}, -bound, bound));
  if (options.bias) bias = state(Tensor::uniform({out_features}, -bound, bound));
}

Tensor Linear::operator()(const Tensor& x) const {
  return named(*this, "Linear", [&] { return in_and_out(weight, 1, 0); }, [&] { return x.linear(weight.transpose(), bias); });
}

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, const Sizes& kernel, const Conv2dOptions& options)
    : Convolution(kernel, options) {
  check("Conv2d", in_channels, out_channels, *this);
  if (options.same) padding = same_padding(kernel, options);
  draw(*this, out_channels, in_channels / groups, in_channels, out_channels, options.bias);
}

Tensor Conv2d::operator()(const Tensor& x) const {
  return named(
      *this, "Conv2d", [&] { return channels(*this, 1, 0); },
      [&] { return x.conv2d(weight, bias, {groups, stride, dilation, padding, {}}); });
}

ConvTranspose2d::ConvTranspose2d(int64_t in_channels, int64_t out_channels, const Sizes& kernel, const ConvTranspose2dOptions& options)
    : Convolution(kernel, options), output_padding(options.output_padding) {
  check("ConvTranspose2d", in_channels, out_channels, *this);
  check_each("ConvTranspose2d", "the output padding", output_padding, 0);
  draw(*this, in_channels, out_channels / groups, in_channels, out_channels, options.bias);
}

Tensor ConvTranspose2d::operator()(const Tensor& x) const {
  return named(
      *this, "ConvTranspose2d", [&] { return channels(*this, 0, 1); },
      [&] { return x.conv_transpose2d(weight, bias, {groups, stride, dilation, padding, output_padding}); });
}

Embedding::Embedding(int64_t vocabulary_size, int64_t embedding_size) {
  check_size("Embedding", "words", vocabulary_size);
  check_size("Embedding", "elements a row", embedding_size);
  weight = state(Tensor::glorot_uniform({vocabulary_size, embedding_size}));
}

Tensor Embedding::operator()(const Tensor& indices) const {
  return named(
      *this, "Embedding", [&] { return sizes_of(weight); },
      [&] {
        if (!is_int(indices.dtype())) throw DTypeError(fmt::format("Embedding: got indices {}, expects integers", indices.to_string()));
        return weight[indices];
      });
}

LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, const LSTMCellOptions& options) {
  check_size("LSTMCell", "inputs", input_size);
  check_size("LSTMCell", "hidden features", hidden_size);
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  weight_ih = state(Tensor::uniform({4 * hidden_size, input_size}, -bound, bound));
  weight_hh = state(Tensor::uniform({4 * hidden_size, hidden_size}, -bound, bound));
  if (!options.bias) return;
  bias_ih = state(Tensor::zeros({4 * hidden_size}));
  bias_hh = state(Tensor::zeros({4 * hidden_size}));
}

LSTMCell::State LSTMCell::operator()(const Tensor& x, const std::optional<State>& state) const {
  return named(*this, "LSTMCell", [&] { return in_and_out(weight_ih, 1, 0); }, [&] { return step(x, state); });
}

LSTMCell::State LSTMCell::step(const Tensor& x, const std::optional<State>& state) const {
  const int64_t inputs = weight_ih.size(1), hidden = weight_hh.size(1);
  if (x.ndim() != 2 || x.size(1) != inputs) throw ShapeError(fmt::format("LSTMCell: got x {}, expects (batch, {})", x.to_string(), inputs));
  const Extents expected{x.symbolic_shape()[0], hidden};
  if (state)
    for (const Tensor& t : {state->first, state->second})
      if (t.symbolic_shape() != expected)
        throw ShapeError(fmt::format("LSTMCell: got a state {}, expects ({}, {})", t.to_string(), expected[0].to_string(), hidden));
  const Tensor zeros = state ? Tensor() : Tensor::zeros(expected, {.dtype = x.dtype(), .device = x.device()});
  const Tensor& h = state ? state->first : zeros;
  const Tensor& c = state ? state->second : zeros;
  const Tensor gates = x.linear(weight_ih.transpose(), bias_ih) + h.linear(weight_hh.transpose(), bias_hh);
  const std::vector<Tensor> parts = gates.chunk(4, 1);  // input, forget, cell, output
  const Tensor next = parts[1].sigmoid() * c + parts[0].sigmoid() * parts[2].tanh();
  return {parts[3].sigmoid() * next.tanh(), next};
}

}  // namespace tinygrad::nn
