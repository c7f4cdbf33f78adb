// 64-bit integers by words of 32: every op against what dtype/scalar_ops.h says.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "codegen/decomp/choose_index_width.h"
#include "codegen/decomp/decompose_ops.h"
#include "codegen/decomp/emulate_dtypes.h"
#include "codegen/decomp/emulate_long.h"
#include "codegen/decomp/evaluate_scalar.h"
#include "dtype/scalar_ops.h"
#include "rewrite/rewrite.h"
#include "support/test_scale.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::codegen {
namespace {

/// What a GPU without 64-bit integers has at least.
Target small_target() {
  Target t;
  t.set_ops({Op::SHL, Op::SHR, Op::CDIV, Op::CMOD, Op::MAX, Op::NEG, Op::FDIV, Op::CMPEQ, Op::TRUNC});
  t.set_dtypes({DType::bool_, DType::int32, DType::uint32, DType::float32});
  return t;
}

UOp word(const char* name) { return variable(name, 0, UINT32_MAX).with_dtype(DType::uint32); }
UOp number(uint64_t value, DType d) { return constant(Scalar::from_uint(value, d)); }
constexpr DType u64 = DType::uint64, i64 = DType::int64;

/// A 64-bit input, of two words.
struct Input {
  UOp low, high, value;
  Input(const char* low_name, const char* high_name, DType d)
      : low(word(low_name)), high(word(high_name)), value(cast((cast(high, u64) << number(32, u64)) | cast(low, u64), d)) {}
};

UOp simplified(const UOp& u) { return rewrite::graph_rewrite(u, symbolic::data_rules(), {.name = "simplify"}); }

UOp lowered(const UOp& expr, const Target& target) {
  const UOp out = emulate_long(decompose_ops(expr, target, 1), target);
  for (const UOp& u : toposort(out)) EXPECT_FALSE(u.dtype() == i64 || u.dtype() == u64) << print_expr(expr);
  return out;
}

/// A 64-bit expression, or one of another dtype, over 64-bit inputs.
class LongProgram {
 public:
  LongProgram(const UOp& expr, const std::vector<Input>& inputs, const Target& target) : dtype_(expr.dtype()) {
    std::vector<UOp> words;
    for (const Input& i : inputs) words.insert(words.end(), {i.low, i.high});
    const bool is_long = bitsize(dtype_) == 64 && is_int(dtype_);
    const UOp bits = is_long ? cast(expr, u64) : expr;
    parts_.emplace_back(lowered(is_long ? cast(bits, DType::uint32) : bits, target), words);
    if (is_long) parts_.emplace_back(lowered(cast(bits >> number(32, u64), DType::uint32), target), words);
  }

  Scalar run(const std::vector<Scalar>& in) {
    std::vector<Scalar> words;
    for (const Scalar& s : in) {
      words.push_back(Scalar::from_uint(s.storage_bits() & UINT32_MAX, DType::uint32));
      words.push_back(Scalar::from_uint(s.storage_bits() >> 32, DType::uint32));
    }
    const Scalar low = parts_[0].run(words);
    if (parts_.size() == 1) return low;
    return Scalar::from_uint(parts_[1].run(words).as_uint() << 32 | low.as_uint(), dtype_);
  }

 private:
  DType dtype_;
  std::vector<test::ScalarProgram> parts_;
};

size_t count() { return size_t(1000 * tinygrad::test::test_scale()); }

/// Edges, and random numbers of every length.
std::vector<uint64_t> samples(size_t random_ones) {
  std::vector<uint64_t> out;
  for (int shift : {0, 1, 16, 24, 31, 32, 33, 40, 48, 53, 62, 63})
    for (int64_t around : {-1, 0, 1})
      for (uint64_t sign : {uint64_t(1), ~uint64_t(0)}) out.push_back(sign * ((uint64_t{1} << shift) + uint64_t(around)));
  std::mt19937_64 random(4);
  for (size_t i = 0; i < random_ones; ++i) {
    const uint64_t v = random() >> (random() % 64);
    out.push_back(random() % 2 ? v : 0 - v);
  }
  return out;
}

constexpr Op binary_ops[] = {Op::ADD,      Op::SUB,  Op::MUL,  Op::AND,   Op::OR,    Op::XOR,   Op::MAX, Op::FLOORDIV,
                             Op::FLOORMOD, Op::CDIV, Op::CMOD, Op::CMPLT, Op::CMPNE, Op::CMPEQ, Op::SHL, Op::SHR};

Scalar expected(Op op, const Scalar& a, const Scalar& b) {
  const std::vector<UOp> inputs = {variable("a", 0, 0).with_dtype(a.dtype()), variable("b", 0, 0).with_dtype(b.dtype())};
  return test::ScalarProgram(alu(op, inputs), inputs).run({a, b});
}

TEST(EmulateLong, BinaryOps) {
  for (DType d : {i64, u64}) {
    const Input a("a0", "a1", d), b("b0", "b1", d);
    for (Op op : binary_ops) {
      LongProgram program(alu(op, {a.value, b.value}), {a, b}, small_target());
      std::vector<uint64_t> left = samples(8), right = {0, 1, 2, 7};
      for (size_t i = 0; i < left.size(); i += 5) right.push_back(left[i]);
      if (op == Op::SHL || op == Op::SHR) right = {0, 1, 5, 31, 32, 33, 63, 64, 65, 1000, uint64_t{1} << 32, ~uint64_t{0}};
      for (uint64_t x : left)
        for (uint64_t y : right) {
          const std::vector<Scalar> in = {Scalar::from_uint(x, d), Scalar::from_uint(y, d)};
          ASSERT_EQ(program.run(in), expected(op, in[0], in[1]))
              << repr(d) << ": " << in[0].to_string() << " " << name(op) << " " << in[1].to_string();
        }
    }
  }
}

TEST(EmulateLong, Quotients) {
  std::mt19937_64 random(8);
  for (DType d : {i64, u64}) {
    const Input a("a0", "a1", d), b("b0", "b1", d);
    LongProgram quotient(alu(Op::CDIV, {a.value, b.value}), {a, b}, small_target());
    Target reciprocals = small_target();
    reciprocals.set_ops({Op::SHL, Op::SHR, Op::RECIPROCAL});
    LongProgram by_reciprocal(alu(Op::CDIV, {a.value, b.value}), {a, b}, reciprocals);
    for (size_t i = 0; i < 2 * count(); ++i) {
      const uint64_t y = random() >> (random() % 64), times = random() >> (random() % 64);
      for (uint64_t x : {times, times * y, times * y - 1}) {
        const Scalar u = Scalar::from_uint(x, d), v = Scalar::from_uint(y, d), want = scalar::cdiv(u, v);
        ASSERT_EQ(quotient.run({u, v}), want) << u.to_string() << " / " << v.to_string();
        ASSERT_EQ(by_reciprocal.run({u, v}), want) << u.to_string() << " / " << v.to_string();
      }
    }
  }
}

TEST(EmulateLong, ByConstants) {
  for (DType d : {i64, u64}) {
    const Input a("a0", "a1", d);
    for (uint64_t c : {uint64_t{1}, uint64_t{3}, uint64_t{7}, uint64_t{8}, uint64_t{1} << 32, ~uint64_t{0}, uint64_t{10000000000},
                       uint64_t{0}, uint64_t{33}, uint64_t{64}})
      for (Op op : binary_ops) {
        const Scalar by = Scalar::from_uint(c, d);
        LongProgram program(simplified(alu(op, {a.value, constant(by)})), {a}, small_target());
        for (uint64_t x : samples(20)) {
          const Scalar v = Scalar::from_uint(x, d);
          ASSERT_EQ(program.run({v}), expected(op, v, by)) << v.to_string() << " " << name(op) << " " << by.to_string();
        }
      }
  }
}

TEST(EmulateLong, OtherOps) {
  for (DType d : {i64, u64}) {
    const Input a("a0", "a1", d), b("b0", "b1", d), c("c0", "c1", d);
    LongProgram negated(-a.value, {a}, small_target()), chosen(where(a.value < b.value, c.value, a.value), {a, b, c}, small_target());
    LongProgram sum(alu(Op::MULACC, {a.value, b.value, c.value}), {a, b, c}, small_target());
    const std::vector<uint64_t> s = samples(30);
    for (size_t i = 0; i < s.size(); ++i) {
      const Scalar x = Scalar::from_uint(s[i], d), y = Scalar::from_uint(s[i * 7 % s.size()], d),
                   z = Scalar::from_uint(s[i * 11 % s.size()], d);
      EXPECT_EQ(negated.run({x}), scalar::neg(x));
      EXPECT_EQ(chosen.run({x, y, z}), scalar::cmplt(x, y).as_bool() ? z : x);
      EXPECT_EQ(sum.run({x, y, z}), scalar::mulacc(x, y, z));
    }
  }
}

TEST(EmulateLong, ShiftsOfOtherDTypes) {
  const Input a("a0", "a1", i64);
  const UOp x = word("x"), narrow = cast(x, DType::int16), y = cast(x, DType::int32);
  for (Op op : {Op::SHL, Op::SHR}) {
    LongProgram by_long(alu(op, {narrow, a.value}), {a, Input("x", "unused", u64)}, small_target());
    LongProgram of_long(alu(op, {a.value, y}), {a, Input("x", "unused", u64)}, small_target());
    for (uint64_t v : samples(10))
      for (int64_t n : {0, 1, 15, 16, 32, 40, -1, 64, 1000}) {
        const Scalar value = Scalar::from_uint(v, i64), amount = Scalar::from_int(n, i64), number = Scalar::from_int(n, u64);
        const Scalar small = value.cast(DType::int16);
        EXPECT_EQ(by_long.run({amount, value.cast(u64)}), expected(op, small, amount)) << small.to_string() << " by " << n;
        EXPECT_EQ(of_long.run({value, number}), expected(op, value, amount.cast(DType::int32))) << value.to_string() << " by " << n;
      }
  }
}

TEST(EmulateLong, Threefry) {
  const Input a("a0", "a1", u64), b("b0", "b1", u64);
  LongProgram program(alu(Op::THREEFRY, {a.value, b.value}), {a, b}, small_target());
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    const Scalar u = Scalar::from_uint(random(), u64), v = Scalar::from_uint(random(), u64);
    EXPECT_EQ(program.run({u, v}), scalar::threefry(u, v));
  }
}

TEST(EmulateLong, CastsToOtherDTypes) {
  Target t = small_target();
  t.set_dtypes({DType::float64, DType::float16, DType::bfloat16, DType::fp8e4m3, DType::fp8e5m2});
  for (DType d : {i64, u64}) {
    const Input a("a0", "a1", d);
    for (DType to : {DType::bool_, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, i64, u64,
                     DType::fp8e4m3, DType::fp8e5m2, DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
      LongProgram program(cast(a.value, to), {a}, t);
      const auto check = [&](uint64_t bits) {
        const Scalar v = Scalar::from_uint(bits, d);
        ASSERT_EQ(program.run({v}), v.cast(to)) << v.to_string() << " to " << repr(to);
      };
      for (uint64_t x : samples(count())) check(x);
      if (!is_float(to)) continue;
      // Halfway between two floats, and a little more or less.
      std::mt19937_64 random(6);
      const int digits = finfo(to).mantissa_bits + 2;
      for (size_t i = 0; i < count(); ++i) {
        const uint64_t top = (random() >> (64 - digits)) | 1;
        const uint64_t middle = top << (random() % uint64_t(64 - digits + 1)), last = random() % 3 ? 1 : uint64_t{1} << (random() % 40);
        for (uint64_t v : {middle, middle + last, middle - last}) check(v), check(0 - v);
      }
    }
  }
}

TEST(EmulateLong, CastsFromOtherDTypes) {
  Target t = small_target();
  t.set_dtypes({DType::float64, DType::float16, DType::bfloat16});
  for (DType from : {DType::bool_, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::float16,
                     DType::bfloat16, DType::float32, DType::float64}) {
    std::vector<Scalar> values;
    for (uint64_t v : samples(count())) values.push_back(Scalar::from_int(int64_t(v), from));
    if (is_float(from)) {
      for (uint64_t v : samples(count()))
        values.push_back(Scalar::from_double(double(v) / 8, from)), values.push_back(Scalar::from_double(double(v), from));
      for (double v :
           {0.0, -0.0, 0.5, -0.5, 0x1p63, -0x1p63, 0x1p64, -0x1p64, 1e30, -1e30, 1e-40, double(INFINITY), -double(INFINITY), double(NAN)})
        for (double near : {v, std::nextafter(v, 0), double(std::nextafterf(float(v), 0))})
          values.push_back(Scalar::from_double(near, from));
    }
    const UOp x = variable("x", is_signed(from) ? INT32_MIN : 0, UINT32_MAX).with_dtype(from);
    for (DType to : {i64, u64}) {
      const UOp bits = cast(cast(x, to), u64);
      test::ScalarProgram low(lowered(cast(bits, DType::uint32), t), {x}),
          high(lowered(cast(bits >> number(32, u64), DType::uint32), t), {x});
      for (const Scalar& v : values)
        ASSERT_EQ(high.run({v}).as_uint() << 32 | low.run({v}).as_uint(), v.cast(to).storage_bits())
            << repr(from) << " " << v.to_string() << " to " << repr(to);
    }
  }
}

TEST(EmulateLong, MemoryHoldsWords) {
  const UOp from = param(i64, 8, ParamArg{.slot = 1}), to = param(i64, 8, ParamArg{.slot = 0});
  const UOp at = variable("i", 0, 7).with_dtype(DType::int32), gate = at < 5;
  const UOp value = UOp(Op::LOAD, i64, {index(from, at), constant(i64, -1), gate});
  const UOp kernel = emulate_long(store(index(to, at), value), small_target());
  const UOp words_from = param(DType::uint32, 16, ParamArg{.slot = 1}), words_to = param(DType::uint32, 16, ParamArg{.slot = 0});
  ASSERT_TRUE(kernel.is(Op::GROUP));
  for (size_t i = 0; i < 2; ++i) {
    const UOp& word = kernel.src(i);
    ASSERT_TRUE(word.is(Op::STORE));
    EXPECT_EQ(word.src(0).src(0), words_to);
    const UOp &read = word.src(1), place = i ? at * 2 + 1 : at * 2;
    EXPECT_EQ(word.src(0).src(1), place);
    ASSERT_TRUE(read.is(Op::LOAD));
    EXPECT_EQ(read.src(0).src(0), words_from);
    EXPECT_EQ(read.src(0).src(1), place);
    EXPECT_TRUE(is_const(read.src(1), UINT32_MAX));
    EXPECT_EQ(read.src(2), gate);
  }
}

TEST(EmulateLong, ATargetThatHasThemChangesNothing) {
  const UOp from = param(i64, 8, ParamArg{.slot = 1}),
            copy = store(index(param(i64, 8, ParamArg{.slot = 0}), index_const(0)), load(index(from, index_const(1))));
  EXPECT_EQ(emulate_long(copy, interp_target()), copy);
  EXPECT_NE(emulate_long(copy, without_dtypes(interp_target(), "uint64")), copy);
}

TEST(EmulateLong, WhatIndicesDoNotReachIsAnError) {
  const Target t = small_target();
  const auto copy = [](DType d, int64_t size) {
    const UOp i = range(100, 0);
    const UOp effects[] = {end(store(index(param(d, size, ParamArg{.slot = 0}), i), constant(d, 1)), std::span(&i, 1))};
    return sink(effects, KernelArg{.name = "long_one"});
  };
  EXPECT_NO_THROW(emulate_long(choose_index_width(copy(i64, INT32_MAX / 2), t), t));
  for (const UOp& kernel : {copy(i64, int64_t{1} << 30), copy(DType::uint32, int64_t{1} << 31)}) {
    try {
      emulate_long(choose_index_width(kernel, t), t);
      ADD_FAILURE() << "no error";
    } catch (const CompileError& e) {
      EXPECT_NE(std::string(e.what()).find("long_one"), std::string::npos) << e.what();
    }
  }
  const UOp n = variable("n", 0, int64_t{1} << 40),
            effects[] = {store(index(param(i64, 1, ParamArg{.slot = 0}), index_const(0)), cast(n, i64))};
  EXPECT_THROW(choose_index_width(sink(effects, KernelArg{.name = "long_one"}), t), CompileError);
}

TEST(IndexWidth, EachValueHasItsOwnWithoutInt64) {
  const Target t = small_target();
  const UOp i = range(100, 0), at = cast(load(index(param(i64, 100, ParamArg{.slot = 1}), i)), DType::index);
  const UOp valid = logical_not(at < 0) & (at < 50),
            place = index_valid(param(DType::float32, 150, ParamArg{.slot = 2}), at * 3 + floor_mod(i, 7), valid);
  const UOp out = end(store(index(param(DType::float32, 100, ParamArg{.slot = 0}), i), load(place)), std::span(&i, 1));
  const UOp narrow = choose_index_width(sink(std::span(&out, 1)), t);
  for (const UOp& u : toposort(narrow)) {
    EXPECT_NE(u.dtype(), DType::index);
    if (u.is(Op::RANGE) || u.is(Op::CMOD)) {
      EXPECT_EQ(u.dtype(), DType::int32);
    }
    if (u.is(Op::MUL)) {
      EXPECT_EQ(u.dtype(), i64);
    }
  }
}

TEST(EmulatedDTypes, IntegersOf64BitsAreTakenTogether) {
  EXPECT_FALSE(without_dtypes(interp_target(), "int64").has_int64());
  EXPECT_FALSE(without_dtypes(interp_target(), "half,ulong").has_int64());
  EXPECT_TRUE(without_dtypes(interp_target(), "half").has_int64());
  for (const char* name : {"int32", "uint8", "bool", "float64"}) EXPECT_THROW(without_dtypes(interp_target(), name), ValueError) << name;
}

}  // namespace
}  // namespace tinygrad::codegen
