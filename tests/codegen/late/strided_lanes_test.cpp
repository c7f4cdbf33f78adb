// Vectors of every second to fourth element: one access of the run that they lie in.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "codegen/opt/parse_opts.h"
#include "codegen/split_range.h"
#include "program/run_kernel.h"
#include "shape/shape.h"

namespace tinygrad::codegen {
namespace {

using namespace test;

/// out[i] = the sum of the elements stride * i + k of a, weighted. `a` ends with the last that is read.
UOp strided(int64_t n, int64_t stride, const std::vector<int64_t>& taps) {
  const UOp i = loop(n, 0), a = arg(1, (n - 1) * stride + taps.back() + 1);
  UOp sum;
  for (const int64_t k : taps) {
    const UOp term = read(a, i * stride + k) * constant(DType::float32, double(k + 1));
    sum = sum ? sum + term : term;
  }
  return kernel({ended(write(arg(0, n), i, sum), {i})});
}

/// out[parts * i + k] = (k + 1) * a[i], up to a size.
UOp dealt(int64_t n, int64_t parts, int64_t size) {
  const UOp i = loop(n, 0), k = loop(parts, 1), at = i * parts + k;
  const UOp value = read(arg(1, n), i) * cast(k + 1, DType::float32);
  const UOp place = size == n * parts ? index(arg(0, size), at) : UOp(Op::INDEX, DType::float32, {arg(0, size), at, at < size}, IndexArg{});
  return kernel({ended(store(place, value), {i, k})});
}

/// out[o, x] = sum over c and k of a[c, stride * x + k] * w[o, c, k]
UOp strided_convolution(int64_t out, int64_t n, int64_t channels, int64_t taps, int64_t stride) {
  const UOp o = loop(out, 0), x = loop(n, 1), c = reduce_loop(channels, 2), k = reduce_loop(taps, 3);
  const int64_t row = (n - 1) * stride + taps;
  const UOp product =
      read(arg(1, channels * row), c * row + x * stride + k) * read(arg(2, out * channels * taps), (o * channels + c) * taps + k);
  return kernel({ended(write(arg(0, out * n), o * n + x, reduce_over(Op::ADD, product, {c, k})), {o, x})});
}

void expect_same(const UOp& kernel, const char* opts) {
  SCOPED_TRACE(opts);
  for (const char* arch : {"x86-64-v3", "znver4", "neoverse-n1"})
    EXPECT_EQ(difference_on_interp(kernel, parse_opts(opts), cpu_target(arch)), "") << arch;
  for (const char* device : {"CPU:LLVM", "CPU:CLANG"}) EXPECT_EQ(difference_on_cpu(kernel, parse_opts(opts), device), "") << device;
}

UOp lowered(const UOp& kernel, const char* opts) {
  return full_rewrite(with_opts(kernel, parse_opts(opts)), cpu_target("znver4"), {.noopt = true, .spec = 3});
}

TEST(StridedLanes, LoadsOfARunAreOne) {
  for (const int64_t stride : {2, 3, 4})
    for (const int64_t n : {24, 21}) {
      SCOPED_TRACE(fmt::format("{} of stride {}", n, stride));
      for (const std::vector<int64_t>& taps : {std::vector<int64_t>{0, 1}, {1}, {0, 1, 2, 3}, {0, 5}})
        expect_same(strided(n, stride, taps), "LANE(0,8)");
    }
  EXPECT_EQ(count(lowered(strided(24, 2, {0, 1}), "LANE(0,8)"), Op::LOAD), 1u);
  EXPECT_EQ(count(lowered(strided(24, 4, {0, 1, 2, 3, 5}), "LANE(0,8)"), Op::LOAD), 2u);
  EXPECT_EQ(count(lowered(strided(24, 5, {0, 1}), "LANE(0,8)"), Op::LOAD), 2u);
}

TEST(StridedLanes, StoresThatFillARunAreOne) {
  for (const int64_t parts : {2, 3, 4})
    for (const int64_t n : {24, 21})
      for (const int64_t size : {n * parts, n * parts - 1}) {
        SCOPED_TRACE(fmt::format("{} times {}, {} of them", n, parts, size));
        expect_same(dealt(n, parts, size), fmt::format("LANE(0,8) UPCAST(1,{})", parts).c_str());
      }
  EXPECT_EQ(count(lowered(dealt(24, 4, 96), "LANE(0,8) UPCAST(1,4)"), Op::STORE), 1u);
  EXPECT_EQ(count(lowered(dealt(24, 4, 94), "LANE(0,8) UPCAST(1,4)"), Op::STORE), 2u);  // in the loop, and at the end
}

TEST(StridedLanes, WindowsLieByTheirPhases) {
  for (const int64_t stride : {2, 3})
    for (const int64_t taps : {3, 7}) {
      SCOPED_TRACE(fmt::format("{} taps, stride {}", taps, stride));
      expect_same(strided_convolution(6, 48, 3, taps, stride), "LANE(1,8) UPCAST(0,2) STAGE(0,1,thread,1)");
      expect_same(strided_convolution(6, 48, 3, taps, stride), "LANE(1,8) UPCAST(0,3) UPCAST(1,3) STAGE(1,1,thread,1) STAGE(0,2,thread,1)");
    }
  // What the inner loop loads of the tile are vectors as they lie.
  const UOp linear = lowered(strided_convolution(6, 48, 3, 3, 2), "LANE(1,16) UPCAST(0,6) STAGE(0,1,thread,1) UNROLL(3,3)");
  for (const UOp& u : linear.src()) {
    if (!u.is(Op::LOAD) || !u.src(0).src(0).is(Op::BUFFER)) continue;
    EXPECT_EQ(u.src(0).arg_as<IndexArg>().width, 16) << print_expr(u);
  }
}

/// out[c, y, x] = sum over j and k of a[c, stride * y + j - taps / 2, stride * x + k - taps / 2] * w[c, j, k], where `a` has such elements.
UOp padded_windows(int64_t channels, int64_t side, int64_t taps, int64_t stride) {
  const int64_t n = (side + 2 * (taps / 2) - taps) / stride + 1;
  const UOp c = loop(channels, 0), y = loop(n, 1), x = loop(n, 2), j = reduce_loop(taps, 3), k = reduce_loop(taps, 4);
  const UOp row = y * stride + j - taps / 2, column = x * stride + k - taps / 2, first = index_const(-1), end = index_const(side);
  const UOp valid = (first < row) & (row < end) & (first < column) & (column < end);
  const UOp a = load(mask_index(index(arg(1, channels * side * side), (c * side + row) * side + column), valid));
  const UOp product = a * read(arg(2, channels * taps * taps), (c * taps + j) * taps + k);
  return kernel({ended(write(arg(0, channels * n * n), (c * n + y) * n + x, reduce_over(Op::ADD, product, {j, k})), {c, y, x})});
}

TEST(StridedLanes, WindowsOfMaskedVectorsAreShared) {
  for (const int64_t side : {9, 14})
    for (const int64_t stride : {1, 2})
      for (const char* opts : {"LANE(2,4) STAGE(0,1,thread,1)", "LANE(2,4) UPCAST(1,2) UNROLL(4,3) STAGE(1,1,thread,1)"}) {
        SCOPED_TRACE(fmt::format("side {}, stride {}", side, stride));
        expect_same(padded_windows(2, side, 3, stride), opts);
      }
  expect_same(padded_windows(2, 14, 3, 1), "LANE(2,4) UPCAST(2,3) STAGE(0,1,thread,1)");
  expect_same(padded_windows(1, 13, 5, 2), "LANE(2,8) STAGE(0,1,thread,1)");
  // Nothing behind the argument is read where no padding says so.
  for (const int64_t n : {5, 13, 21}) expect_same(strided_convolution(2, n, 2, 5, 2), "LANE(1,8) STAGE(0,1,thread,1)");

  // A row is filled once for all taps: the two phases of each channel, by whole vectors.
  const auto elements = [](int64_t n) {
    const UOp linear = lowered(strided_convolution(2, n, 2, 5, 2), "LANE(1,8) STAGE(0,1,thread,1)");
    int64_t most = 0;
    for (const UOp& u : linear.src())
      if (u.is(Op::BUFFER)) most = std::max(most, shape_of(u)[0].value());
    return most;
  };
  EXPECT_LE(elements(13), elements(16));
  EXPECT_EQ(elements(16), 2 * 2 * 32);
}

/// Windows of rows and of columns, of which a mask of the stores bounds both loops together.
UOp cut_windows(int64_t side, int64_t taps) {
  const int64_t n = side - taps + 1;
  const UOp y = loop(n, 0), x = loop(n, 1), j = reduce_loop(taps, 2), k = reduce_loop(taps, 3), valid = x + y < n + 2;
  const UOp a = load(mask_index(index(arg(1, side * side), (y + j) * side + x + k), valid));
  const UOp sum = reduce_over(Op::ADD, a * read(arg(2, taps * taps), j * taps + k), {j, k});
  return kernel({ended(store(mask_index(index(arg(0, n * n), y * n + x), valid), sum), {y, x})});
}

TEST(StridedLanes, MasksOfTwoWindowsBoundNeither) {
  for (const char* opts :
       {"LANE(1,8) STAGE(0,1,thread,1)", "LANE(1,8) UPCAST(0,3) STAGE(0,1,thread,1)", "LANE(1,8) UPCAST(0,9) STAGE(1,1,thread,1)"})
    expect_same(cut_windows(11, 3), opts);
}

TEST(StridedLanes, ShortRowsAreMaskedVectors) {
  for (const int64_t n : {5, 6, 7}) {
    expect_same(matmul(6, n, 9), "LANE(1,8)");
    expect_same(matmul(5, 8, n), "LANE(2,8)");
    expect_same(strided(n, 2, {0, 1}), "LANE(0,8)");
  }
  EXPECT_THROW(lowered(matmul(6, 4, 9), "LANE(1,8)"), ValueError);
}

}  // namespace
}  // namespace tinygrad::codegen
