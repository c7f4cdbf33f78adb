#include "frontend/torch/strided.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

namespace tinygrad::frontend::torch {

namespace {

struct Axis {
  int64_t size, stride;
  size_t place;  // among all axes
};

/// Axes that step, those with the greatest strides first.
std::vector<Axis> stepping_axes(const Sizes& sizes, const Sizes& strides) {
  std::vector<Axis> out;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1 && strides[i] > 0) out.push_back({sizes[i], strides[i], i});
  std::ranges::stable_sort(out, std::greater(), &Axis::stride);
  return out;
}

Tensor part_of_last(const Tensor& x, int64_t begin, int64_t end, int64_t step) {
  if (begin == 0 && end == x.size(-1) && step == 1) return x;
  return x[{Ellipsis{}, Slice{.start = begin, .stop = end, .step = step}}];
}

/// The stepping axes in their order, as a view; undefined where that cannot be one. Each but the last is cut off the last axis of what is
/// there: a part of it that begins `before` elements early, so that it ends inside, is `size` rows of `stride`.
Tensor nested_view(Tensor x, int64_t offset, std::span<const Axis> axes) {
  for (size_t i = 0; i + 1 < axes.size(); ++i) {
    const auto [size, stride, place] = axes[i];
    int64_t span = 1;  // of the axes inside
    for (const Axis& inner : axes.subspan(i + 1)) span += (inner.size - 1) * inner.stride;
    const int64_t length = x.size(-1);
    if (size > length / stride) return {};
    const int64_t before = std::max<int64_t>(0, offset + size * stride - length);
    if (before > offset || before + span > stride) return {};
    Extents shape = x.shape();
    shape.back() = size;
    shape.push_back(stride);
    x = part_of_last(x, offset - before, offset - before + size * stride, 1).reshape(shape);
    offset = before;
  }
  const Axis& last = axes.back();
  return part_of_last(x, offset, offset + (last.size - 1) * last.stride + 1, last.stride);
}

/// A copy of the elements of stepping axes, in their order.
Tensor gathered(const Tensor& vector, int64_t offset, std::span<const Axis> axes) {
  Tensor index = Tensor::full({}, offset, {.dtype = DType::int64, .device = vector.device()});
  for (const auto& [size, stride, place] : axes)
    index = index.unsqueeze(-1) + Tensor::arange(size, {.dtype = DType::int64, .device = vector.device()}) * stride;
  return vector[{index}];
}

}  // namespace

std::optional<int64_t> strided_end(int64_t offset, const Sizes& sizes, const Sizes& strides) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return 0;
  int64_t last = offset, step = 0;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last)) return {};
  return last == INT64_MAX ? std::nullopt : std::optional(last + 1);
}

Tensor strided(const Tensor& vector, int64_t offset, const Sizes& sizes, const Sizes& strides) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return vector.shrink({{0, 0}}).reshape(sizes);
  const std::vector<Axis> axes = stepping_axes(sizes, strides);
  if (axes.empty()) return vector.shrink({{offset, offset + 1}}).reshape(Sizes(sizes.size(), 1)).expand(sizes);
  Tensor x = nested_view(vector, offset, axes);
  if (!x.defined()) x = gathered(vector, offset, axes);
  // In the order of the sizes, then those that do not step.
  std::vector<int> order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int i) { return axes[static_cast<size_t>(i)].place; });
  if (!std::ranges::is_sorted(order)) x = x.permute(order);
  Sizes stepping(sizes.size(), 1);
  for (const Axis& axis : axes) stepping[axis.place] = axis.size;
  if (axes.size() != sizes.size()) x = x.reshape(stepping);
  return stepping == sizes ? x : x.expand(sizes);
}

}  // namespace tinygrad::frontend::torch
