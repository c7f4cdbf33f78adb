// The mean of an index expression over the loops that it depends on.
#include <gtest/gtest.h>

#include "symbolic/mean.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::symbolic {
namespace {

int64_t value(const UOp& u) { return const_value(u)->as_int(); }

TEST(Mean, OfFewIterationsAll) {
  const UOp i = range(9, 0), j = range(5, 1);
  EXPECT_EQ(value(mean(i * 10)), 40);
  EXPECT_EQ(value(mean(i * 10 + j)), 42);
  EXPECT_EQ(value(mean(max(index_const(80) - i * 10, index_const(60)) * 9)), 570);  // 80, 70 and seven times 60
}

TEST(Mean, OfManyIterationsSomeSpreadEvenly) {
  const UOp i = range(100000, 0), j = range(100000, 1);
  EXPECT_NEAR(double(value(mean(i))), 49999.5, 1000);
  EXPECT_NEAR(double(value(mean(i + j * 2))), 3 * 49999.5, 10000);
}

TEST(Mean, OfBoundedLoopsAndUnknownSizesTheMiddle) {
  const UOp i = range(21, 0), inner = range(i + 1, {.id = 1}), n = variable(Symbol("n"), 1, 100);
  EXPECT_EQ(value(mean(inner)), 5);  // of 11 iterations at i = 10
  EXPECT_EQ(mean(i + n), simplify_index(n + 10));
  EXPECT_EQ(mean(n), n);
}

TEST(Mean, OfWhatDataDecideTheMiddleOfItsBounds) {
  const UOp data = load(index(buffer(DType::int32, {.id = 1, .size = 4, .device = "CPU"}), index_const(2)));
  const UOp size = cast(data & constant(DType::int32, int64_t(15)), DType::index);
  EXPECT_EQ(value(mean(size)), 7);
  EXPECT_EQ(value(mean(size + range(5, 0))), 9);
}

}  // namespace
}  // namespace tinygrad::symbolic
