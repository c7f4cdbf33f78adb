#include "ops/winograd.h"

#include <vector>

#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "shape/shape.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

constexpr int64_t kResults = 4, kWindow = 6;  // of a tile, along an axis

template <size_t rows, size_t columns>
using Matrix = double[rows][columns];

constexpr Matrix<6, 6> kInput = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                 {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
constexpr Matrix<6, 3> kKernel = {{1.0 / 4, 0, 0},
                                  {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                  {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                  {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                  {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                  {0, 0, 1}};
constexpr Matrix<4, 6> kOutput = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};

/// The matrix times the vectors along an axis, written out: most of its numbers are 0, 1 or -1.
template <size_t rows, size_t columns>
UOp along_axis(const Matrix<rows, columns>& matrix, const UOp& x, int axis) {
  std::vector<UOp> out;
  for (const auto& row : matrix) {
    UOp total;
    for (size_t i = 0; i < columns; ++i) {
      if (row[i] == 0) continue;
      const UOp part = shrink_axis(x, axis, int64_t(i), int64_t(i) + 1);
      const UOp term = row[i] == 1 ? part : mul(part, constant(x.dtype(), row[i]));
      total = total ? add(total, term) : term;
    }
    out.push_back(total);
  }
  return cat(out, axis);
}

/// Along both of the last two axes.
template <size_t rows, size_t columns>
UOp transformed(const Matrix<rows, columns>& matrix, const UOp& x) {
  const int last = int(rank_of(x)) - 1;
  return along_axis(matrix, along_axis(matrix, x, last - 1), last);
}

}  // namespace

UOp winograd_conv2d(const UOp& x, const UOp& weight, int64_t groups) {
  const Shape xs = shape_of(x), ws = shape_of(weight);
  const int64_t height = xs[2].value() - 2, width = xs[3].value() - 2;
  const int64_t down = (height + kResults - 1) / kResults, across = (width + kResults - 1) / kResults;
  const UOp padded = pad_axis(pad_axis(x, 2, 0, down * kResults - height), 3, 0, across * kResults - width);
  const int64_t window[] = {kWindow, kWindow}, step[] = {kResults, kResults}, dilation[] = {1, 1};
  const SInt out_per_group = floor_div(ws[0], groups);
  // (batch, groups, out, in, down, across, 6, 6); each factor is used by many products.
  const UOp tiles = contiguous(transformed(kInput, pool(padded, window, step, dilation)));
  const UOp left = ops::reshape(tiles, Shape{xs[0], groups, 1, ws[1], down, across, kWindow, kWindow});
  const UOp kernels = contiguous(transformed(kKernel, weight));
  const UOp right = ops::reshape(kernels, Shape{1, groups, out_per_group, ws[1], 1, 1, kWindow, kWindow});
  const UOp products = contiguous(sum(mul(left, right), Axes{3}, false, x.dtype()));
  const UOp results = ops::permute(transformed(kOutput, products), Axes{0, 1, 2, 3, 5, 4, 6});
  const UOp image = ops::reshape(results, Shape{xs[0], ws[0], down * kResults, across * kResults});
  return shrink_axis(shrink_axis(image, 2, 0, height), 3, 0, width);
}

}  // namespace tinygrad::ops
