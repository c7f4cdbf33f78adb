// Fourier transforms and what goes with them.
#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

struct Complex {
  Tensor real, imaginary;  ///< the imaginary part may be undefined: 0
};

/// Cosines and sines of 2 pi k n / length, (n, outputs), computed in double with angles within a turn.
std::pair<Tensor, Tensor> turns(const Call& c, int64_t inputs, int64_t outputs, int64_t length, DType dtype) {
  host_count(c, {inputs, outputs});
  std::vector<double> cosines, sines;
  for (int64_t n = 0; n < inputs; ++n) {
    for (int64_t k = 0; k < outputs; ++k) {
      const double angle = 2 * std::numbers::pi * double((n * k) % length) / double(length);
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
  }
  return {Tensor(cosines, {inputs, outputs}).cast(dtype), Tensor(sines, {inputs, outputs}).cast(dtype)};
}

/// Over the last axis, as products with matrices of turns: `outputs` of the `length` frequencies.
Complex transform(const Call& c, const Complex& x, int64_t length, int64_t outputs, bool is_inverse) {
  const int64_t inputs = x.real.size(-1);
  const auto [cosines, sines] = turns(c, inputs, outputs, length, x.real.dtype());
  const Tensor sin = is_inverse ? sines : -sines;
  Complex y{x.real.matmul(cosines), x.real.matmul(sin)};
  if (x.imaginary.defined()) {
    y.real = y.real - x.imaginary.matmul(sin);
    y.imaginary = y.imaginary + x.imaginary.matmul(cosines);
  }
  if (is_inverse) return {y.real / double(length), y.imaginary / double(length)};
  return y;
}

Complex parts(const Tensor& x) {
  const auto part = [&](int64_t i) {
    const std::vector<Index> indices{Index(Ellipsis{}), Index(i)};
    return x.get_item(indices);
  };
  if (x.size(-1) == 1) return {part(0), {}};
  return {part(0), part(1)};
}

/// The last axis cut or padded with zeros.
Complex fitted(const Complex& x, int64_t length) {
  const auto fit = [&](const Tensor& t) {
    if (!t.defined() || t.size(-1) == length) return t;
    std::vector<std::pair<int64_t, int64_t>> amounts(size_t(t.ndim()), {0, 0});
    amounts.back() = {0, length - t.size(-1)};
    return t.pad(amounts);
  };
  return {fit(x.real), fit(x.imaginary)};
}

Results dft(Call& c) {
  const Tensor& x = c.tensor(0);
  const int rank = x.ndim();
  if (rank < 2 || (x.size(-1) != 1 && x.size(-1) != 2)) c.fail(fmt::format("expects numbers of one or two parts, got {}", x.to_string()));
  const bool is_inverse = c.flag("inverse"), is_onesided = c.flag("onesided");
  const int64_t named = c.version() < 20 ? c.attribute("axis", 1) : c.has(2) ? c.integer(2) : -2;
  const int axis = normal_axis(c, named, size_t(rank));
  if (axis == rank - 1) c.fail("the axis of real and imaginary parts");
  const int64_t given = c.has(1) ? c.integer(1) : is_inverse && is_onesided ? 2 * (x.size(axis) - 1) : x.size(axis);
  if (given < 1) c.fail(fmt::format("the length {}", given));
  host_count(c, {given});
  Complex z = parts(x);
  // The axis stands last while it is transformed.
  const auto swap = [&](const Tensor& t) { return t.defined() ? t.transpose(axis, rank - 2) : t; };
  z = {swap(z.real), swap(z.imaginary)};
  if (is_inverse && is_onesided) {  // of a real signal: what is missing are the conjugates
    z = fitted(z, given / 2 + 1);
    if (!z.imaginary.defined()) z.imaginary = z.real.zeros_like();
    std::vector<int64_t> mirrored;
    for (int64_t k = given / 2 + 1; k < given; ++k) mirrored.push_back(given - k);
    if (!mirrored.empty()) {
      const std::vector<Index> indices{Index(Ellipsis{}), Index(Tensor(mirrored))};
      z = {Tensor::cat({z.real, z.real.get_item(indices)}, -1), Tensor::cat({z.imaginary, -z.imaginary.get_item(indices)}, -1)};
    }
    return results(swap(transform(c, z, given, given, true).real).unsqueeze(-1));
  }
  const Complex y = transform(c, fitted(z, given), given, is_onesided ? given / 2 + 1 : given, is_inverse);
  return results(Tensor::stack({swap(y.real), swap(y.imaginary)}, -1));
}

Results stft(Call& c) {
  const Tensor& signal = c.tensor(0);
  const int64_t step = c.integer(1);
  if (signal.ndim() < 2) c.fail(fmt::format("the signal {}", signal.to_string()));
  const int64_t length = c.has(3) ? c.integer(3) : c.has(2) ? c.shape(2).at(0) : signal.size(1);
  if (step < 1 || length < 1 || length > signal.size(1))
    c.fail(fmt::format("frames of {} every {} of a signal of {}", length, step, signal.size(1)));
  if (signal.ndim() != 2 && !(signal.ndim() == 3 && (signal.size(2) == 1 || signal.size(2) == 2)))
    c.fail(fmt::format("the signal {}", signal.to_string()));
  if (c.has(2) && c.shape(2) != Sizes{length}) c.fail(fmt::format("a window ({}) for frames of {}", c.shape(2).at(0), length));
  const Tensor flat = signal.ndim() == 2 ? signal.unsqueeze(-1) : signal;
  Complex z = parts(flat);
  const auto frame = [&](const Tensor& t) {
    if (!t.defined()) return t;
    const Tensor frames = t.unfold(1, length, step);
    return c.has(2) ? frames * c.tensor(2) : frames;
  };
  z = {frame(z.real), frame(z.imaginary)};
  const bool is_onesided = c.flag("onesided", true) && !z.imaginary.defined();
  const Complex y = transform(c, z, length, is_onesided ? length / 2 + 1 : length, false);
  return results(Tensor::stack({y.real, y.imaginary}, -1));
}

/// Triangles whose corners stand evenly on the mel scale; made on the host.
Results mel_weight_matrix(Call& c) {
  const int64_t bins = c.integer(0), dft_length = c.integer(1), rate = c.integer(2);
  const double lower = c.number(3), upper = c.number(4);
  if (bins < 0 || dft_length < 1 || rate < 1) c.fail("sizes below 1");
  const int64_t rows = dft_length / 2 + 1;
  host_count(c, {rows, bins});
  if (!(lower >= 0 && upper >= lower && upper <= double(rate))) c.fail(fmt::format("frequencies from {} to {}", lower, upper));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(upper) - mel(lower)) / double(bins + 2);
  std::vector<int64_t> corner;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (double(i) * step + mel(lower)) / 2595) - 1);
    corner.push_back(int64_t(std::floor(double(dft_length + 1) * hertz / double(rate))));
  }
  std::vector<double> out(size_t(rows * bins), 0.0);
  const auto set = [&](int64_t row, int64_t bin, double value) {
    if (row >= 0 && row < rows) out[size_t(row * bins + bin)] = value;
  };
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t low = corner[size_t(i)], middle = corner[size_t(i) + 1], high = corner[size_t(i) + 2];
    if (middle == low) set(middle, i, 1);
    for (int64_t j = low; j <= middle && middle > low; ++j) set(j, i, double(j - low) / double(middle - low));
    for (int64_t j = middle; j < high; ++j) set(j, i, double(high - j) / double(high - middle));
  }
  return {host_value(HostArray::of(c.type_attribute("output_datatype", ElementType::float32), {rows, bins}, out))};
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "DFT", 17, dft},
    {onnx_domain, "MelWeightMatrix", 17, mel_weight_matrix},
    {onnx_domain, "STFT", 17, stft},
};

}  // namespace

std::span<const OperatorRow> signal_operators() { return rows; }

}  // namespace tinygrad::onnx
