#include "renderer/nearest.h"

#include <limits>

#include <gtest/gtest.h>

#include "ops/elementwise.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

using renderer::is_small;
using renderer::rounded_to_nearest;

UOp number(double x) { return constant(DType::float32, x); }
UOp some_float(int32_t slot = 0) { return load(index(param(DType::float32, 4, {.slot = slot}), index_const(0))); }

TEST(Nearest, RoundingIsFoundAndNothingThatIsLikeIt) {
  const UOp x = some_float(), rounded = ops::round(x);
  EXPECT_EQ(rounded_to_nearest(rounded), x);
  EXPECT_FALSE(rounded_to_nearest(ops::floor(x)));
  EXPECT_FALSE(rounded_to_nearest(ops::trunc(x)));
  EXPECT_FALSE(rounded_to_nearest(x));
  for (size_t i = 0; i < 3; ++i) {  // a part that is of another number
    UOps sources(rounded.src().begin(), rounded.src().end());
    sources[i] = ops::round(some_float(1)).src(i);
    EXPECT_FALSE(rounded_to_nearest(rounded.with_src(sources))) << i;
  }
}

TEST(Nearest, ClampedNumbersAreSmall) {
  const auto at_least = [](const UOp& x, double n) { return where(x < number(n), number(n), x); };
  const auto at_most = [](const UOp& x, double n) { return where(number(n) < x, number(n), x); };
  const UOp x = some_float();
  EXPECT_TRUE(is_small(at_most(at_least(x, 0), 255)));
  EXPECT_TRUE(is_small(at_least(at_most(x, 127), -128)));
  EXPECT_TRUE(is_small(ops::trunc(at_most(at_least(x, 0), 255))));
  EXPECT_FALSE(is_small(x));
  EXPECT_FALSE(is_small(at_least(x, 0)));
  EXPECT_FALSE(is_small(at_most(x, 0)));
  EXPECT_FALSE(is_small(at_most(at_least(x, 0), 0x1p31)));
  EXPECT_FALSE(is_small(at_most(at_least(x, 0), std::numeric_limits<double>::quiet_NaN())));
  EXPECT_FALSE(is_small(where(number(255) < some_float(1), number(255), x))) << "another number is compared";
}

}  // namespace
}  // namespace tinygrad
