#include "dtype/scalar_ops.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <tinygrad/errors.h>

#include "support/test_scale.h"

namespace tinygrad {
namespace {

using enum DType;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t int64_least = std::numeric_limits<int64_t>::min();
constexpr int64_t int64_greatest = std::numeric_limits<int64_t>::max();

using Binary = Scalar (*)(const Scalar&, const Scalar&);
using Unary = Scalar (*)(const Scalar&);

struct FloatCase {
  Binary op;
  DType dtype;
  double a, b, result;
};

TEST(ScalarOps, FloatTable) {
  const FloatCase table[] = {
      {scalar::add, float32, 0.1, 0.2, 0.1f + 0.2f},
      {scalar::add, float64, 0.1, 0.2, 0.1 + 0.2},
      {scalar::add, float16, 2048, 1, 2048},
      {scalar::add, float16, 2050, 1, 2052},
      {scalar::add, float16, 65504, 16, inf},
      {scalar::add, bfloat16, 256, 1, 256},
      {scalar::add, fp8e4m3, 448, 16, 448},
      {scalar::add, fp8e4m3, 448, 32, nan},
      {scalar::add, float32, inf, -inf, nan},
      {scalar::add, float32, -0.0, -0.0, -0.0},
      {scalar::add, float32, -0.0, 0.0, 0.0},
      {scalar::sub, float32, 0.0, 0.0, 0.0},
      {scalar::sub, float32, -0.0, 0.0, -0.0},
      {scalar::mul, float32, inf, 0.0, nan},
      {scalar::mul, float32, -1.0, 0.0, -0.0},
      {scalar::mul, float32, 1e30, 1e30, inf},
      {scalar::mul, float32, 1e-30, -1e-30, -0.0},
      {scalar::mul, fp8e5m2, 300, 300, inf},
      {scalar::fdiv, float32, 1, 3, 1.0f / 3.0f},
      {scalar::fdiv, float32, 1, -0.0, -inf},
      {scalar::fdiv, float32, 0, 0, nan},
      {scalar::fdiv, float64, 1, 3, 1.0 / 3.0},
      {scalar::max, float32, 1, 2, 2},
      {scalar::max, float32, nan, 2, nan},
      {scalar::max, float32, inf, nan, nan},
      {scalar::max, float32, -0.0, 0.0, 0.0},
      {scalar::max, float32, 0.0, -0.0, 0.0},
      {scalar::max, float32, -0.0, -0.0, -0.0},
      {scalar::pow, float32, 2, 0.5, 1.41421356237309515},
      {scalar::pow, float32, -8, 1.0 / 3, nan},
      {scalar::pow, float32, nan, 0, 1},
      {scalar::pow, float32, 0, -1, inf},
      {scalar::pow, float16, 2, 10, 1024},
  };
  for (const FloatCase& c : table) {
    const Scalar a = Scalar::from_double(c.a, c.dtype), b = Scalar::from_double(c.b, c.dtype);
    EXPECT_EQ(c.op(a, b), Scalar::from_double(c.result, c.dtype))
        << repr(c.dtype) << " " << c.a << " " << c.b << ": got " << c.op(a, b).to_string();
  }
}

struct IntCase {
  Binary op;
  DType dtype;
  int64_t a, b, result;
};

TEST(ScalarOps, IntegerTable) {
  const IntCase table[] = {
      {scalar::add, int8, 127, 1, -128},
      {scalar::add, uint8, 255, 1, 0},
      {scalar::add, int64, int64_greatest, 1, int64_least},
      {scalar::sub, uint32, 0, 1, 4294967295},
      {scalar::sub, int32, std::numeric_limits<int32_t>::min(), 1, std::numeric_limits<int32_t>::max()},
      {scalar::mul, int16, 300, 300, 24464},
      {scalar::mul, uint64, -1, -1, 1},
      {scalar::mul, int64, int64_least, -1, int64_least},
      {scalar::max, int8, -1, 1, 1},
      {scalar::max, uint8, 255, 1, 255},
      {scalar::max, uint64, -1, 1, -1},
      {scalar::cdiv, int32, 7, 2, 3},
      {scalar::cdiv, int32, -7, 2, -3},
      {scalar::cdiv, int32, 7, 0, 0},
      {scalar::cdiv, int8, -128, -1, -128},
      {scalar::cdiv, int64, int64_least, -1, int64_least},
      {scalar::cdiv, uint64, -1, 2, int64_greatest},
      {scalar::cmod, int32, -7, 2, -1},
      {scalar::cmod, int32, 7, -2, 1},
      {scalar::cmod, int32, 7, 0, 0},
      {scalar::cmod, int64, int64_least, -1, 0},
      {scalar::floordiv, int32, -7, 2, -4},
      {scalar::floordiv, int32, 7, -2, -4},
      {scalar::floordiv, int32, -8, 2, -4},
      {scalar::floordiv, int32, -7, -2, 3},
      {scalar::floordiv, int32, -7, 0, 0},
      {scalar::floordiv, uint8, 255, 2, 127},
      {scalar::floormod, int32, -7, 2, 1},
      {scalar::floormod, int32, 7, -2, -1},
      {scalar::floormod, int32, -8, 2, 0},
      {scalar::floormod, index, -1, 5, 4},
      {scalar::pow, int32, 3, 4, 81},
      {scalar::pow, int32, 0, 0, 1},
      {scalar::pow, uint8, 2, 8, 0},
      {scalar::pow, int32, 2, -1, 0},
      {scalar::pow, int32, 1, -3, 1},
      {scalar::pow, int32, -1, -3, -1},
      {scalar::pow, int32, -1, -2, 1},
      {scalar::and_, int8, -1, 6, 6},
      {scalar::or_, int8, -128, 1, -127},
      {scalar::xor_, uint16, 0xffff, 0xff, 0xff00},
      {scalar::shl, int32, 1, 31, std::numeric_limits<int32_t>::min()},
      {scalar::shl, uint8, 255, 4, 240},
      {scalar::shl, int32, 1, 32, 0},
      {scalar::shl, int32, 1, -1, 0},
      {scalar::shr, int32, -8, 1, -4},
      {scalar::shr, int32, -8, 99, -1},
      {scalar::shr, int32, 8, 99, 0},
      {scalar::shr, uint32, -1, 28, 15},
      {scalar::shr, uint64, -1, 64, 0},
  };
  for (const IntCase& c : table) {
    const Scalar a = Scalar::from_int(c.a, c.dtype), b = Scalar::from_int(c.b, c.dtype);
    EXPECT_EQ(c.op(a, b), Scalar::from_int(c.result, c.dtype))
        << repr(c.dtype) << " " << c.a << " " << c.b << ": got " << c.op(a, b).to_string();
  }
}

TEST(ScalarOps, BoolTable) {
  const Scalar f = Scalar::of(false), t = Scalar::of(true);
  struct {
    Binary op;
    bool ff, ft, tf, tt;
  } const table[] = {{scalar::add, false, true, true, true},    {scalar::mul, false, false, false, true},
                     {scalar::sub, false, true, true, false},   {scalar::max, false, true, true, true},
                     {scalar::and_, false, false, false, true}, {scalar::or_, false, true, true, true},
                     {scalar::xor_, false, true, true, false},  {scalar::cmplt, false, true, false, false},
                     {scalar::cmpeq, true, false, false, true}, {scalar::cmpne, false, true, true, false}};
  for (const auto& row : table) {
    EXPECT_EQ(row.op(f, f), Scalar::of(row.ff));
    EXPECT_EQ(row.op(f, t), Scalar::of(row.ft));
    EXPECT_EQ(row.op(t, f), Scalar::of(row.tf));
    EXPECT_EQ(row.op(t, t), Scalar::of(row.tt));
  }
}

TEST(ScalarOps, UnaryTable) {
  struct {
    Unary op;
    DType dtype;
    double a, result;
  } const table[] = {
      {scalar::neg, float32, 0.0, -0.0},
      {scalar::neg, int8, -128, -128},
      {scalar::neg, uint8, 1, 255},
      {scalar::reciprocal, float32, 3, 1 / 3.0f},
      {scalar::reciprocal, float32, -0.0, -inf},
      {scalar::sqrt, float32, 2, std::sqrt(2.0f)},
      {scalar::sqrt, float32, -1, nan},
      {scalar::sqrt, float32, -0.0, -0.0},
      {scalar::exp2, float32, 10, 1024},
      {scalar::exp2, float32, 128, inf},
      {scalar::exp2, float32, -inf, 0.0},
      {scalar::exp2, float16, -25, 0.0},
      {scalar::exp2, float16, -24, 0x1p-24},
      {scalar::log2, float32, 8, 3},
      {scalar::log2, float32, 0, -inf},
      {scalar::log2, float32, -1, nan},
      {scalar::sin, float32, -0.0, -0.0},
      {scalar::sin, float32, inf, nan},
      {scalar::trunc, float32, -0.5, -0.0},
      {scalar::trunc, float32, -2.7, -2},
      {scalar::trunc, int32, 7, 7},
      {scalar::trunc, float32, inf, inf},
      {scalar::neg, bool_, 1, 1},
  };
  for (const auto& c : table) {
    const Scalar a = Scalar::from_double(c.a, c.dtype);
    EXPECT_EQ(c.op(a), Scalar::from_double(c.result, c.dtype)) << repr(c.dtype) << " " << c.a << ": got " << c.op(a).to_string();
  }
}

TEST(ScalarOps, ComparisonsOfSpecialFloats) {
  const auto half = [](double v) { return Scalar::from_double(v, float16); };
  const Scalar f = Scalar::of(false), t = Scalar::of(true);
  EXPECT_EQ(scalar::cmpeq(half(nan), half(nan)), f);
  EXPECT_EQ(scalar::cmpne(half(nan), half(nan)), t);
  EXPECT_EQ(scalar::cmplt(half(nan), half(1)), f);
  EXPECT_EQ(scalar::cmplt(half(1), half(nan)), f);
  EXPECT_EQ(scalar::cmpeq(half(-0.0), half(0.0)), t);
  EXPECT_EQ(scalar::cmplt(half(-0.0), half(0.0)), f);
  EXPECT_EQ(scalar::cmplt(half(-inf), half(inf)), t);
  EXPECT_EQ(scalar::cmplt(Scalar::from_int(-1, int32), Scalar::from_int(1, int32)), t);
  EXPECT_EQ(scalar::cmplt(Scalar::from_int(-1, uint32), Scalar::from_int(1, uint32)), f);
}

TEST(ScalarOps, MulaccRoundsOnce) {
  const auto f32 = [](double v) { return Scalar::from_double(v, float32); };
  EXPECT_EQ(scalar::mulacc(f32(1 + 0x1p-23), f32(1 - 0x1p-23), f32(-1)), f32(-0x1p-46));
  EXPECT_EQ(scalar::mulacc(f32(inf), f32(0), f32(1)), f32(nan));
  const auto i8 = [](int64_t v) { return Scalar::from_int(v, int8); };
  EXPECT_EQ(scalar::mulacc(i8(16), i8(16), i8(5)), i8(5));
}

TEST(ScalarOps, WhereAndShiftAmountsOfAnotherDtype) {
  const Scalar one = Scalar::of(1.0f), two = Scalar::of(2.0f);
  EXPECT_EQ(scalar::where(Scalar::of(true), one, two), one);
  EXPECT_EQ(scalar::where(Scalar::of(false), one, two), two);
  EXPECT_EQ(scalar::shl(Scalar::from_uint(1, uint64), Scalar::from_int(40, uint8)), Scalar::from_uint(uint64_t{1} << 40, uint64));
}

TEST(ScalarOps, IndexDoesNotWrap) {
  const auto idx = [](int64_t v) { return Scalar::from_int(v, index); };
  EXPECT_EQ(scalar::add(idx(int64_greatest), idx(-1)), idx(int64_greatest - 1));
  EXPECT_THROW(scalar::add(idx(int64_greatest), idx(1)), InternalError);
  EXPECT_THROW(scalar::sub(idx(int64_least), idx(1)), InternalError);
  EXPECT_THROW(scalar::mul(idx(int64_greatest), idx(2)), InternalError);
  EXPECT_THROW(scalar::neg(idx(int64_least)), InternalError);
  EXPECT_THROW(scalar::mulacc(idx(int64_greatest), idx(2), idx(0)), InternalError);
  EXPECT_THROW(scalar::cdiv(idx(int64_least), idx(-1)), InternalError);
  EXPECT_THROW(scalar::floordiv(idx(int64_least), idx(-1)), InternalError);
  EXPECT_THROW(scalar::shl(idx(1), idx(63)), InternalError);
  EXPECT_THROW(scalar::pow(idx(10), idx(19)), InternalError);
  EXPECT_EQ(scalar::pow(idx(10), idx(18)), idx(1000000000000000000));
  EXPECT_EQ(scalar::shl(idx(-1), idx(63)), idx(int64_least));
}

TEST(ScalarOps, RefusesOtherDtypes) {
  const Scalar f = Scalar::of(1.0f), i = Scalar::from_int(1, int32), b = Scalar::of(true);
  EXPECT_THROW(scalar::add(f, i), DTypeError);
  EXPECT_THROW(scalar::cmplt(i, Scalar::from_int(1, int64)), DTypeError);
  EXPECT_THROW(scalar::mulacc(f, f, i), DTypeError);
  EXPECT_THROW(scalar::fdiv(i, i), DTypeError);
  EXPECT_THROW(scalar::sqrt(i), DTypeError);
  EXPECT_THROW(scalar::exp2(b), DTypeError);
  EXPECT_THROW(scalar::trunc(b), DTypeError);
  EXPECT_THROW(scalar::cdiv(f, f), DTypeError);
  EXPECT_THROW(scalar::cdiv(b, b), DTypeError);
  EXPECT_THROW(scalar::pow(b, b), DTypeError);
  EXPECT_THROW(scalar::xor_(f, f), DTypeError);
  EXPECT_THROW(scalar::shl(f, i), DTypeError);
  EXPECT_THROW(scalar::shr(i, f), DTypeError);
  EXPECT_THROW(scalar::where(i, f, f), DTypeError);
  EXPECT_THROW(scalar::where(b, f, i), DTypeError);
  EXPECT_THROW(scalar::threefry(i, i), DTypeError);
  try {
    scalar::add(f, i);
  } catch (const DTypeError& e) {
    EXPECT_STREQ(e.what(), "add: got dtypes.float32 and dtypes.int32, expects operands of one dtype; cast one to the other");
  }
}

// Known answers of the Random123 library.
TEST(ScalarOps, Threefry) {
  EXPECT_EQ(scalar::threefry2x32(0, 0), 0x99ba4efe6b200159u);
  EXPECT_EQ(scalar::threefry2x32(~uint64_t{0}, ~uint64_t{0}), 0xbb002be71cb996fcu);
  EXPECT_EQ(scalar::threefry2x32(0x85a308d3243f6a88u, 0x0370734413198a2eu), 0x483df7a0c4923a9cu);
  EXPECT_EQ(scalar::threefry(Scalar::from_uint(0, uint64), Scalar::from_uint(0, uint64)).bits(), 0x99ba4efe6b200159u);
}

TEST(ScalarOps, DivisionsAgreeWithTheirDefinitions) {
  std::mt19937_64 random(test::seed());
  const auto big = [](const Scalar& s) {
    return is_signed(s.dtype()) ? static_cast<long double>(s.as_int()) : static_cast<long double>(s.as_uint());
  };
  for (DType d : {int8, uint8, int16, uint16, int32, uint32, index}) {
    for (int i = 0; i < 20'000; ++i) {
      const Scalar a = Scalar::from_int(static_cast<int64_t>(random()) >> (random() % 64), d == index ? int32 : d).cast(d);
      const Scalar b = Scalar::from_int(static_cast<int64_t>(random()) >> (random() % 64), d == index ? int32 : d).cast(d);
      if (b.is_zero()) continue;
      const long double exact = big(a) / big(b);  // exact enough: 64 bits for a quotient of 32-bit numbers
      EXPECT_EQ(scalar::cdiv(a, b), Scalar::from_int(static_cast<int64_t>(std::trunc(exact)), d)) << a.to_string() << " " << b.to_string();
      EXPECT_EQ(scalar::floordiv(a, b), Scalar::from_int(static_cast<int64_t>(std::floor(exact)), d))
          << a.to_string() << " " << b.to_string();
      EXPECT_EQ(scalar::add(scalar::mul(scalar::cdiv(a, b), b), scalar::cmod(a, b)), a);
      EXPECT_EQ(scalar::add(scalar::mul(scalar::floordiv(a, b), b), scalar::floormod(a, b)), a);
    }
  }
}

}  // namespace
}  // namespace tinygrad
