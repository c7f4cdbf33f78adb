#include "ops/creation.h"

#include <tinygrad/errors.h>

#include "shape/device.h"
#include "support.h"

namespace tinygrad::ops {
namespace {

using CreationTest = OpsTest;

Scalar number(auto v) { return Scalar::of(v); }

TEST_F(CreationTest, FullTakesTheDtypeOfTheNumber) {
  const OpsContext ctx{.default_float = DType::float16, .default_int = DType::int64, .device = "CPU"};
  EXPECT_EQ(full({2}, 1, {}, ctx).dtype(), DType::int64);
  EXPECT_EQ(full({2}, 1.0, {}, ctx).dtype(), DType::float16);
  EXPECT_EQ(full({2}, true, {}, ctx).dtype(), DType::bool_);
  EXPECT_EQ(full({2}, 1, DType::uint8, ctx).dtype(), DType::uint8);
  EXPECT_EQ(device_of(full({2}, 1, {}, ctx)), Symbol("CPU"));
  EXPECT_EQ(device_of(arange(3, {}, ctx)), Symbol("CPU"));
  expect_values(full({2, 2}, 7), {7, 7, 7, 7});
  expect_values(zeros({2}), {0, 0});
  expect_values(ones_like(counting({2, 1}, DType::int8)), {1, 1});
  EXPECT_EQ(ones_like(counting({2}, DType::int8)).dtype(), DType::int8);
  EXPECT_THROW(full({-1}, 0), ShapeError);
}

TEST_F(CreationTest, Arange) {
  expect_values(arange(4), {0, 1, 2, 3});
  EXPECT_EQ(arange(4).dtype(), DType::int32);
  expect_values(arange(number(5), number(-2), number(-3)), {5, 2, -1});
  expect_values(arange(number(0.0), number(1.0), number(0.25)), {0, 0.25, 0.5, 0.75});
  EXPECT_EQ(arange(number(0.0), number(1), number(1)).dtype(), DType::float32);
  expect_shape(arange(number(3), number(3), number(1)), "(0,)");
  constexpr int64_t far = int64_t{1} << 62;
  expect_shape(arange(number(-far), number(far), number(far / 2)), "(4,)");
  expect_shape(arange(number(far), number(-far), number(-far - 1)), "(2,)");
  EXPECT_THROW(arange(number(-far), number(far), number(1)), ValueError);
  expect_shape(arange(number(3), number(1), number(1)), "(0,)");
  expect_values(arange(number(int64_t{3000000000}), number(int64_t{3000000002}), number(1)), {3000000000.0, 3000000001.0});
  expect_values(arange(number(250), number(256), number(2), DType::uint8), {250, 252, 254});
  EXPECT_THROW(arange(number(0), number(3), number(0)), ValueError);
  EXPECT_THROW(arange(number(0), number(300), number(1), DType::uint8), ValueError);
  expect_shape(arange(SInt(variable("n", 1, 4))), "(n,)");
}

TEST_F(CreationTest, Grids) {
  expect_values(linspace(0, 1, 5), {0, 0.25, 0.5, 0.75, 1});
  expect_values(linspace(3, 9, 1), {3});
  expect_values(linspace(0, 10, 3, DType::int32), {0, 5, 10});
  expect_values(eye(2), {1, 0, 0, 1});
  expect_values(eye(2, SInt(3)), {1, 0, 0, 0, 1, 0});
  expect_values(triu(counting({3, 3})), {0, 1, 2, 0, 4, 5, 0, 0, 8});
  expect_values(tril(counting({3, 3})), {0, 0, 0, 3, 4, 0, 6, 7, 8});
  expect_values(triu(counting({2, 3}), 1), {0, 1, 2, 0, 0, 5});
  expect_values(tril(counting({2, 3}), -1), {0, 0, 0, 3, 0, 0});
  EXPECT_THROW(tril(counting({3})), ShapeError);
}

}  // namespace
}  // namespace tinygrad::ops
