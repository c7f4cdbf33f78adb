#include "ops/movement.h"

#include <tinygrad/errors.h>

#include "support.h"

namespace tinygrad::ops {
namespace {

using MovementTest = OpsTest;

TEST_F(MovementTest, NothingToDoIsTheSameNode) {
  const UOp x = counting({2, 3});
  EXPECT_EQ(ops::reshape(x, {2, -1}), x);
  EXPECT_EQ(ops::expand(x, {-1, 3}), x);
  EXPECT_EQ(ops::permute(x, {0, -1}), x);
  EXPECT_EQ(ops::flip(x, {}), x);
  EXPECT_EQ(ops::shrink_to(x, {2, -1}), x);
  EXPECT_EQ(ops::pad(x, {{0, 0}, {0, 0}}), x);
  EXPECT_EQ(pad_to(x, {-1, 3}), x);
  EXPECT_EQ(squeeze(x), x);
  EXPECT_EQ(ops::repeat(x, {1, 1}), x);
}

TEST_F(MovementTest, Reshape) {
  const UOp x = counting({2, 6});
  expect_shape(ops::reshape(x, {3, -1}), "(3, 4)");
  expect_shape(ops::flatten(counting({2, 3, 4}), 1), "(2, 12)");
  expect_shape(ops::unflatten(x, 1, {-1, 2}), "(2, 3, 2)");
  expect_shape(squeeze(counting({1, 3, 1})), "(3,)");
  expect_shape(squeeze(counting({1, 3, 1}), -1), "(1, 3)");
  expect_shape(unsqueeze(x, -1), "(2, 6, 1)");
  const UOp n = variable("n", 1, 8);
  const UOp symbolic = tinygrad::expand(constant(DType::float32, 1), Shape{SInt(n), 4});
  EXPECT_EQ(shape_of(ops::reshape(symbolic, {-1, 2}))[0], SInt(n) * 2);
  EXPECT_EQ(message_of<ShapeError>([&] { ops::reshape(x, {5, 2}); }), "reshape: cannot view (2, 6) as (5, 2): 12 elements against 10");
  EXPECT_EQ(message_of<ShapeError>([&] { ops::reshape(x, {5, -1}); }),
            "reshape: cannot infer the -1 of (5, -1) from (2, 6): the other sizes do not divide 12 elements");
  EXPECT_THROW(ops::reshape(x, {-1, -1}), ShapeError);
}

TEST_F(MovementTest, OrderAndExpand) {
  const UOp x = counting({2, 3});
  expect_values(ops::permute(x, {1, 0}), {0, 3, 1, 4, 2, 5});
  expect_values(transpose(x), {0, 3, 1, 4, 2, 5});
  expect_values(ops::flip(x, {-1}), {2, 1, 0, 5, 4, 3});
  expect_values(ops::expand(counting({2, 1}), {-1, 2}), {0, 0, 1, 1});
  expect_values(ops::expand(counting({2}), {2, 2}), {0, 1, 0, 1});
  EXPECT_EQ(message_of<IndexError>([&] { transpose(x, 0, 2); }), "transpose: axis 2 is out of range, expects -2 to 1");
  EXPECT_EQ(message_of<ValueError>([&] { ops::permute(x, {1, 1}); }), "permute: axis 1 is given twice");
  EXPECT_THROW(ops::expand(x, {4, 3}), ShapeError);
}

TEST_F(MovementTest, ShrinkAndPad) {
  const UOp x = counting({2, 3});
  expect_values(ops::shrink(x, {{1, 2}, {0, 2}}), {3, 4});
  expect_values(shrink_axis(x, -1, 1, 3), {1, 2, 4, 5});
  expect_values(ops::pad(x, {{0, 0}, {1, 0}}), {0, 0, 1, 2, 0, 3, 4, 5});
  expect_values(ops::pad(x, {{0, 0}, {1, 0}}, 9), {9, 0, 1, 2, 9, 3, 4, 5});
  expect_values(ops::pad(x, {{0, 0}, {-1, 1}}, 9), {1, 2, 9, 4, 5, 9});
  expect_values(pad_to(x, {3, -1}, -1), {0, 1, 2, 3, 4, 5, -1, -1, -1});
  expect_values(ops::pad(x, {{0, 0}, {2, 1}}, 0, PadMode::reflect), {2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4});
  expect_values(ops::pad(x, {{0, 0}, {1, 2}}, 0, PadMode::replicate), {0, 0, 1, 2, 2, 2, 3, 3, 4, 5, 5, 5});
  expect_values(ops::pad(x, {{0, 0}, {1, 2}}, 0, PadMode::circular), {2, 0, 1, 2, 0, 1, 5, 3, 4, 5, 3, 4});
  EXPECT_EQ(message_of<ShapeError>([&] { ops::shrink(x, {{0, 3}, {0, 3}}); }), "shrink: [0, 3) is not within axis 0 of (2, 3)");
  EXPECT_THROW(ops::pad(x, {{0, 0}, {3, 0}}, 0, PadMode::reflect), ValueError);
}

TEST_F(MovementTest, JoinAndSplit) {
  const UOp a = counting({2, 2}), b = tensor({2, 1}, {0, 10});
  const UOp both[] = {a, b};
  expect_values(cat(both, 1), {0, 1, 0, 2, 3, 10});
  const UOp zeros[] = {tensor({1}, {-0.0}), tensor({1}, {-0.0})};
  for (double v : values(cat(zeros))) EXPECT_TRUE(std::signbit(v));
  const UOp same[] = {a, a};
  expect_shape(ops::stack(same), "(2, 2, 2)");
  expect_values(ops::stack(same, -1), {0, 0, 1, 1, 2, 2, 3, 3});
  const auto parts = split(counting({5}), 2);
  ASSERT_EQ(parts.size(), 3u);
  expect_values(parts[2], {4});
  EXPECT_EQ(chunk(counting({6}), 4).size(), 3u);
  const UOp bad[] = {a, counting({3, 2})};
  EXPECT_EQ(message_of<ShapeError>([&] { cat(bad, 1); }), "cat: cannot join (2, 2) and (3, 2) along axis 1: only that axis may differ");
}

TEST_F(MovementTest, Repeats) {
  const UOp x = counting({2, 2});
  expect_values(ops::repeat(x, {1, 2}), {0, 1, 0, 1, 2, 3, 2, 3});
  expect_values(ops::repeat(x, {2, 1, 1}), {0, 1, 2, 3, 0, 1, 2, 3});
  expect_values(repeat_interleave(x, 2), {0, 0, 1, 1, 2, 2, 3, 3});
  expect_values(repeat_interleave(x, 2, 0), {0, 1, 0, 1, 2, 3, 2, 3});
  const int64_t one[] = {1}, both[] = {1, -1};
  expect_values(roll(counting({4}), one), {3, 0, 1, 2});
  expect_values(roll(counting({2, 3}), both, {0, 1}), {4, 5, 3, 1, 2, 0});
}

TEST_F(MovementTest, Diagonals) {
  expect_values(diag(tensor({3}, {1, 2, 3})), {1, 0, 0, 0, 2, 0, 0, 0, 3});
  const UOp x = counting({3, 4});
  expect_values(diagonal(x), {0, 5, 10});
  expect_values(diagonal(x, 2), {2, 7});
  expect_values(diagonal(x, -1), {4, 9});
  expect_shape(diagonal(x, 9), "(0,)");
  expect_values(diagonal(counting({2, 2, 2}), 0, 0, 2), {0, 5, 2, 7});
  const UOp axes[] = {counting({2}), counting({3})};
  const auto grid = meshgrid(axes);
  expect_values(grid[0], {0, 0, 0, 1, 1, 1});
  expect_values(grid[1], {0, 1, 2, 0, 1, 2});
  expect_shape(meshgrid(axes, true)[0], "(3, 2)");
}

TEST_F(MovementTest, Unfold) {
  expect_values(unfold(counting({5}), 0, 3, 2), {0, 1, 2, 2, 3, 4});
  expect_shape(unfold(counting({2, 7, 3}), 1, 3, 1), "(2, 5, 3, 3)");
}

struct WindowCase {
  int64_t size, kernel, stride, dilation;
};

class PoolTest : public OpsTest, public ::testing::WithParamInterface<WindowCase> {};

TEST_P(PoolTest, WindowsOfTwoAxes) {
  const auto [n, k, s, d] = GetParam();
  const int64_t m = n + 1, kernel[] = {k, 2}, stride[] = {s, 1}, dilation[] = {d, 1};
  const int64_t out = (n - d * (k - 1) - 1) / s + 1;
  Values want;
  for (int64_t o = 0; o < out; ++o)
    for (int64_t p = 0; p < m - 1; ++p)
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < 2; ++j) want.push_back(double((o * s + i * d) * m + p + j));
  expect_values(pool(counting({n, m}), kernel, stride, dilation), want);
}

INSTANTIATE_TEST_SUITE_P(All, PoolTest,
                         ::testing::Values(WindowCase{5, 3, 1, 1}, WindowCase{6, 2, 2, 1}, WindowCase{7, 2, 2, 1}, WindowCase{7, 3, 2, 1},
                                           WindowCase{7, 3, 1, 2}, WindowCase{9, 2, 3, 3}, WindowCase{5, 1, 1, 1}, WindowCase{5, 1, 3, 1},
                                           WindowCase{5, 2, 7, 1}, WindowCase{5, 2, 7, 2}, WindowCase{4, 4, 1, 1}, WindowCase{8, 2, 5, 2}));

TEST_F(MovementTest, PoolErrors) {
  const int64_t three = 3, one = 1, zero = 0;
  EXPECT_THROW(pool(counting({2}), std::span(&three, 1), std::span(&one, 1), std::span(&one, 1)), ShapeError);
  EXPECT_THROW(pool(counting({2}), std::span(&one, 1), std::span(&zero, 1), std::span(&one, 1)), ValueError);
}

}  // namespace
}  // namespace tinygrad::ops
