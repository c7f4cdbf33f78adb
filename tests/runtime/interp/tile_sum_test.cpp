#include "runtime/interp/tile_sum.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "target/target.h"

namespace tinygrad::runtime::interp {
namespace {

/// A row of a and a column of b, zeros but for their first numbers.
struct Factors {
  std::vector<double> a = std::vector<double>(64), b = std::vector<double>(64);
  Factors(std::initializer_list<std::array<double, 2>> pairs) {
    size_t k = 0;
    for (const auto& [x, y] : pairs) a[k] = x, b[k++] = y;
  }
};

double sum(const char* core, const Factors& f, double c) { return tile_sum(*find_tensor_core(core), f.a.data(), f.b.data(), 1, c); }

TEST(TileSum, IntegersOfEachSign) {
  const Factors f{{-128, 255}, {127, -3}, {200, 200}};
  EXPECT_EQ(sum("tdpbssd", f, 7), -128 * 255 - 3 * 127 + 200 * 200 + 7);
}

TEST(TileSum, IntegersWrapAround) {
  EXPECT_EQ(sum("tdpbuud", {{255, 255}}, std::numeric_limits<int32_t>::max()), double(int32_t(0x7fffffffU + 255U * 255U)));
  EXPECT_EQ(sum("tdpbssd", {{-128, 127}}, std::numeric_limits<int32_t>::min()), double(int32_t(0x80000000U - 128U * 127U)));
}

/// 2^24 + 1 is no float32. Even and odd terms are added up apart, and the sum of both comes to what was there.
TEST(TileSum, EvenAndOddTermsAreRoundedApart) {
  const double large = std::ldexp(1.0, 24);
  EXPECT_EQ(sum("tdpbf16ps", {{large, 1}, {0, 0}, {1, 1}, {0, 0}, {1, 1}}, 0), large) << "each 1 is rounded away";
  EXPECT_EQ(sum("tdpbf16ps", {{large, 1}, {1, 1}, {0, 0}, {1, 1}}, 0), large + 2) << "the odd terms are added up first";
  EXPECT_EQ(sum("tdpbf16ps", {{1, 1}, {1, 1}}, large), large + 2) << "so are all before they come to the sum";
}

TEST(TileSum, ProductsAreNotRounded) {
  const double x = 1 + std::ldexp(1.0, -7), square = x * x;
  EXPECT_EQ(sum("tdpbf16ps", {{x, x}, {0, 0}, {-1, 1}}, 0), square - 1);
}

TEST(TileSum, DenormalsAreZeros) {
  const double least = std::ldexp(1.0, -126), half = least / 2;
  EXPECT_EQ(sum("tdpbf16ps", {{half, 2}}, 0), 0) << "as a factor";
  EXPECT_EQ(sum("tdpbf16ps", {{least, 0.5}}, 0), 0) << "as a product";
  EXPECT_EQ(sum("tdpbf16ps", {{least, 1}}, half), least) << "as the sum";
  EXPECT_EQ(sum("tdpbf16ps", {{least, 1}}, -1.5 * least), 0) << "as the result";
  EXPECT_EQ(sum("tdpfp16ps", {{std::ldexp(1.0, -24), 1}}, 0), std::ldexp(1.0, -24)) << "denormal halves are normal as float32";
}

TEST(TileSum, InfinitiesAndNan) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sum("tdpbf16ps", {{inf, 1}}, 0), inf);
  EXPECT_TRUE(std::isnan(sum("tdpbf16ps", {{inf, 0}}, 0)));
  EXPECT_TRUE(std::isnan(sum("tdpbf16ps", {{inf, 1}, {inf, -1}}, 0)));
}

}  // namespace
}  // namespace tinygrad::runtime::interp
