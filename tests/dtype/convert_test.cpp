#include "dtype/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <tinygrad/errors.h>

#include "dtype/scalar.h"
#include "support/test_scale.h"

namespace tinygrad {
namespace {

constexpr DType small_floats[] = {DType::fp8e4m3, DType::fp8e5m2, DType::fp8e4m3fnuz, DType::fp8e5m2fnuz, DType::float16, DType::bfloat16};

// A second definition of a small format, from its specification and in floating point: all finite magnitudes in order of their bits.
class Reference {
 public:
  explicit Reference(DType d) : dtype_(d) {
    const FloatInfo f = finfo(d);
    const int bias = (1 << (f.exponent_bits - 1)) - (is_fp8_fnuz(d) ? 0 : 1);
    const int top_exponent = (1 << f.exponent_bits) - 1;
    for (int e = 0; e <= top_exponent; ++e) {
      for (int m = 0; m < (1 << f.mantissa_bits); ++m) {
        const double significand = std::ldexp(m, -f.mantissa_bits) + (e == 0 ? 0 : 1);
        all_.push_back(std::ldexp(significand, std::max(e, 1) - bias));
      }
    }
    if (is_fp8_fnuz(d)) {  // all are numbers; what would follow them is beyond
      finite_ = all_.size();
      all_.push_back(std::ldexp(1.0, top_exponent + 1 - bias));
      return;
    }
    // In E4M3 only the last pattern is no number; elsewhere the whole last exponent.
    finite_ = all_.size() - (d == DType::fp8e4m3 ? 1 : size_t{1} << f.mantissa_bits);
  }

  DType dtype() const { return dtype_; }
  uint64_t sign_bit() const { return uint64_t{1} << (bitsize(dtype_) - 1); }
  uint64_t finite_count() const { return finite_; }
  double magnitude(uint64_t bits) const { return all_[bits]; }

  bool is_nan(uint64_t bits) const {
    if (is_fp8_fnuz(dtype_)) return bits == sign_bit();
    bits &= sign_bit() - 1;
    return dtype_ == DType::fp8e4m3 ? bits == 0x7f : bits > finite_;
  }

  double decode(uint64_t bits) const {
    if (is_fp8_fnuz(dtype_) && is_nan(bits)) return std::numeric_limits<double>::quiet_NaN();
    const uint64_t below = bits & (sign_bit() - 1);
    const double value = is_nan(bits)      ? std::numeric_limits<double>::quiet_NaN()
                         : below < finite_ ? all_[below]
                                           : std::numeric_limits<double>::infinity();
    return (bits & sign_bit()) ? -value : value;
  }

  /// Nearest by search, ties to even bits. The table goes on past the largest finite number, so overflow is a rounding like any other.
  uint64_t encode(double value) const {
    const uint64_t sign = std::signbit(value) ? sign_bit() : 0;
    const double x = std::abs(value);
    const auto above = std::lower_bound(all_.begin(), all_.end(), x);
    uint64_t bits = static_cast<uint64_t>(above - all_.begin());
    if (above == all_.end())
      bits = finite_;
    else if (*above != x) {
      const double middle = (all_[bits - 1] + all_[bits]) / 2;
      if (x < middle || (x == middle && (bits & 1))) --bits;
    }
    if (is_fp8_fnuz(dtype_) && (bits == 0 || bits >= finite_)) return bits == 0 ? 0 : sign_bit();
    return sign | std::min<uint64_t>(bits, finite_);
  }

 private:
  DType dtype_;
  std::vector<double> all_;
  size_t finite_ = 0;
};

const Reference& reference(DType d) {
  static const std::vector<Reference> all(std::begin(small_floats), std::end(small_floats));
  return *std::find_if(all.begin(), all.end(), [&](const Reference& r) { return r.dtype() == d; });
}

uint64_t encode(DType d, double value) { return narrow(d, std::bit_cast<uint64_t>(value)); }
double decode(DType d, uint64_t bits) { return std::bit_cast<double>(widen(d, bits)); }

class SmallFloats : public testing::TestWithParam<DType> {
 protected:
  const Reference& ref() const { return reference(GetParam()); }
  void expect_rounds(double value) const {
    const uint64_t got = encode(GetParam(), value), want = ref().encode(value);
    if (got != want) ADD_FAILURE() << repr(GetParam()) << " of " << value << ": got bits " << got << ", expected " << want;
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, SmallFloats, testing::ValuesIn(small_floats), [](const auto& p) { return std::string(name(p.param)); });

TEST_P(SmallFloats, EveryValueBothWays) {
  for (uint64_t bits = 0; bits < 2 * ref().sign_bit(); ++bits) {
    const double value = decode(GetParam(), bits), expected = ref().decode(bits);
    EXPECT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    if (ref().is_nan(bits)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(ref().is_nan(encode(GetParam(), value))) << bits;
      EXPECT_EQ(encode(GetParam(), value) & ref().sign_bit(), bits & ref().sign_bit()) << bits;
    } else {
      EXPECT_EQ(value, expected) << bits;
      EXPECT_EQ(encode(GetParam(), value), bits);
    }
  }
}

TEST_P(SmallFloats, MidpointsBetweenNeighbours) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (uint64_t bits = 0; bits < ref().finite_count(); ++bits) {
    const double low = ref().magnitude(bits), high = ref().magnitude(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact: every format has fewer bits than float32
    if (std::isinf(middle)) continue;
    for (float x : {static_cast<float>(low), middle, std::nextafter(middle, 0.0f), std::nextafter(middle, inf)}) {
      expect_rounds(x);
      expect_rounds(-x);
    }
  }
}

// Going through float32 would round twice here.
TEST_P(SmallFloats, MidpointsFromDouble) {
  for (uint64_t bits = 0; bits < ref().finite_count(); ++bits) {
    const double middle = (ref().magnitude(bits) + ref().magnitude(bits + 1)) / 2;
    for (double x : {middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e300)}) {
      expect_rounds(x);
      expect_rounds(-x);
    }
  }
}

TEST_P(SmallFloats, SeededFloats) {
  std::mt19937_64 random(test::seed());
  // Half of them any bits, half with exponents that the format has.
  const auto limit = std::bit_cast<uint32_t>(static_cast<float>(ref().magnitude(ref().finite_count() - 1))) + (1u << 23);
  const auto least = std::bit_cast<uint32_t>(static_cast<float>(ref().magnitude(1))) & ~((1u << 23) - 1);
  const uint32_t start = least > (2u << 23) ? least - (2u << 23) : 0;
  constexpr size_t count = 1 << 12;
  std::vector<float> values(count);
  std::vector<std::byte> out(count * itemsize(GetParam()));
  for (size_t batch = 0; batch < (size_t{1} << 24) / count; ++batch) {
    for (size_t i = 0; i < count; ++i) {
      const uint64_t r = random();
      const auto any = static_cast<uint32_t>(r >> 32);
      const uint32_t bits = (i & 1) ? any : start + any % (limit - start) + (static_cast<uint32_t>(r & 1) << 31);
      values[i] = std::bit_cast<float>(bits);
    }
    convert_array(GetParam(), out.data(), DType::float32, values.data(), count);
    for (size_t i = 0; i < count; ++i) {
      uint64_t got = 0;
      std::memcpy(&got, &out[i * itemsize(GetParam())], itemsize(GetParam()));
      if (std::isnan(values[i]) ? !ref().is_nan(got) : got != ref().encode(values[i])) {
        FAIL() << repr(GetParam()) << " of " << values[i] << ": got bits " << got;
      }
    }
  }
}

TEST_P(SmallFloats, IntegersRoundOnce) {
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 100'000; ++i) {
    // Just beside the midpoint of two neighbours at a random scale: lost if the value passes through double.
    const int mantissa_bits = finfo(GetParam()).mantissa_bits;
    const uint64_t top = (random() >> (63 - mantissa_bits) | (uint64_t{1} << mantissa_bits)) * 2 + 1;
    const int scale = static_cast<int>(random() % static_cast<uint64_t>(62 - mantissa_bits));
    const uint64_t middle = (top & ((uint64_t{4} << mantissa_bits) - 1)) << scale;
    for (uint64_t value : {middle - 1, middle, middle + 1}) {
      const auto rounded = static_cast<double>(value);
      // What double cannot hold is beside the midpoint or beside nothing that matters; ask for the neighbour on the true side.
      const bool exact = static_cast<uint64_t>(rounded) == value;
      const double sided = exact ? rounded : std::nextafter(static_cast<double>(middle), value < middle ? 0.0 : 1e300);
      EXPECT_EQ(narrow(GetParam(), change_form(GetParam(), DType::uint64, value)), ref().encode(sided)) << value;
    }
  }
}

TEST(SmallFloatTypes, SpecialValues) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  // OCP E4M3 as PyTorch converts to it: past 464, the middle of 448 and what would be 480, there is only NaN.
  EXPECT_EQ(fp8e4m3(448.0f).bits, 0x7e);
  EXPECT_EQ(fp8e4m3(464.0f).bits, 0x7e);
  EXPECT_EQ(fp8e4m3(std::nextafter(464.0f, 500.0f)).bits, 0x7f);
  EXPECT_EQ(fp8e4m3(inf).bits, 0x7f);
  EXPECT_EQ(fp8e4m3(-inf).bits, 0xff);
  EXPECT_EQ(fp8e4m3(1e300).bits, 0x7f);
  EXPECT_EQ(fp8e4m3(nan).bits, 0x7f);
  EXPECT_EQ(fp8e5m2(57344.0f).bits, 0x7b);
  EXPECT_EQ(fp8e5m2(std::nextafter(61440.0f, 0.0f)).bits, 0x7b);
  EXPECT_EQ(fp8e5m2(61440.0f).bits, 0x7c);
  EXPECT_EQ(fp8e5m2(-1e300).bits, 0xfc);
  EXPECT_EQ(fp8e5m2(nan).bits, 0x7f);
  // Past half a step beyond the largest number there is only the NaN, which has no sign, as 0 has none.
  EXPECT_EQ(fp8e4m3fnuz(240.0f).bits, 0x7f);
  EXPECT_EQ(fp8e4m3fnuz(std::nextafter(248.0f, 0.0f)).bits, 0x7f);
  EXPECT_EQ(fp8e4m3fnuz(-std::nextafter(248.0f, 0.0f)).bits, 0xff);
  EXPECT_EQ(fp8e5m2fnuz(57344.0f).bits, 0x7f);
  EXPECT_EQ(fp8e5m2fnuz(-std::nextafter(61440.0f, 0.0f)).bits, 0xff);
  for (const double v : {248.0, -248.0, 1e300, -1e300, inf, -inf, nan, -nan}) EXPECT_EQ(fp8e4m3fnuz(v).bits, 0x80) << v;
  for (const double v : {61440.0, -61440.0, inf, -inf, nan, -nan}) EXPECT_EQ(fp8e5m2fnuz(v).bits, 0x80) << v;
  for (const double v : {0.0, -0.0, 1e-9, -1e-9}) {
    EXPECT_EQ(fp8e4m3fnuz(v).bits, 0) << v;
    EXPECT_EQ(fp8e5m2fnuz(v).bits, 0) << v;
  }
  EXPECT_EQ(fp8e4m3fnuz(-0x1p-10).bits, 0x81);
  EXPECT_EQ(fp8e5m2fnuz(-0x1p-17).bits, 0x81);
  EXPECT_EQ(float16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(float16(-inf).bits, 0xfc00);
  EXPECT_EQ(float16(nan).bits, 0x7e00);
  EXPECT_EQ(float16(5e-324).bits, 0);
  EXPECT_EQ(float16(-0.0).bits, 0x8000);
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(bfloat16(nan).bits, 0x7fc0);
  EXPECT_EQ(static_cast<float>(float16::from_bits(1)), std::ldexp(1.0f, -24));
  EXPECT_TRUE(float16(0.0f) == float16(-0.0f));
  EXPECT_FALSE(float16(nan) == float16(nan));
}

#ifdef __FLT16_MAX__
TEST(SmallFloatTypes, Float16AgreesWithTheCompiler) {
  std::mt19937 random(static_cast<uint32_t>(test::seed()));
  for (int i = 0; i < 1 << 22; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>((i & 1) ? random() : 0x33000000u + random() % 0x14800000u));
    if (std::isnan(value)) continue;
    const auto expected = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
    if (float16(value).bits != expected) FAIL() << value;
  }
}
#endif

TEST(ConvertArray, AgreesWithCastForEveryPair) {
  const double interesting[] = {0.0,
                                -0.0,
                                1.0,
                                -1.0,
                                0.5,
                                -1.5,
                                127.0,
                                128.0,
                                255.0,
                                256.0,
                                448.0,
                                480.0,
                                65504.0,
                                65520.0,
                                3e9,
                                -3e9,
                                1e19,
                                1e20,
                                -1e19,
                                1e-45,
                                -2.75,
                                2147483648.0,
                                std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
  for (DType from : dtypes::all) {
    // An odd count over one block, at an odd address.
    constexpr size_t count = 601;
    std::vector<std::byte> src(count * itemsize(from) + 1);
    for (size_t i = 0; i < count; ++i) {
      Scalar::from_double(interesting[i % std::size(interesting)], from).to_bytes(&src[1 + i * itemsize(from)]);
    }
    for (DType to : dtypes::all) {
      std::vector<std::byte> dst(count * itemsize(to) + 2, std::byte{0xab});
      convert_array(to, dst.data() + 1, from, src.data() + 1, count);
      for (size_t i = 0; i < count; ++i) {
        const Scalar want = Scalar::from_bytes(&src[1 + i * itemsize(from)], from).cast(to);
        EXPECT_EQ(Scalar::from_bytes(&dst[1 + i * itemsize(to)], to), want) << repr(from) << " to " << repr(to) << ": " << want.to_string();
      }
      EXPECT_EQ(dst.front(), std::byte{0xab});
      EXPECT_EQ(dst.back(), std::byte{0xab});
    }
  }
}

TEST(ConvertArray, BoolsReadAnyByte) {
  const uint8_t bytes[] = {0, 1, 2, 255};
  float out[4];
  convert_array(DType::float32, out, DType::bool_, bytes, 4);
  EXPECT_EQ(std::vector<float>(out, out + 4), (std::vector<float>{0, 1, 1, 1}));
}

TEST(ConvertArray, NothingAndVoid) {
  convert_array(DType::float32, nullptr, DType::float32, nullptr, 0);
  convert_array(DType::float32, nullptr, DType::int8, nullptr, 0);
  char byte = 0;
  EXPECT_THROW(convert_array(DType::float32, &byte, DType::void_, &byte, 1), DTypeError);
}

}  // namespace
}  // namespace tinygrad
