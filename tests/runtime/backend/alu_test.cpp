// Every ALU op and conversion on every dtype, scalar and in vectors, against the definitions in dtype/scalar_ops.h.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <fmt/core.h>

#include "dtype/scalar_ops.h"
#include "runtime/backends.h"
#include "runtime/program_builder.h"

namespace tinygrad {
namespace {

using test::Program;
using test::ProgramBuilder;

constexpr DType kDTypes[] = {DType::bool_,  DType::int8,  DType::uint8,  DType::int16,   DType::uint16,  DType::int32,
                             DType::uint32, DType::int64, DType::uint64, DType::float16, DType::float32, DType::float64};
constexpr int kLanes = 8;

Device& cpu() { return runtime::open_device("CPU"); }

/// Values at which ops differ, then random bits.
std::vector<Scalar> values_to_try(DType d, uint64_t seed) {
  std::vector<Scalar> out;
  std::mt19937_64 random(seed);
  if (is_float(d)) {
    const double inf = std::numeric_limits<double>::infinity();
    for (double v : {0.0,          -0.0,   1.0,     -1.0,   0.5,      -2.5,         3.0,          1e-40,         1e-8, 65504.0,
                     127.9,        -128.9, 255.5,   256.0,  32767.9,  2147483647.0, 2147483648.0, -2147483648.0, 3e9,  -3e9,
                     6442450944.0, 0x1p62, -0x1p63, 0x1p63, 0x1.8p63, 0x1p64,       1e30,         inf,           -inf, std::nan("")}) {
      out.push_back(Scalar::from_double(v, d));
    }
    for (int i = 0; i < 50; ++i) out.push_back(Scalar::from_storage_bits(random() >> (64 - bitsize(d)), d));
    for (int i = 0; i < 50; ++i) out.push_back(Scalar::from_double(std::uniform_real_distribution<>(-100, 100)(random), d));
  } else {
    for (int64_t v : {0, 1, -1, 2, 3, 7, 8, 31, 63, 64, 100}) out.push_back(Scalar::from_int(v, d));
    out.push_back(min_value(d));
    out.push_back(max_value(d));
    for (int i = 0; i < 80; ++i) out.push_back(Scalar::from_uint(random() >> (random() % 64), d));
  }
  return out;
}

/// A whole number of vectors of every first value with every second.
struct Operands {
  std::vector<Scalar> a, b, c;
};

Operands operands(DType da, DType db, DType dc) {
  const auto a = values_to_try(da, 1), b = values_to_try(db, 2), c = values_to_try(dc, 3);
  Operands out;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      out.a.push_back(a[i]);
      out.b.push_back(b[j]);
      out.c.push_back(c[(i * 7 + j) % c.size()]);
    }
  }
  while (out.a.size() % kLanes != 0) {
    for (auto* v : {&out.a, &out.b, &out.c}) v->push_back(v->front());
  }
  return out;
}

BufferPtr upload(const std::vector<Scalar>& values) {
  const DType d = values[0].dtype();
  std::vector<std::byte> bytes(values.size() * itemsize(d));
  for (size_t i = 0; i < values.size(); ++i) values[i].to_bytes(bytes.data() + i * itemsize(d));
  const BufferPtr buffer = Buffer::make(cpu(), static_cast<int64_t>(values.size()), d);
  buffer->copyin(bytes);
  return buffer;
}

std::vector<Scalar> download(Buffer& buffer) {
  std::vector<std::byte> bytes(buffer.nbytes());
  buffer.copyout(bytes);
  std::vector<Scalar> out;
  for (size_t at = 0; at < bytes.size(); at += itemsize(buffer.dtype()))
    out.push_back(Scalar::from_bytes(bytes.data() + at, buffer.dtype()));
  return out;
}

using Body = std::function<UOp(ProgramBuilder&, const UOp&, const UOp&, const UOp&)>;

std::vector<Scalar> run(const Operands& in, DType result, int lanes, const Body& body) {
  const auto n = static_cast<int64_t>(in.a.size());
  ProgramBuilder b;
  const UOp out = b.param(result, n, 0), x = b.param(in.a[0].dtype(), n, 1), y = b.param(in.b[0].dtype(), n, 2),
            z = b.param(in.c[0].dtype(), n, 3);
  const UOp r = b.range(n / lanes), at = b.alu(Op::MUL, {r, b.number(lanes)});
  b.store(out, at, body(b, b.load(x, at, lanes), b.load(y, at, lanes), b.load(z, at, lanes)), lanes);
  b.end(r);
  Program program(cpu(), b.linear(), "alu");
  const BufferPtr buffers[] = {Buffer::make(cpu(), n, result), upload(in.a), upload(in.b), upload(in.c)};
  program.run(buffers);
  return download(*buffers[0]);
}

template <class Expected>
void check(std::string_view what, const Operands& in, DType result, const Body& body, Expected expected) {
  for (int lanes : {1, kLanes}) {
    const std::vector<Scalar> got = run(in, result, lanes, body);
    int wrong = 0;
    for (size_t i = 0; i < got.size() && wrong < 5; ++i) {
      if (expected(i, got[i])) continue;
      ++wrong;
      ADD_FAILURE() << fmt::format("{} in {} lanes of {}: {}, {}, {} gives {}", what, lanes, repr(in.a[i].dtype()), in.a[i].to_string(),
                                   in.b[i].to_string(), in.c[i].to_string(), got[i].to_string());
    }
  }
}

void check_binary(Op op, DType d, Scalar (*definition)(const Scalar&, const Scalar&)) {
  const Operands in = operands(d, d, DType::bool_);
  const DType result = in_group(op, Group::comparison) ? DType::bool_ : d;
  check(
      name(op), in, result, [&](ProgramBuilder& b, const UOp& x, const UOp& y, const UOp&) { return b.alu(op, {x, y}); },
      [&](size_t i, const Scalar& got) { return got == definition(in.a[i], in.b[i]); });
}

void check_unary(Op op, DType d, Scalar (*definition)(const Scalar&)) {
  const Operands in = operands(d, DType::bool_, DType::bool_);
  check(
      name(op), in, d, [&](ProgramBuilder& b, const UOp& x, const UOp&, const UOp&) { return b.alu(op, {x}); },
      [&](size_t i, const Scalar& got) { return got == definition(in.a[i]); });
}

class CpuAlu : public testing::TestWithParam<DType> {};
class CpuFloatAlu : public CpuAlu {};
class CpuIntAlu : public CpuAlu {};

TEST_P(CpuAlu, RingOps) {
  check_binary(Op::ADD, GetParam(), scalar::add);
  check_binary(Op::SUB, GetParam(), scalar::sub);
  check_binary(Op::MUL, GetParam(), scalar::mul);
  check_unary(Op::NEG, GetParam(), scalar::neg);
}

TEST_P(CpuAlu, Comparisons) {
  check_binary(Op::CMPLT, GetParam(), scalar::cmplt);
  check_binary(Op::CMPNE, GetParam(), scalar::cmpne);
  check_binary(Op::CMPEQ, GetParam(), scalar::cmpeq);
  check_binary(Op::MAX, GetParam(), scalar::max);
}

TEST_P(CpuAlu, Ternary) {
  const DType d = GetParam();
  const Operands choice = operands(DType::bool_, d, d);
  check(
      "WHERE", choice, d, [](ProgramBuilder& b, const UOp& x, const UOp& y, const UOp& z) { return b.alu(Op::WHERE, {x, y, z}); },
      [&](size_t i, const Scalar& got) { return got == (choice.a[i].as_bool() ? choice.b[i] : choice.c[i]); });
  const Operands in = operands(d, d, d);
  check(
      "MULACC", in, d, [](ProgramBuilder& b, const UOp& x, const UOp& y, const UOp& z) { return b.alu(Op::MULACC, {x, y, z}); },
      [&](size_t i, const Scalar& got) {
        return got == scalar::mulacc(in.a[i], in.b[i], in.c[i]) || got == scalar::add(scalar::mul(in.a[i], in.b[i]), in.c[i]);
      });
}

TEST_P(CpuFloatAlu, FloatOps) {
  const DType d = GetParam();
  check_binary(Op::FDIV, d, scalar::fdiv);
  check_unary(Op::RECIPROCAL, d, scalar::reciprocal);
  check_unary(Op::SQRT, d, scalar::sqrt);
  check_unary(Op::TRUNC, d, scalar::trunc);
}

TEST(CpuBoolAlu, Bits) {
  check_binary(Op::AND, DType::bool_, scalar::and_);
  check_binary(Op::OR, DType::bool_, scalar::or_);
  check_binary(Op::XOR, DType::bool_, scalar::xor_);
}

TEST_P(CpuIntAlu, BitsAndDivision) {
  const DType d = GetParam();
  check_binary(Op::AND, d, scalar::and_);
  check_binary(Op::OR, d, scalar::or_);
  check_binary(Op::XOR, d, scalar::xor_);
  check_binary(Op::CDIV, d, scalar::cdiv);
  check_binary(Op::CMOD, d, scalar::cmod);
  check_binary(Op::SHL, d, scalar::shl);
  check_binary(Op::SHR, d, scalar::shr);
}

TEST_P(CpuIntAlu, ConstantDivisorsAndAmounts) {
  const DType d = GetParam();
  struct Case {
    Op op;
    Scalar (*definition)(const Scalar&, const Scalar&);
  };
  for (const Case& c :
       {Case{Op::CDIV, scalar::cdiv}, Case{Op::CMOD, scalar::cmod}, Case{Op::SHL, scalar::shl}, Case{Op::SHR, scalar::shr}}) {
    for (int64_t value : {0, 1, -1, 3, 8, 200}) {
      const Operands in = operands(d, DType::bool_, DType::bool_);
      const Scalar constant = Scalar::from_int(value, d);
      for (int lanes : {1, kLanes}) {
        const auto got = run(in, d, lanes, [&](ProgramBuilder& b, const UOp& x, const UOp&, const UOp&) {
          const UOp k = b.constant(constant);
          return b.alu(c.op, {x, lanes == 1 ? k : b.splat(k, lanes)});
        });
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i], c.definition(in.a[i], constant)) << name(c.op) << " of " << in.a[i].to_string() << " by " << value;
        }
      }
    }
  }
}

TEST_P(CpuAlu, ConversionsFromIt) {
  const DType d = GetParam();
  const Operands in = operands(d, DType::bool_, DType::bool_);
  for (const DType to : kDTypes) {
    check(
        fmt::format("CAST to {}", repr(to)), in, to, [&](ProgramBuilder& b, const UOp& x, const UOp&, const UOp&) { return b.cast(x, to); },
        [&](size_t i, const Scalar& got) { return got == in.a[i].cast(to); });
    if (itemsize(to) != itemsize(d)) continue;
    check(
        fmt::format("BITCAST to {}", repr(to)), in, to,
        [&](ProgramBuilder& b, const UOp& x, const UOp&, const UOp&) { return b.bitcast(x, to); },
        [&](size_t i, const Scalar& got) { return got == in.a[i].bitcast(to); });
  }
}

std::string dtype_name(const testing::TestParamInfo<DType>& tested) {
  const std::string_view text = repr(tested.param);
  return std::string(text.substr(text.find('.') + 1));
}

INSTANTIATE_TEST_SUITE_P(All, CpuAlu, testing::ValuesIn(kDTypes), dtype_name);
INSTANTIATE_TEST_SUITE_P(Floats, CpuFloatAlu, testing::ValuesIn(kDTypes + 9, kDTypes + 12), dtype_name);
INSTANTIATE_TEST_SUITE_P(Integers, CpuIntAlu, testing::ValuesIn(kDTypes + 1, kDTypes + 9), dtype_name);

}  // namespace
}  // namespace tinygrad
