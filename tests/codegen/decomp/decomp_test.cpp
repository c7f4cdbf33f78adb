#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "codegen/decomp/decompose_ops.h"
#include "codegen/decomp/divide.h"
#include "codegen/decomp/emulate_dtypes.h"
#include "codegen/decomp/evaluate_scalar.h"
#include "codegen/decomp/transcendental.h"
#include "dtype/float_format.h"
#include "dtype/scalar_ops.h"
#include "support/test_scale.h"
#include "support/ulps.h"
#include "uop/build.h"

namespace tinygrad::codegen {
namespace {

using tinygrad::test::float_samples;
using tinygrad::test::ulps;

const UOp x64 = variable("x", 0, 0).with_dtype(DType::float64), y64 = variable("y", 0, 0).with_dtype(DType::float64);
const UOp x32 = x64.with_dtype(DType::float32), y32 = y64.with_dtype(DType::float32);

/// An input of which nothing is known but its dtype.
UOp any(const char* name, DType d) {
  const bool is_wide = d == DType::uint64;
  return variable(name, min_value(d).as_int(), is_wide ? INT64_MAX : max_value(d).as_int()).with_dtype(d);
}

using Exact = std::function<long double(long double)>;

double worst_error(const UOp& expr, const UOp& x, const Exact& exact, size_t count) {
  const DType d = x.dtype();
  test::ScalarProgram program(expr, {x});
  double worst = 0;
  for (double v : float_samples(d, 7, count)) {
    const Scalar in = Scalar::from_double(v, d);
    const double error = ulps(program.run({in}).as_double(), exact(in.as_double()), d);
    if (error > worst && error > 4)
      ADD_FAILURE() << "at " << in.to_string() << " got " << program.run({in}).to_string() << " for " << double(exact(in.as_double()));
    worst = std::max(worst, error);
  }
  return worst;
}

size_t count() { return size_t(4000 * tinygrad::test::test_scale()); }

TEST(Transcendental, Exp2) {
  const Exact exact = [](long double v) { return std::exp2(v); };
  EXPECT_LE(worst_error(exp2_by_arithmetic(x32), x32, exact, count()), 1.5);
  EXPECT_LE(worst_error(exp2_by_arithmetic(x64), x64, exact, count()), 1.5);
  EXPECT_LE(worst_error(exp2_by_arithmetic(x32, true), x32, exact, count()), 1.5);
  EXPECT_LE(worst_error(exp2_by_arithmetic(x64, true), x64, exact, count()), 1.5);
}

// Also of a multiple by no usual number: all or nothing, and NaN of 0 times infinity.
TEST(Transcendental, Exp2OfAProduct) {
  for (const bool has_ldexp : {false, true})
    for (const UOp& x : {x32, x64})
      for (const double c : {1.4426950408889634, -1.0, 3e38, -3e38, 1e-38, 0.0, double(INFINITY), -double(INFINITY), std::nan("")}) {
        SCOPED_TRACE(c);
        const Scalar factor = Scalar::from_double(c, x.dtype());
        test::ScalarProgram program(exp2_of_product(x, constant(factor), has_ldexp), {x});
        for (const double v :
             {-double(INFINITY), -200.0, -2.0, -1e-30, -0.0, 0.0, 1e-30, 0.5, 2.0, 200.0, double(INFINITY), std::nan("")}) {
          const Scalar in = Scalar::from_double(v, x.dtype());
          const double got = program.run({in}).as_double(), want = std::exp2(in.as_double() * factor.as_double());
          EXPECT_EQ(std::isnan(got), std::isnan(want)) << v;
          if (std::isnan(want)) continue;
          EXPECT_LE(ulps(got, want, x.dtype()), 200) << v;  // what is expected is of a rounded product
        }
      }
}

TEST(Transcendental, Log2) {
  const Exact exact = [](long double v) { return std::log2(v); };
  EXPECT_LE(worst_error(log2_by_arithmetic(x32), x32, exact, count()), 2.5);
  EXPECT_LE(worst_error(log2_by_arithmetic(x64), x64, exact, count()), 1);
}

TEST(Transcendental, Sin) {
  const Exact exact = [](long double v) { return std::sin(v); };
  EXPECT_LE(worst_error(sin_by_arithmetic(x32), x32, exact, count()), 2.5);
  EXPECT_LE(worst_error(sin_by_arithmetic(x64), x64, exact, count()), 2.5);
}

void check_pow(const UOp& expr, const UOp& x, const UOp& y, double bound) {
  const DType d = x.dtype();
  test::ScalarProgram program(expr, {x, y});
  double worst = 0;
  const auto check = [&](double a, double b) {
    const Scalar u = Scalar::from_double(a, d), v = Scalar::from_double(b, d);
    const long double exact = std::pow(static_cast<long double>(u.as_double()), static_cast<long double>(v.as_double()));
    const double error = ulps(program.run({u, v}).as_double(), exact, d);
    EXPECT_LE(error, bound) << u.to_string() << " ** " << v.to_string() << " gave " << program.run({u, v}).to_string() << ", not "
                            << double(exact);
    worst = std::max(worst, error);
  };
  const double special[] = {0.0, -0.0, 1,        -1,        2,   -2,   3,     -3,    0.5,      -0.5,
                            1.5, -1.5, INFINITY, -INFINITY, NAN, 1e30, -1e30, 1e-30, 16777217, 33554433};
  for (double a : special)
    for (double b : special) check(a, b);
  std::mt19937_64 random(3);
  for (size_t i = 0; i < count(); ++i) {
    const double a = std::exp2((double(random()) / 0x1p63 - 1) * 20), b = (double(random()) / 0x1p63 - 1) * 30;
    check(a, b);
    check(-a, std::round(b));
    check(1 + (double(random()) / 0x1p63 - 1) * 1e-3, b * 1000);
  }
}

TEST(Transcendental, PowOfFloat32IsRoundedFromFloat64) { check_pow(pow_by_arithmetic(x32, y32, true), x32, y32, 1); }
TEST(Transcendental, PowOfFloat32Alone) { check_pow(pow_by_arithmetic(x32, y32, false), x32, y32, 200); }
TEST(Transcendental, PowOfFloat64) { check_pow(pow_by_arithmetic(x64, y64, true), x64, y64, 8); }

TEST(Decompose, Integers) {
  const Target none;
  for (DType d : {DType::int8, DType::uint8, DType::int32, DType::uint32, DType::int64, DType::uint64}) {
    const UOp a = any("x", d), b = any("y", d);
    for (Op op : {Op::FLOORDIV, Op::FLOORMOD, Op::CMOD, Op::MAX, Op::NEG}) {
      if (op == Op::NEG && is_unsigned(d)) continue;
      const UOp expr = op == Op::NEG ? -a : alu(op, {a, b});
      test::ScalarProgram before(expr, {a, b}), after(decompose_ops(expr, none, 1), {a, b});
      for (int64_t i : {0, 1, -1, 2, 7, -7, 100, 127, -128})
        for (int64_t k : {0, 1, -1, 2, 3, -3, 8, -8, 127}) {
          const std::vector<Scalar> in = {Scalar::from_int(i, d), Scalar::from_int(k, d)};
          EXPECT_EQ(before.run(in), after.run(in)) << name(op) << " " << name(d) << " " << i << " " << k;
        }
    }
    for (int64_t divisor : {1, 8, 7, 64}) {
      const UOp expr = floor_div(a, divisor) * 3 + floor_mod(a, divisor);
      test::ScalarProgram before(expr, {a}), after(decompose_ops(expr, none, 1), {a});
      for (int64_t i = -128; i < 128; ++i) EXPECT_EQ(before.run({Scalar::from_int(i, d)}), after.run({Scalar::from_int(i, d)}));
    }
  }
}

/// The value of an index of 0 ... most as an integer of a type.
UOp up_to(int64_t most, DType d) { return cast(variable("x", 0, most), d); }

TEST(Divide, ReciprocalsAreExactForSmallNumbers) {
  for (int64_t divisor = 1; divisor <= 130; ++divisor)
    for (int64_t most : {0, 1, 2, 6, 7, 63, 64, 100, 255, 1000, 4096}) {
      const auto r = reciprocal_of(divisor, most, INT32_MAX);
      ASSERT_TRUE(r) << divisor << " " << most;
      for (int64_t x = 0; x <= most; ++x) ASSERT_EQ(x * r->factor >> r->shift, x / divisor) << x << " / " << divisor << " up to " << most;
    }
}

TEST(Divide, ReciprocalsAreExactForLargeNumbers) {
  std::mt19937_64 random(12);
  size_t found = 0;
  for (size_t i = 0; i < 100 * count(); ++i) {
    const auto most = int64_t(random() >> (random() % 62 + 2)), divisor = int64_t(random() >> (random() % 62 + 2)) + 1;
    const auto r = reciprocal_of(divisor, most, INT64_MAX);
    if (!r) continue;
    ++found;
    // The error grows with x and matters most where the quotient is about to step.
    const int64_t last = most / divisor * divisor, any = int64_t(random() % (uint64_t(most) + 1));
    for (int64_t x : {int64_t{0}, most, last, last - 1, any, any / divisor * divisor, any / divisor * divisor - 1}) {
      if (x < 0) continue;
      ASSERT_EQ(x * r->factor >> r->shift, x / divisor) << x << " / " << divisor << " up to " << most;
    }
  }
  EXPECT_GT(found, count());
}

TEST(Divide, OfKnownBoundsIsAMultiplicationAndAShift) {
  for (int64_t divisor : {1, 3, 7, 10, 64, 1000}) {
    const UOp x = up_to(20000, DType::int32), d = constant(DType::int32, divisor);
    const UOp expr = alu(Op::CDIV, {x, d}) * constant(DType::int32, 7) + alu(Op::CMOD, {x, d}), fast = decompose_ops(expr, Target{}, 1);
    for (const UOp& u : toposort(fast)) EXPECT_FALSE(u.is(Op::CDIV) || u.is(Op::CMOD)) << print_expr(fast);
    test::ScalarProgram before(expr, {x.src(0)}), after(fast, {x.src(0)});
    for (int64_t v = 0; v <= 20000; ++v) {
      const std::vector<Scalar> in = {Scalar::from_int(v, DType::index)};
      ASSERT_EQ(before.run(in), after.run(in)) << v << " by " << divisor;
    }
  }
}

TEST(Divide, ByConstantsOnTargetsWithoutDivision) {
  Target wide, narrow_only;
  for (Target* t : {&wide, &narrow_only}) t->set_ops({Op::SHL, Op::SHR, Op::MAX});
  wide.set_dtypes({DType::uint32, DType::uint64});
  narrow_only.set_dtypes({DType::uint32});
  std::mt19937_64 random(21);
  for (DType d : {DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64, DType::uint64}) {
    std::vector<Scalar> divisors, values;
    for (int64_t v : {1, 2, 3, 5, 6, 7, 10, 11, 25, 100, 125, 127, 0, -1, -2, -3, -7, -128}) divisors.push_back(Scalar::from_int(v, d));
    for (const Scalar& v : {min_value(d), max_value(d)}) divisors.push_back(v), values.push_back(v);
    for (int i = 0; i < 12; ++i) divisors.push_back(Scalar::from_uint(random() >> (random() % 64), d));
    for (int64_t v = -130; v <= 260; ++v) values.push_back(Scalar::from_int(v, d));
    for (int i = 0; i < 200; ++i) values.push_back(Scalar::from_uint(random() >> (random() % 64), d));
    const UOp x = any("x", d);
    for (const Scalar& by : divisors) {
      const UOp expr = alu(Op::CDIV, {x, constant(by)}), rest = alu(Op::CMOD, {x, constant(by)});
      for (const Target* t : {&wide, &narrow_only}) {
        const UOp fast = decompose_ops(expr, *t, 1), fast_rest = decompose_ops(rest, *t, 1);
        for (const UOp& u : toposort(fast)) EXPECT_FALSE(u.is(Op::CDIV)) << print_expr(fast);
        test::ScalarProgram quotient(fast, {x}), remainder(fast_rest, {x});
        for (const Scalar& v : values) {
          ASSERT_EQ(quotient.run({v}), scalar::cdiv(v, by)) << repr(d) << " " << v.to_string() << " by " << by.to_string();
          ASSERT_EQ(remainder.run({v}), scalar::cmod(v, by)) << repr(d) << " " << v.to_string() << " by " << by.to_string();
        }
      }
    }
  }
}

TEST(Decompose, Threefry) {
  const UOp a = x64.with_dtype(DType::uint64), b = y64.with_dtype(DType::uint64);
  test::ScalarProgram program(decompose_ops(alu(Op::THREEFRY, {a, b}), Target{}, 1), {a, b});
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    const Scalar u = Scalar::from_uint(random(), DType::uint64), v = Scalar::from_uint(random(), DType::uint64);
    EXPECT_EQ(program.run({u, v}), scalar::threefry(u, v));
  }
}

constexpr DType narrow[] = {DType::fp8e4m3, DType::fp8e5m2, DType::fp8e4m3fnuz, DType::fp8e5m2fnuz, DType::float16, DType::bfloat16};

TEST(EmulatedDTypes, EveryValueIsDecoded) {
  const UOp bits = x64.with_dtype(DType::uint32);
  for (DType d : narrow) {
    test::ScalarProgram program(decode_float(bits, d), {bits});
    for (uint64_t b = 0; b < uint64_t{1} << bitsize(d); ++b) {
      const double expected = Scalar::from_storage_bits(b, d).as_double(),
                   got = program.run({Scalar::from_uint(b, DType::uint32)}).as_double();
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(got) : got == expected && std::signbit(got) == std::signbit(expected))
          << repr(d) << " " << b;
    }
  }
}

TEST(EmulatedDTypes, EncodingRoundsToNearestEven) {
  for (DType d : narrow) {
    test::ScalarProgram program(encode_float(x32, d), {x32});
    const auto check = [&](float v) {
      const uint64_t got = program.run({Scalar::of(v)}).as_uint(), expected = Scalar::of(v).cast(d).storage_bits();
      const bool is_nan = Scalar::from_storage_bits(expected, d).is_nan();
      EXPECT_TRUE(is_nan ? Scalar::from_storage_bits(got, d).is_nan() : got == expected) << repr(d) << " " << v << " gave " << got;
    };
    for (uint64_t b = 0; b + 1 < uint64_t{1} << (bitsize(d) - 1); ++b) {
      const float low = float(Scalar::from_storage_bits(b, d).as_double()), high = float(Scalar::from_storage_bits(b + 1, d).as_double());
      if (!std::isfinite(low) || (bitsize(d) == 16 && b % 7)) continue;
      const float middle = std::isfinite(high) ? low + (high - low) / 2 : low * 1.01f;
      for (float v : {low, middle, std::nextafterf(middle, 0), std::nextafterf(middle, INFINITY)}) check(v), check(-v);
    }
    for (double v : float_samples(DType::float32, 11, count())) check(float(v));
  }
}

TEST(EmulatedDTypes, WhatIsOnlyMovedKeepsItsBits) {
  const Target none;
  const UOp from = param(DType::bfloat16, 8, ParamArg{.slot = 1}), to = param(DType::bfloat16, 8, ParamArg{.slot = 0});
  const UOp copy = emulate_dtypes(store(index(to, index_const(0)), load(index(from, index_const(3)))), none);
  for (const UOp& u : toposort(copy)) EXPECT_FALSE(is_float(u.dtype())) << print_expr(copy);
}

TEST(EmulatedDTypes, ChoicesAmongChoicesAreWrittenOnce) {
  const Target none;
  const UOp from = param(DType::bfloat16, 8, ParamArg{.slot = 1}), to = param(DType::bfloat16, 8, ParamArg{.slot = 0});
  UOp y = load(index(from, index_const(0))), z = load(index(from, index_const(1)));
  for (int64_t i = 0; i < 40; ++i) {
    const UOp chosen = where(x32 < constant(DType::float32, i), y, z), other = where(x32 < constant(DType::float32, -1 - i), z, y);
    y = chosen, z = other;
  }
  EXPECT_LT(toposort(emulate_dtypes(store(index(to, index_const(0)), y), none)).size(), 1000u);
}

TEST(EmulatedDTypes, AListNamesThem) {
  const Target t = without_dtypes(interp_target(), "half,fp8e4m3");
  EXPECT_FALSE(t.supports(DType::float16) || t.supports(DType::fp8e4m3));
  EXPECT_TRUE(t.supports(DType::bfloat16));
  EXPECT_THROW(without_dtypes(interp_target(), "float32"), ValueError);
  EXPECT_THROW(without_dtypes(interp_target(), "float17"), DTypeError);
}

TEST(EmulatedDTypes, ConversionsRoundOnce) {
  Target wide, without_float64;
  wide.set_dtypes({DType::float32, DType::float64, DType::int64, DType::uint64, DType::int32});
  without_float64.set_dtypes({DType::float32, DType::int64, DType::uint64, DType::int32});
  std::mt19937_64 random(5);
  for (DType d : narrow) {
    for (DType from : {DType::float64, DType::int64, DType::uint64, DType::int32, DType::uint32}) {
      const UOp a = x64.with_dtype(from), expr = cast(cast(a, d), DType::float32);
      test::ScalarProgram before(expr, {a}), after(emulate_dtypes(expr, is_float(from) ? wide : without_float64), {a});
      const auto check = [&](const Scalar& in) {
        EXPECT_EQ(before.run({in}), after.run({in})) << repr(from) << " to " << repr(d) << ": " << in.to_string();
      };
      for (size_t i = 0; i < count(); ++i) {
        // A midpoint of the narrow type, and a little more or less.
        const double low = Scalar::from_storage_bits(random(), d).as_double(), high = Scalar::from_storage_bits(random(), d).as_double();
        if (!std::isfinite(low) || !std::isfinite(high)) continue;
        const double v = low * (1 + 0x1p-9) + double(int(random() % 3) - 1) * high * 0x1p-40;
        check(Scalar::from_double(from == DType::float64 ? v : v * double(random() >> (random() % 64)), from));
        if (is_float(from)) continue;
        const int digits = finfo(d).mantissa_bits + 2, width = bitsize(from);
        const uint64_t middle = ((random() >> (64 - digits)) | 1) << (random() % uint64_t(width - digits + 1));
        for (uint64_t near : {middle, middle + 1, middle - 1})
          check(Scalar::from_uint(near, from)), check(Scalar::from_uint(0 - near, from));
      }
    }
  }
}

TEST(EmulatedDTypes, ArithmeticIsThatOfTheDType) {
  Target t;
  t.set_dtypes({DType::float32});
  std::mt19937_64 random(9);
  for (DType d : narrow) {
    const UOp bits = x64.with_dtype(d == DType::float16 || d == DType::bfloat16 ? DType::uint16 : DType::uint8),
              bits2 = y64.with_dtype(bits.dtype());
    const UOp a = bitcast(bits, d), b = bitcast(bits2, d);
    const UOp expr = cast(max(a * b + a, a - b), DType::float32);
    test::ScalarProgram before(expr, {bits, bits2}), after(emulate_dtypes(expr, t), {bits, bits2});
    for (size_t i = 0; i < count(); ++i) {
      const std::vector<Scalar> in = {Scalar::from_uint(random(), bits.dtype()), Scalar::from_uint(random(), bits.dtype())};
      EXPECT_EQ(before.run(in), after.run(in)) << repr(d) << " " << in[0].to_string() << " " << in[1].to_string();
    }
  }
}

}  // namespace
}  // namespace tinygrad::codegen
