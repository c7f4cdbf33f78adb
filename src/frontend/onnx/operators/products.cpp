// Products of matrices and convolutions.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <numeric>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators/quantized.h"
#include "frontend/onnx/operators/window.h"

namespace tinygrad::onnx {

int64_t Geometry::outputs(size_t axis, int64_t size) const {
  const int64_t room = size + begin[axis] + end[axis] - span(axis);
  if (room < 0) return 0;
  int64_t count = room / strides[axis] + 1;
  if (rounds_up && room % strides[axis] != 0 && count * strides[axis] < size + begin[axis]) ++count;
  return count;
}

Geometry geometry_of(const Call& call, const Extents& spatial, const Sizes& kernel) {
  constexpr int64_t most = int64_t{1} << 24;
  const size_t n = spatial.size();
  Geometry g;
  g.kernel = call.attribute("kernel_shape", kernel);
  g.strides = call.attribute("strides", Sizes(n, 1));
  g.dilations = call.attribute("dilations", Sizes(n, 1));
  if (g.strides.empty()) g.strides.assign(n, 1);
  if (g.kernel.size() != n || g.strides.size() != n || g.dilations.size() != n)
    call.fail(fmt::format("{} kernel sizes, {} strides and {} dilations for {} spatial axes", g.kernel.size(), g.strides.size(),
                          g.dilations.size(), n));
  for (size_t i = 0; i < n; ++i)
    if (g.kernel[i] < 1 || g.strides[i] < 1 || g.dilations[i] < 1 || std::max({g.kernel[i], g.strides[i], g.dilations[i]}) > most)
      call.fail(fmt::format("a kernel size of {}, a stride of {} or a dilation of {}", g.kernel[i], g.strides[i], g.dilations[i]));
  const std::string mode = call.choice("auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", ""});
  g.begin.assign(n, 0);
  g.end.assign(n, 0);
  if (mode == "NOTSET" || mode.empty()) {
    const Sizes pads = call.attribute("pads", Sizes(2 * n, 0));
    if (pads.size() != 2 * n) call.fail(fmt::format("{} pads for {} spatial axes", pads.size(), n));
    for (int64_t p : pads)
      if (p < -most || p > most) call.fail(fmt::format("a padding of {}", p));
    std::copy_n(pads.begin(), n, g.begin.begin());
    std::copy_n(pads.begin() + int64_t(n), n, g.end.begin());
  } else if (mode != "VALID") {
    for (size_t i = 0; i < n; ++i) {
      if (g.strides[i] == 1) {  // whatever the size is
        g.begin[i] = mode == "SAME_UPPER" ? (g.span(i) - 1) / 2 : (g.span(i) - 1) - (g.span(i) - 1) / 2;
        g.end[i] = g.span(i) - 1 - g.begin[i];
        continue;
      }
      const int64_t size = spatial[i].value(), out = (size + g.strides[i] - 1) / g.strides[i];
      const int64_t total = std::max<int64_t>(0, (out - 1) * g.strides[i] + g.span(i) - size);
      g.begin[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      g.end[i] = total - g.begin[i];
    }
  }
  return g;
}

Sizes conv_padding(const Geometry& g) {
  Sizes out;
  for (size_t i = g.axes(); i-- > 0;) out.insert(out.end(), {g.begin[i], g.end[i]});
  return out;
}

Tensor windows(const Tensor& x, const Geometry& g, const Operand& fill) {
  const Extents in = x.symbolic_shape();
  std::vector<std::pair<int64_t, int64_t>> amounts(size_t(x.ndim()), {0, 0});
  for (size_t i = 0; i < g.axes(); ++i) {
    if (!in[i + 2].known()) {  // what no window reaches is left out below
      if (g.rounds_up && g.strides[i] > 1)
        throw ValueError(fmt::format("the number of windows along the size {} is rounded up", in[i + 2].to_string()));
      amounts[i + 2] = {g.begin[i], g.end[i]};
      continue;
    }
    const int64_t n = x.size(int(i) + 2), needed = std::max<int64_t>(g.outputs(i, n) - 1, 0) * g.strides[i] + g.span(i);
    amounts[i + 2] = {g.begin[i], needed - n - g.begin[i]};
  }
  Tensor y = x.pad(amounts, fill);
  for (size_t i = 0; i < g.axes(); ++i) {
    y = y.unfold(int(i) + 2, g.span(i), g.strides[i]);
    if (g.dilations[i] > 1) {
      std::vector<Index> indices{Index(Ellipsis{}), Index(Slice{.start = {}, .stop = {}, .step = g.dilations[i]})};
      y = y.get_item(indices);
    }
    if (in[i + 2].known() && g.outputs(i, in[i + 2].value()) == 0) {  // no window fits
      Sizes sizes(size_t(y.ndim()), -1);
      sizes[i + 2] = 0;
      y = y.shrink_to(sizes);
    }
  }
  return y;
}

Tensor convolve(const Call& call, const Tensor& x, const Tensor& weight, const Tensor& bias, std::optional<DType> dtype) {
  const Extents in = x.symbolic_shape();
  const Sizes w = weight.shape();
  if (in.size() < 3 || w.size() != in.size()) call.fail(fmt::format("{} with weights ({})", x.to_string(), fmt::join(w, ", ")));
  const Sizes kernel(w.begin() + 2, w.end());
  Extents spatial;
  spatial.assign(in.begin() + 2, in.end());
  const Geometry g = geometry_of(call, spatial, kernel);
  if (g.kernel != kernel) call.fail(fmt::format("kernel_shape ({}) for weights ({})", fmt::join(g.kernel, ", "), fmt::join(w, ", ")));
  return x.conv2d(
      weight, bias,
      {.groups = call.attribute("group", 1), .stride = g.strides, .dilation = g.dilations, .padding = conv_padding(g), .dtype = dtype});
}

namespace {

Results matmul(Call& c) {
  if (const Tensor y = matmul_of_codes(c.value(0), false, c.value(1), false); y.defined()) return results(y);
  const Tensor& a = c.tensor(0);
  return results(a.matmul(is_from_input(c.value(1)) ? c.tensor(1) : factor_for(a, c.tensor(1))).cast(a.dtype()));
}

Results matmul_integer(Call& c) {
  return results(integer_matmul(c.tensor(0), by_row(zero_point(c, 2)), c.tensor(1), by_column(zero_point(c, 3))));
}
Results conv_integer(Call& c) {
  const Tensor x_zero = c.has(2) ? c.tensor(2).reshape({}) : Tensor();
  Tensor w_zero = c.tensor_or_none(3);
  if (w_zero.defined()) {
    Sizes shape(size_t(c.tensor(1).ndim()), 1);
    if (w_zero.numel() > 1) shape[0] = w_zero.numel();
    w_zero = w_zero.reshape(shape);
  }
  return results(convolve(c, centered(c.tensor(0), x_zero), centered(c.tensor(1), w_zero), {}, DType::int32));
}

Results gemm(Call& c) {
  Tensor a = c.tensor(0), b = c.tensor(1);
  if (c.flag("transA")) a = a.T();
  if (c.flag("transB")) b = b.T();
  const DType dtype = a.dtype();
  Tensor y = matmul_of_codes(c.value(0), c.flag("transA"), c.value(1), c.flag("transB"));
  if (!y.defined()) y = a.matmul(b).cast(dtype);
  const double alpha = c.attribute("alpha", 1.0), beta = c.attribute("beta", 1.0);
  if (alpha != 1) y = (y * alpha).cast(dtype);
  if (!c.has(2) || beta == 0) return results(y);
  return results(y + (beta == 1 ? c.tensor(2) : (c.tensor(2) * beta).cast(dtype)));
}

Results einsum(Call& c) {
  std::string formula = c.attribute("equation", "");
  std::erase(formula, ' ');
  return results(Tensor::einsum(formula, c.tensors()).cast(c.tensor(0).dtype()));
}

Results conv(Call& c) {
  Tensor y = convolve_codes(c, c.value(0), c.value(1));
  if (!y.defined()) return results(convolve(c, c.tensor(0), c.tensor(1), c.tensor_or_none(2)));
  if (!c.has(2)) return results(y);
  Sizes channels(size_t(y.ndim()) - 1, 1);
  channels[0] = -1;
  return results(y + c.tensor(2).reshape(channels));
}

Results conv_transpose(Call& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1);
  const Sizes in = x.shape(), weights = w.shape();
  if (in.size() < 3 || weights.size() != in.size())
    c.fail(fmt::format("({}) with weights ({})", fmt::join(in, ", "), fmt::join(weights, ", ")));
  const size_t n = in.size() - 2;
  const Sizes spatial(in.begin() + 2, in.end());
  const Sizes kernel(weights.begin() + 2, weights.end());
  Geometry g = geometry_of(c, spatial, kernel);
  if (g.kernel != kernel) c.fail(fmt::format("kernel_shape ({}) for weights ({})", fmt::join(g.kernel, ", "), fmt::join(weights, ", ")));
  constexpr int64_t most = int64_t{1} << 24;
  const Sizes more = c.attribute("output_padding", Sizes(n, 0));
  Sizes wanted = c.attribute("output_shape", Sizes());
  if (wanted.size() == n + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (more.size() != n || (!wanted.empty() && wanted.size() != n)) c.fail("output_padding or output_shape of another number of axes");
  for (const Sizes& list : {more, wanted})
    for (int64_t s : list)
      if (s < 0 || s > most) c.fail(fmt::format("a padding or a size of {}", s));
  const std::string mode = c.attribute("auto_pad", "NOTSET");
  if (wanted.empty() && mode.starts_with("SAME"))
    for (size_t i = 0; i < n; ++i) wanted.push_back(spatial[i] * g.strides[i]);
  std::vector<std::pair<int64_t, int64_t>> crop{{0, 0}, {0, 0}};
  for (size_t i = 0; i < n; ++i) {
    const int64_t whole = g.strides[i] * (spatial[i] - 1) + g.span(i), full = whole + more[i];
    if (!wanted.empty()) {
      const int64_t total = std::max<int64_t>(0, full - wanted[i]);
      g.begin[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      g.end[i] = full - g.begin[i] - wanted[i];
    }
    crop.push_back({-g.begin[i], more[i] - g.end[i]});
  }
  Tensor y = x.conv_transpose2d(w, {}, {.groups = c.attribute("group", 1), .stride = g.strides, .dilation = g.dilations}).pad(crop);
  if (c.has(2)) {
    Sizes shape(n + 1, 1);
    shape[0] = y.size(1);
    y = y + c.tensor(2).reshape(shape);
  }
  return results(y);
}

/// Elements between others, weighted by how near they lie; 0 outside. `image` is (batch, groups, channels, height * width), the places are
/// (batch, groups, points).
Tensor sample_bilinear(const Tensor& image, int64_t height, int64_t width, const Tensor& y, const Tensor& x) {
  const Tensor y0 = y.floor(), x0 = x.floor();
  const Tensor wy = y - y0, wx = x - x0;
  const Sizes in = image.shape();
  Tensor sum;
  for (int corner = 0; corner < 4; ++corner) {
    const Tensor cy = y0 + (corner / 2), cx = x0 + (corner % 2);
    const Tensor is_inside = (cy >= 0) & (cy < height) & (cx >= 0) & (cx < width);
    const Tensor weight = (corner / 2 ? wy : 1 - wy) * (corner % 2 ? wx : 1 - wx);
    const Tensor place = is_inside.where(cy * width + cx, 0).cast(DType::int64).unsqueeze(2);
    const Tensor values = image.gather(3, place.expand({in[0], in[1], in[2], place.size(3)}));
    const Tensor part = values * is_inside.where(weight, 0).unsqueeze(2);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

Results deform_conv(Call& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1), &offset = c.tensor(2);
  if (x.ndim() != 4) c.fail("expects two spatial axes");
  const int64_t n = x.size(0), channels = x.size(1), h = x.size(2), width = x.size(3), out_channels = w.size(0);
  const Geometry g = geometry_of(c, {h, width}, {w.size(2), w.size(3)});
  const int64_t groups = c.attribute_within("group", 1, 1, channels), offset_groups = c.attribute_within("offset_group", 1, 1, channels);
  if (channels % groups != 0 || channels % offset_groups != 0 || out_channels % groups != 0)
    c.fail(fmt::format("{} groups and {} of offsets for {} and {} channels", groups, offset_groups, channels, out_channels));
  if (g.kernel != Sizes{w.size(2), w.size(3)}) c.fail("kernel_shape is not that of the weights");
  for (size_t i = 0; i < 2; ++i)
    if (offset.size(int(i) + 2) != g.outputs(i, i == 0 ? h : width)) c.fail(fmt::format("offsets {}", offset.to_string()));
  const int64_t kernel = g.kernel[0] * g.kernel[1], oh = offset.size(2), ow = offset.size(3);
  const auto base = [&](size_t axis, int64_t count, int64_t kernel_size) {
    const Tensor out = Tensor::arange(count, {.dtype = DType::float32}) * g.strides[axis] - g.begin[axis];
    const Tensor in_kernel = Tensor::arange(kernel_size, {.dtype = DType::float32}) * g.dilations[axis];
    return std::pair(out.cast(x.dtype()), in_kernel.cast(x.dtype()));
  };
  const auto [out_y, kernel_y] = base(0, oh, g.kernel[0]);
  const auto [out_x, kernel_x] = base(1, ow, g.kernel[1]);
  const Tensor moved = offset.reshape({n, offset_groups, g.kernel[0], g.kernel[1], 2, oh, ow});
  const auto part = [&](int64_t i) {
    return moved.shrink({{0, n}, {0, offset_groups}, {0, g.kernel[0]}, {0, g.kernel[1]}, {i, i + 1}, {0, oh}, {0, ow}}).squeeze(4);
  };
  const Sizes flat{n, offset_groups, kernel * oh * ow};
  const Tensor at_y = (part(0) + kernel_y.reshape({-1, 1, 1, 1}) + out_y.reshape({1, 1, -1, 1})).reshape(flat);
  const Tensor at_x = (part(1) + kernel_x.reshape({1, -1, 1, 1}) + out_x.reshape({1, 1, 1, -1})).reshape(flat);
  Tensor columns = sample_bilinear(x.reshape({n, offset_groups, channels / offset_groups, h * width}), h, width, at_y, at_x);
  if (c.has(4)) columns = columns * c.tensor(4).reshape({n, offset_groups, 1, kernel * oh * ow});
  const Tensor rows = columns.reshape({n, groups, channels / groups * kernel, oh * ow});
  Tensor y = w.reshape({1, groups, out_channels / groups, channels / groups * kernel}).matmul(rows).reshape({n, out_channels, oh, ow});
  if (c.has(3)) y = y + c.tensor(3).reshape({-1, 1, 1});
  return results(y);
}

Results causal_conv(Call& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1);
  const int64_t before = w.size(-1) - 1, length = x.size(2);
  const Tensor padded = c.has(3) ? Tensor::cat({c.tensor(3), x}, 2) : x.pad({{0, 0}, {0, 0}, {before, 0}});
  Tensor y = padded.conv2d(w, c.tensor_or_none(2), {.groups = x.size(1)});
  const std::string activation = c.attribute("activation", "none");
  if (activation == "silu" || activation == "swish")
    y = y.silu();
  else if (activation != "none")
    c.fail(fmt::format("the activation '{}'", activation));
  return {Value(y.cast(x.dtype())), Value(padded.shrink({{0, x.size(0)}, {0, x.size(1)}, {length, length + before}}))};
}

/// The windows of an image added up where they lie.
Results column_to_image(Call& c) {
  const Tensor& x = c.tensor(0);
  const Sizes image = c.integers(1), block = c.integers(2);
  if (element_count(image) == 0 || element_count(block) == 0) c.fail("an image or blocks without elements");
  const Geometry g = geometry_of(c, image, block);
  if (block != g.kernel || x.ndim() != 3) c.fail(fmt::format("blocks ({}) of {}", fmt::join(block, ", "), x.to_string()));
  const size_t n = image.size();
  // Where each element of each window lies; beyond the image for padding.
  const int64_t outside = element_count(image);
  Tensor place = Tensor::zeros({1, 1}, {.dtype = DType::int64}), is_outside = place.cast(DType::bool_);
  for (size_t i = 0; i < n; ++i) {
    const int64_t windows_here = g.outputs(i, image[i]);
    const Tensor at = (Tensor::arange(block[i], {.dtype = DType::int64}) * g.dilations[i]).reshape({1, -1, 1, 1}) +
                      (Tensor::arange(windows_here, {.dtype = DType::int64}) * g.strides[i] - g.begin[i]).reshape({1, 1, 1, -1});
    const auto join = [&](const Tensor& before) { return before.reshape({before.size(0), 1, before.size(1), 1}); };
    const Sizes shape{place.size(0) * block[i], place.size(1) * windows_here};
    is_outside = (join(is_outside) | ((at < 0) | (at >= image[i]))).reshape(shape);
    place = (join(place) * image[i] + at).reshape(shape);
  }
  const Tensor index = is_outside.where(outside, place).reshape({1, -1});
  const int64_t rows = x.size(0) * x.size(1) / element_count(block), columns = index.size(1);
  const Tensor zeros = Tensor::zeros({rows, outside + 1}, {.dtype = x.dtype()});
  const Tensor sums = zeros.scatter_reduce(1, index.expand({rows, columns}), x.reshape({rows, columns}), ScatterMode::sum);
  Sizes shape{x.size(0), x.size(1) / element_count(block)};
  shape.insert(shape.end(), image.begin(), image.end());
  return results(sums.shrink({{0, rows}, {0, outside}}).reshape(shape));
}

/// Gaussian elimination with the greatest pivot of each column.
Results determinant(Call& c) {
  Tensor rest = c.tensor(0);
  if (rest.ndim() < 2 || rest.size(-1) != rest.size(-2)) c.fail(fmt::format("expects square matrices, got {}", rest.to_string()));
  const auto part = [](const Tensor& x, Index row, Index column) {
    const std::vector<Index> indices{Index(Ellipsis{}), std::move(row), std::move(column)};
    return x.get_item(indices);
  };
  const int64_t n = rest.size(-1);
  Tensor product;
  for (int64_t left = n; left > 0; --left) {
    const Tensor column = part(rest, Index(Slice{}), Index(0));
    const Tensor pivot_row = column.abs().argmax(-1, {.keepdim = true, .dtype = {}});
    const Tensor is_pivot = (Tensor::arange(left, {.dtype = DType::int32}) == pivot_row).unsqueeze(-1);
    const Tensor row = is_pivot.where(rest, 0).sum(-2, {.keepdim = true, .dtype = {}});
    const Tensor pivot = part(row, Index(0), Index(0));
    const Tensor factor = (pivot_row.squeeze(-1) == 0).where(pivot, -pivot);
    product = product.defined() ? product * factor : factor;
    if (left == 1) break;
    const Tensor first = part(rest, Index(Slice{.start = 0, .stop = 1}), Index(Slice{}));
    const Tensor others = part(is_pivot.where(first, rest), Index(Slice{.start = 1, .stop = {}}), Index(Slice{}));
    const Tensor safe = (row == 0).where(1, row);
    const Tensor scale =
        part(others, Index(Slice{}), Index(Slice{.start = 0, .stop = 1})) / part(safe, Index(Slice{}), Index(Slice{.start = 0, .stop = 1}));
    rest = part(others - scale * row, Index(Slice{}), Index(Slice{.start = 1, .stop = {}}));
  }
  return results(product.defined() ? product : rest.sum(AxisList({-1, -2})) + 1);
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "CausalConvWithState", 27, causal_conv},
    {onnx_domain, "Col2Im", 18, column_to_image},
    {onnx_domain, "Conv", 1, conv},
    {onnx_domain, "ConvInteger", 10, conv_integer},
    {onnx_domain, "ConvTranspose", 1, conv_transpose},
    {onnx_domain, "DeformConv", 19, deform_conv},
    {onnx_domain, "Det", 11, determinant},
    {onnx_domain, "Einsum", 12, einsum},
    {onnx_domain, "Gemm", 1, gemm},
    {onnx_domain, "MatMul", 1, matmul},
    {onnx_domain, "MatMulInteger", 10, matmul_integer},
};

}  // namespace

std::span<const OperatorRow> product_operators() { return rows; }

}  // namespace tinygrad::onnx
