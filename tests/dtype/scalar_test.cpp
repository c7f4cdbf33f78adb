#include "dtype/scalar.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <unordered_set>

#include <gtest/gtest.h>
#include <tinygrad/errors.h>

#include "dtype/convert.h"
#include "support/test_scale.h"

namespace tinygrad {
namespace {

using enum DType;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Scalar f64(double v) { return Scalar::from_double(v, float64); }

TEST(Scalar, IdentityIsDtypeAndBits) {
  EXPECT_NE(f64(0.0), f64(-0.0));
  EXPECT_EQ(f64(nan), f64(-nan));
  EXPECT_EQ(f64(nan), f64(std::bit_cast<double>(uint64_t{0x7ff0000000000001})));
  EXPECT_NE(Scalar::of(true), Scalar::from_int(1, int32));
  EXPECT_NE(Scalar::from_int(1, int32), Scalar::from_int(1, int64));
  EXPECT_NE(Scalar::of(1.0f), f64(1.0));
  EXPECT_EQ(Scalar(), Scalar::of(false));
}

TEST(Scalar, EqualScalarsHashAlikeAndNeighboursDiffer) {
  std::unordered_set<Scalar> set;
  std::unordered_set<size_t> hashes;
  for (DType d : dtypes::all) {
    for (int i = 0; i < 50; ++i) {
      const Scalar s = Scalar::from_int(i, d);
      if (set.insert(s).second) {
        EXPECT_TRUE(hashes.insert(s.hash()).second) << s.to_string() << " " << repr(d);
      }
      EXPECT_FALSE(set.insert(Scalar::from_int(i, d)).second);
    }
  }
}

TEST(Scalar, CanonicalBits) {
  EXPECT_EQ(Scalar::from_int(-1, int8).bits(), ~uint64_t{0});
  EXPECT_EQ(Scalar::from_int(-1, uint8).bits(), 255u);
  EXPECT_EQ(Scalar::from_int(200, int8).as_int(), -56);
  EXPECT_EQ(Scalar::from_uint(2, bool_).bits(), 1u);
  EXPECT_EQ(Scalar::from_double(1.0, float16).bits(), std::bit_cast<uint64_t>(1.0));
  EXPECT_EQ(Scalar::from_double(0.1, float32).bits(), std::bit_cast<uint64_t>(static_cast<double>(0.1f)));
  EXPECT_EQ(Scalar::from_double(-nan, bfloat16).bits(), 0x7ff8000000000000u);
}

TEST(Scalar, Predicates) {
  EXPECT_TRUE(f64(-0.0).is_zero());
  EXPECT_FALSE(f64(-0.0).is_positive_zero());
  EXPECT_TRUE(Scalar::from_double(0, fp8e4m3).is_positive_zero());
  EXPECT_TRUE(Scalar::of(false).is_zero());
  for (DType d : dtypes::all) EXPECT_TRUE(Scalar::from_int(1, d).is_one()) << repr(d);
  EXPECT_FALSE(f64(-1).is_one());
  EXPECT_TRUE(f64(nan).is_nan());
  EXPECT_FALSE(f64(inf).is_nan());
  EXPECT_TRUE(f64(-inf).is_inf());
  EXPECT_FALSE(Scalar::from_int(-1, int64).is_nan()) << "bits of an integer are no NaN";
  EXPECT_TRUE(Scalar::from_double(inf, fp8e4m3).is_nan());
}

struct Cast {
  Scalar from;
  Scalar to;
};

TEST(Scalar, CastTable) {
  const Cast table[] = {
      // Integers wrap.
      {Scalar::from_int(300, int32), Scalar::from_int(44, uint8)},
      {Scalar::from_int(-1, int32), Scalar::from_uint(~uint64_t{0}, uint64)},
      {Scalar::from_uint(~uint64_t{0}, uint64), Scalar::from_int(-1, int64)},
      {Scalar::from_uint(0x8000, uint16), Scalar::from_int(-32768, int16)},
      {Scalar::from_int(-5, int8), Scalar::from_int(-5, index)},
      // To bool: not zero.
      {Scalar::from_int(256, int32), Scalar::of(true)},
      {f64(0.25), Scalar::of(true)},
      {f64(nan), Scalar::of(true)},
      {f64(-0.0), Scalar::of(false)},
      {Scalar::of(true), Scalar::from_double(1, float16)},
      // Floats truncate through int64.
      {f64(2.9), Scalar::from_int(2, int32)},
      {f64(-2.9), Scalar::from_int(-2, int32)},
      {f64(-0.9), Scalar::from_int(0, uint8)},
      {f64(-1), Scalar::from_uint(~uint64_t{0}, uint64)},
      {f64(-1), Scalar::from_uint(255, uint8)},
      {f64(3e9), Scalar::from_int(3000000000 - 4294967296, int32)},
      {f64(nan), Scalar::from_int(0, int32)},
      {f64(nan), Scalar::from_int(std::numeric_limits<int64_t>::min(), int64)},
      {f64(inf), Scalar::from_int(std::numeric_limits<int64_t>::min(), int64)},
      {f64(9223372036854775808.0), Scalar::from_int(std::numeric_limits<int64_t>::min(), int64)},
      {f64(9223372036854775808.0), Scalar::from_uint(uint64_t{1} << 63, uint64)},
      {f64(18446744073709549568.0), Scalar::from_uint(18446744073709549568u, uint64)},
      {f64(18446744073709551616.0), Scalar::from_uint(uint64_t{1} << 63, uint64)},
      // Integers round to nearest even, once.
      {Scalar::from_int(16777217, int32), Scalar::of(16777216.0f)},
      {Scalar::from_int(-16777219, int32), Scalar::of(-16777220.0f)},
      {Scalar::from_int((int64_t{1} << 62) + (int64_t{1} << 54) + 1, int64), Scalar::from_double(0x1.02p62, bfloat16)},
      {Scalar::from_uint(~uint64_t{0}, uint64), Scalar::of(18446744073709551616.0f)},
      {Scalar::from_int(std::numeric_limits<int64_t>::min(), int64), Scalar::from_double(-9223372036854775808.0, bfloat16)},
      {Scalar::from_int(65520, int32), Scalar::from_double(inf, float16)},
      {Scalar::from_int(1000, int32), Scalar::from_double(nan, fp8e4m3)},
      // Floats round once.
      {f64(1 + 0x1p-11 + 0x1p-40), Scalar::from_double(1 + 0x1p-10, float16)},
      {Scalar::of(65519.0f), Scalar::from_double(65504, float16)},
      {Scalar::from_double(-inf, float16), Scalar::from_double(-inf, float32)},
  };
  for (const Cast& c : table) EXPECT_EQ(c.from.cast(c.to.dtype()), c.to) << c.from.to_string() << " to " << repr(c.to.dtype());
}

TEST(Scalar, CastsOfIntegersAgreeWithTheCompiler) {
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 200'000; ++i) {
    const auto v = static_cast<int64_t>(random()) >> (random() % 64);
    const Scalar s = Scalar::from_int(v, int64);
    EXPECT_EQ(s.cast(float32), Scalar::of(static_cast<float>(v)));
    EXPECT_EQ(s.cast(float64), Scalar::of(static_cast<double>(v)));
    EXPECT_EQ(s.cast(int16).as_int(), static_cast<int16_t>(v));
    EXPECT_EQ(s.cast(uint32).as_uint(), static_cast<uint32_t>(v));
    const auto u = static_cast<uint64_t>(v);
    EXPECT_EQ(Scalar::of(u).cast(float32), Scalar::of(static_cast<float>(u)));
  }
}

TEST(Scalar, Bitcast) {
  EXPECT_EQ(Scalar::of(1.0f).bitcast(uint32), Scalar::from_uint(0x3f800000, uint32));
  EXPECT_EQ(Scalar::from_int(-1, int8).bitcast(uint8), Scalar::from_uint(255, uint8));
  EXPECT_EQ(Scalar::from_uint(0x3c00, uint16).bitcast(float16), Scalar::from_double(1, float16));
  EXPECT_EQ(f64(-0.0).bitcast(int64).as_int(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Scalar::from_double(nan, bfloat16).bitcast(uint16), Scalar::from_uint(0x7fc0, uint16));
  EXPECT_EQ(Scalar::from_uint(2, uint8).bitcast(bool_), Scalar::of(true));
  try {
    Scalar::of(1.0f).bitcast(int64);
    FAIL();
  } catch (const DTypeError& e) {
    EXPECT_STREQ(e.what(), "bitcast: cannot read dtypes.float32 as dtypes.int64: 4 and 8 bytes differ; use cast to convert the value");
  }
}

TEST(Scalar, BytesBothWays) {
  for (DType d : dtypes::all) {
    for (double v : {0.0, 1.0, -1.0, 0.5, 100.0}) {
      std::byte bytes[9];
      bytes[itemsize(d)] = std::byte{0x5a};
      const Scalar s = Scalar::from_double(v, d);
      s.to_bytes(bytes);
      EXPECT_EQ(Scalar::from_bytes(bytes, d), s);
      EXPECT_EQ(bytes[itemsize(d)], std::byte{0x5a});
    }
  }
  std::byte bytes[4];
  Scalar::of(-2.0f).to_bytes(bytes);
  EXPECT_EQ(bytes[3], std::byte{0xc0}) << "little-endian";
}

TEST(Scalar, Text) {
  EXPECT_EQ(Scalar::of(true).to_string(), "true");
  EXPECT_EQ(Scalar::from_int(-7, int8).to_string(), "-7");
  EXPECT_EQ(Scalar::from_uint(~uint64_t{0}, uint64).to_string(), "18446744073709551615");
  EXPECT_EQ(Scalar::of(1.0f).to_string(), "1");
  EXPECT_EQ(Scalar::of(0.1f).to_string(), "0.1");
  EXPECT_EQ(f64(0.1).to_string(), "0.1");
  EXPECT_EQ(f64(-0.0).to_string(), "-0");
  EXPECT_EQ(f64(inf).to_string(), "inf");
  EXPECT_EQ(Scalar::from_double(nan, float16).to_string(), "nan");
  EXPECT_EQ(Scalar::from_double(0.1, bfloat16).to_string(), "0.1");
  EXPECT_EQ(Scalar::from_double(416, fp8e4m3).to_string(), "416");
}

TEST(Scalar, TextReadsBack) {
  for (DType d : {fp8e4m3, fp8e5m2, float16, bfloat16}) {
    for (uint64_t bits = 0; bits < (uint64_t{1} << bitsize(d)); ++bits) {
      const Scalar s = Scalar::from_storage_bits(bits, d);
      EXPECT_EQ(Scalar::from_double(std::stod(s.to_string()), d), s) << s.to_string();
    }
  }
}

TEST(Scalar, Limits) {
  EXPECT_EQ(min_value(int8).as_int(), -128);
  EXPECT_EQ(max_value(int8).as_int(), 127);
  EXPECT_EQ(min_value(uint64).as_uint(), 0u);
  EXPECT_EQ(max_value(uint64).as_uint(), ~uint64_t{0});
  EXPECT_EQ(min_value(int64).as_int(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(max_value(index).as_int(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(min_value(float16).as_double(), -inf);
  EXPECT_EQ(max_value(fp8e5m2).as_double(), inf);
  EXPECT_EQ(min_value(fp8e4m3).as_double(), -448);
  EXPECT_EQ(max_value(bool_), Scalar::of(true));
  EXPECT_EQ(min_value(bool_), Scalar::of(false));
}

TEST(Scalar, VoidHasNoValues) {
  EXPECT_THROW(Scalar::from_int(0, void_), DTypeError);
  EXPECT_THROW(Scalar::of(1.0f).cast(void_), DTypeError);
  EXPECT_THROW(max_value(void_), DTypeError);
}

}  // namespace
}  // namespace tinygrad
