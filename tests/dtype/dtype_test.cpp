#include <tinygrad/dtype.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <tinygrad/errors.h>

#include "dtype/scalar.h"

namespace tinygrad {
namespace {

static_assert(dtype_of<bool>() == dtypes::bool_);
static_assert(dtype_of<char>() == dtypes::int8);
static_assert(dtype_of<long>() == dtypes::int64 && dtype_of<long long>() == dtypes::int64);
static_assert(dtype_of<unsigned>() == dtypes::uint32);
static_assert(dtype_of<double>() == dtypes::float64);
static_assert(dtype_of<bfloat16>() == dtypes::bfloat16 && dtype_of<fp8e4m3>() == dtypes::fp8e4m3);
static_assert(!Element<void*> && !Element<long double>);
static_assert(sizeof(float16) == 2 && sizeof(fp8e5m2) == 1 && std::is_trivial_v<float16>);

std::vector<DType> valued() {
  std::vector<DType> all(std::begin(dtypes::all), std::end(dtypes::all));
  all.push_back(DType::index);
  return all;
}

TEST(DTypes, Facts) {
  EXPECT_EQ(itemsize(DType::bool_), 1u);
  EXPECT_EQ(bitsize(DType::bool_), 1);
  EXPECT_EQ(itemsize(DType::bfloat16), 2u);
  EXPECT_EQ(itemsize(DType::index), 8u);
  EXPECT_EQ(itemsize(DType::void_), 0u);
  EXPECT_EQ(finfo(DType::bfloat16).exponent_bits, 8);
  EXPECT_EQ(finfo(DType::float64).mantissa_bits, 52);
  EXPECT_THROW(finfo(DType::int32), DTypeError);
  EXPECT_EQ(name(DType::float32), "float");
  EXPECT_EQ(repr(DType::float32), "dtypes.float32");
}

TEST(DTypes, GroupsArePartition) {
  for (DType d : valued()) {
    EXPECT_EQ(is_float(d) + is_signed(d) + is_unsigned(d) + is_bool(d), 1) << repr(d);
    EXPECT_EQ(is_int(d), is_signed(d) || is_unsigned(d)) << repr(d);
  }
  EXPECT_TRUE(is_int(DType::index) && is_signed(DType::index));
  EXPECT_FALSE(is_float(DType::void_) || is_int(DType::void_) || is_bool(DType::void_));
}

TEST(DTypes, PrioritiesAreDistinctAndOrderFloatsAboveIntegers) {
  std::set<int> seen;
  for (DType d : valued()) EXPECT_EQ(seen.insert(priority(d)).second, !is_fp8_fnuz(d)) << repr(d);
  EXPECT_EQ(priority(DType::fp8e4m3fnuz), priority(DType::fp8e4m3));
  EXPECT_EQ(priority(DType::fp8e5m2fnuz), priority(DType::fp8e5m2));
  EXPECT_EQ(*seen.begin(), priority(DType::bool_));
  EXPECT_LT(priority(DType::void_), priority(DType::bool_));
  EXPECT_LT(priority(DType::uint64), priority(DType::fp8e4m3));
}

TEST(DTypes, ParseReadsNamesAliasesAndRepr) {
  for (int i = 0; i < dtype_count; ++i) {
    const auto d = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(repr(d)), d);
  }
  EXPECT_EQ(parse_dtype("half"), DType::float16);
  EXPECT_EQ(parse_dtype("FLOAT"), DType::float32);
  EXPECT_EQ(parse_dtype("dtypes.long"), DType::int64);
  EXPECT_EQ(parse_dtype("uchar"), DType::uint8);
}

TEST(DTypes, ParseRefusesWithTheNameAndAnExample) {
  try {
    parse_dtype("float33");
    FAIL();
  } catch (const DTypeError& e) {
    EXPECT_STREQ(e.what(), "parse_dtype: unknown dtype 'float33', expects a name such as float32, half, int64, uint8 or bool");
  }
  EXPECT_THROW(parse_dtype(""), DTypeError);
}

struct Promotion {
  DType a, b, result;
};

TEST(Promotion, Table) {
  using enum DType;
  constexpr Promotion table[] = {
      {bool_, int8, int8},
      {bool_, uint64, uint64},
      {bool_, fp8e5m2, fp8e5m2},
      {bool_, index, index},
      {index, int8, int8},
      {index, uint8, uint8},
      {index, float16, float16},
      {int8, uint8, int16},
      {int8, uint16, int32},
      {int8, uint32, int64},
      {int16, uint8, int16},
      {int16, uint16, int32},
      {int32, uint16, int32},
      {int32, uint32, int64},
      {int64, uint32, int64},
      {uint8, uint16, uint16},
      {uint32, uint64, uint64},
      {int64, uint64, float32},
      {int8, uint64, float32},
      {int64, fp8e4m3, fp8e4m3},
      {int64, float16, float16},
      {uint64, bfloat16, bfloat16},
      {int64, float32, float32},
      {fp8e4m3, fp8e5m2, float16},
      {fp8e4m3, float16, float16},
      {fp8e5m2, bfloat16, bfloat16},
      {float16, bfloat16, float32},
      {float16, float32, float32},
      {bfloat16, float64, float64},
      {float32, float64, float64},
      {uint64, fp8e4m3fnuz, fp8e4m3fnuz},
      {bool_, fp8e5m2fnuz, fp8e5m2fnuz},
      {fp8e4m3fnuz, fp8e4m3, float16},
      {fp8e4m3fnuz, fp8e5m2fnuz, float16},
      {fp8e5m2, fp8e5m2fnuz, float16},
      {fp8e5m2fnuz, bfloat16, bfloat16},
      {fp8e4m3fnuz, float32, float32},
  };
  for (const Promotion& p : table) EXPECT_EQ(least_upper_dtype(p.a, p.b), p.result) << repr(p.a) << " " << repr(p.b);
  EXPECT_EQ(least_upper_dtype({int64, uint64}, float64), float64);
  EXPECT_EQ(least_upper_dtype({int64, uint64, fp8e5m2}), fp8e5m2);
  EXPECT_EQ(least_upper_dtype({void_, void_}), void_);
}

TEST(Promotion, LatticeLaws) {
  const std::vector<DType> all = valued();
  // The two joins that are not a least upper bound, so a step by step promotion can differ from promoting all at once.
  const auto is_choice = [](DType a, DType b) {
    const bool fp8_mix = is_fp8(a) && is_fp8(b) && a != b;
    const bool no_integer =
        (is_signed(a) && a != DType::index && b == DType::uint64) || (is_signed(b) && b != DType::index && a == DType::uint64);
    return fp8_mix || no_integer;
  };
  for (DType a : all) {
    EXPECT_EQ(least_upper_dtype(a, a), a);
    for (DType b : all) {
      const DType ab = least_upper_dtype(a, b);
      EXPECT_EQ(ab, least_upper_dtype(b, a));
      EXPECT_EQ(least_upper_dtype(ab, a), ab) << "absorption";
      for (DType c : all) {
        std::array<DType, 3> order = {a, b, c};
        const DType joined = least_upper_dtype(order);
        std::sort(order.begin(), order.end());
        EXPECT_EQ(least_upper_dtype(order), joined);
        std::reverse(order.begin(), order.end());
        EXPECT_EQ(least_upper_dtype(order), joined);
        if (!is_choice(a, b) && !is_choice(b, c) && !is_choice(a, c)) {
          EXPECT_EQ(least_upper_dtype(ab, c), joined) << repr(a) << " " << repr(b) << " " << repr(c);
          EXPECT_EQ(least_upper_dtype(a, least_upper_dtype(b, c)), joined) << repr(a) << " " << repr(b) << " " << repr(c);
        }
      }
    }
  }
}

TEST(Promotion, Errors) {
  EXPECT_THROW(least_upper_dtype(std::span<const DType>()), DTypeError);
  EXPECT_THROW(least_upper_dtype(DType::void_, DType::int8), DTypeError);
}

TEST(Promotion, FloatsAndAccumulators) {
  EXPECT_EQ(least_upper_float(DType::int64), DType::float32);
  EXPECT_EQ(least_upper_float(DType::bool_, DType::float16), DType::float16);
  EXPECT_EQ(least_upper_float(DType::float64), DType::float64);
  EXPECT_EQ(least_upper_float(DType::fp8e4m3), DType::fp8e4m3);
  using enum DType;
  constexpr std::pair<DType, DType> sums[] = {
      {bool_, int32},   {int8, int32},  {int32, int32},     {int64, int64},     {uint8, uint32},     {uint32, uint32},
      {uint64, uint64}, {index, index}, {fp8e5m2, float32}, {float16, float32}, {bfloat16, float32}, {float64, float64},
  };
  for (const auto& [d, acc] : sums) EXPECT_EQ(sum_acc_dtype(d), acc) << repr(d);
  EXPECT_EQ(sum_acc_dtype(float16, float16), float16);
}

// By trying: every value of a type of up to 16 bits, and the corners of the others.
std::vector<Scalar> samples(DType d) {
  std::vector<Scalar> values;
  if (bitsize(d) <= 16) {
    for (uint64_t bits = 0; bits < (uint64_t{1} << bitsize(d)); ++bits) values.push_back(Scalar::from_storage_bits(bits, d));
    return values;
  }
  values = {min_value(d), max_value(d)};
  if (is_float(d)) {
    const FloatInfo f = finfo(d);
    const uint64_t one = uint64_t{1}, infinity = ((one << f.exponent_bits) - 1) << f.mantissa_bits;
    for (uint64_t bits : {one, infinity - 1, infinity + 1}) values.push_back(Scalar::from_storage_bits(bits, d));
  } else {
    values.push_back(Scalar::from_uint(max_value(d).bits() - 1, d));
  }
  return values;
}

// Holds every value of every type.
long double exact(const Scalar& s) {
  if (is_float(s.dtype())) return s.as_double();
  return is_signed(s.dtype()) ? static_cast<long double>(s.as_int()) : static_cast<long double>(s.as_uint());
}

TEST(LosslessCast, IsTrueExactlyWhereEveryValueSurvives) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  for (DType from : valued()) {
    const std::vector<Scalar> values = samples(from);
    for (DType to : valued()) {
      const bool expected = std::all_of(values.begin(), values.end(), [&](const Scalar& v) {
        const Scalar there = v.cast(to);
        return v.is_nan() ? there.is_nan() : exact(v) == exact(there);
      });
      // An index is unbounded: that today's values fit an int64 says nothing.
      EXPECT_EQ(can_lossless_cast(from, to), expected && (from != DType::index || to == from)) << repr(from) << " to " << repr(to);
    }
  }
  EXPECT_FALSE(can_lossless_cast(DType::void_, DType::int8));
  EXPECT_FALSE(can_lossless_cast(DType::bool_, DType::void_));
}

}  // namespace
}  // namespace tinygrad
