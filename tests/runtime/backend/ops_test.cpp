// Every ALU op and conversion on every dtype, on every device, through code generation: beside what the evaluator says of the same kernel.
// Dtypes and ops that a device lacks are computed by others there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/core.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "runtime/every_device.h"
#include "support/ulps.h"

namespace tinygrad {
namespace {

using codegen::test::arg;
using codegen::test::ended;
using codegen::test::kernel;
using codegen::test::loop;
using codegen::test::read;
using codegen::test::write;

constexpr DType kDTypes[] = {DType::bool_,       DType::int8,    DType::uint8,    DType::int16,   DType::uint16,  DType::int32,
                             DType::uint32,      DType::int64,   DType::uint64,   DType::fp8e4m3, DType::fp8e5m2, DType::fp8e4m3fnuz,
                             DType::fp8e5m2fnuz, DType::float16, DType::bfloat16, DType::float32, DType::float64};
constexpr int64_t kCount = 4096;

/// Values at which ops differ, then random bits.
std::vector<Scalar> values_to_try(DType d, uint64_t seed) {
  std::vector<Scalar> out;
  std::mt19937_64 random(seed);
  if (is_float(d)) {
    const double inf = std::numeric_limits<double>::infinity();
    for (double v : {0.0,    -0.0,  1.0,   -1.0,    0.5,  -2.5,         3.0,          1e-8,         65504.0,       127.9,
                     -128.9, 255.5, 256.0, 32767.9, 3e9,  -3e9,         0x1p62,       -0x1p63,      0x1p63,        0x1.8p63,
                     0x1p64, 1e30,  1e-40, inf,     -inf, std::nan(""), 2147483647.0, 2147483648.0, -2147483648.0, 6442450944.0}) {
      out.push_back(Scalar::from_double(v, d));
    }
  } else {
    for (int64_t v : {0, 1, -1, 2, 3, 7, 8, 31, 63, 64, 100}) out.push_back(Scalar::from_int(v, d));
    out.push_back(min_value(d));
    out.push_back(max_value(d));
  }
  while (out.size() < 64) {
    const uint64_t bits = random();
    out.push_back(is_float(d) ? out.size() % 2 ? Scalar::from_storage_bits(bits >> (64 - bitsize(d)), d)
                                               : Scalar::from_double(static_cast<double>(bits % 20001) / 100 - 100, d)
                              : Scalar::from_uint(bits >> (bits % 64), d));
  }
  return out;
}

/// Every first value with every second, `count` of them.
spec::Array operand(DType d, int which) {
  const auto values = values_to_try(d, static_cast<uint64_t>(which));
  const int64_t shape[] = {kCount};
  spec::Array out = spec::Array::zeros(d, shape);
  const auto n = static_cast<int64_t>(values.size());
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t at = which == 1 ? i / n % n : which == 2 ? i % n : (i * 7 + i / n) % n;
    values[static_cast<size_t>(at)].to_bytes(out.bytes.data() + static_cast<size_t>(i) * itemsize(d));
  }
  return out;
}

/// out[i] = each of the values, of the operands a[i], b[i], c[i]
struct Work {
  std::vector<UOp> values;
  std::vector<double> ulps;  ///< that each may differ by
  spec::EvalInputs inputs;
  UOp i = loop(kCount, 0), a, b, c;

  Work(DType of_a, DType of_b, DType of_c) : a(operand_of(60, of_a, 1)), b(operand_of(61, of_b, 2)), c(operand_of(62, of_c, 3)) {}

  UOp operand_of(int slot, DType d, int which) {
    const UOp memory = arg(slot, kCount, d);
    inputs.set(memory, operand(d, which));
    return read(memory, i);
  }
  void add(const UOp& value, double allowed = 0) {
    values.push_back(value);
    ulps.push_back(allowed);
  }
  /// Of the values from `begin` to `end`.
  UOp sink(std::vector<Opt> opts, size_t begin, size_t end) const {
    std::vector<UOp> stores;
    for (size_t k = begin; k < end; ++k) stores.push_back(write(arg(static_cast<int>(k), kCount, values[k].dtype()), i, values[k]));
    return kernel({ended(group(stores), {i})}, std::move(opts));
  }
};

double distance(const Scalar& got, const Scalar& want) {
  if (got == want) return 0;
  return is_float(want.dtype()) ? test::ulps(got.as_double(), want.as_double(), want.dtype()) : INFINITY;
}

void expect_right(Device& device, Work& work, const std::vector<Opt>& opts, size_t begin, size_t end) {
  const UOp sink = work.sink(opts, begin, end);
  spec::EvalInputs inputs = work.inputs;
  for (size_t i = begin; i < end; ++i) {
    const int64_t shape[] = {kCount};
    inputs.params[static_cast<int32_t>(i)] = spec::Array::zeros(work.values[i].dtype(), shape);
  }
  spec::EvalInputs want = inputs;
  spec::evaluate(std::span(&sink, 1), want);
  const UOp linear = codegen::full_rewrite(sink, device.target(), {.noopt = true});
  const auto got = test::run_on_device(device, linear, inputs);
  const auto text = [&](int slot, size_t at) { return inputs.params.contains(slot) ? inputs.params.at(slot)[at].to_string() : "-"; };
  for (size_t i = begin; i < end; ++i) {
    const auto slot = static_cast<int32_t>(i);
    int wrong = 0;
    for (size_t at = 0; at < kCount && wrong < 4; ++at) {
      const Scalar g = got.at(slot)[at], w = want.params.at(slot)[at];
      if (distance(g, w) <= work.ulps[i]) continue;
      ++wrong;
      ADD_FAILURE() << fmt::format("{} of {}, {}, {} is {}, not {}", print_expr(work.values[i]), text(60, at), text(61, at), text(62, at),
                                   g.to_string(), w.to_string());
    }
  }
}

/// As many values in a kernel as the device takes memory for.
void expect_right(Device& device, Work& work, const std::vector<Opt>& opts) {
  const auto most = static_cast<size_t>(device.target().max_buffers) - 3;
  for (size_t begin = 0; begin < work.values.size(); begin += most)
    expect_right(device, work, opts, begin, std::min(work.values.size(), begin + most));
}

/// What docs/numerics.md promises of functions.
double allowed_ulps(Op op, double of_division) {
  switch (op) {
    case Op::FDIV:
    case Op::RECIPROCAL:
    case Op::SQRT: return of_division;
    case Op::EXP2: return 1.5;
    case Op::LOG2:
    case Op::SIN: return 2.5;
    default: return 0;
  }
}

class Ops : public test::EveryDevice {
 protected:
  /// In scalars, by a loop or by items of groups, and in vectors.
  void check(Work& work) {
    expect_right(device(), work, has_groups() ? std::vector<Opt>{{OptOp::LOCAL, 0, 32}} : std::vector<Opt>{});
    expect_right(device(), work, {{OptOp::LANE, 0, 4}});
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Ops, testing::ValuesIn(test::every_device()), test::device_test_name);

TEST_P(Ops, OfEveryDType) {
  if (!test::truncates_vectors(device())) GTEST_SKIP() << test::kNoTruncation;
  for (const DType d : kDTypes) {
    if (!takes(d)) continue;
    SCOPED_TRACE(repr(d));
    Work work(d, d, d);
    const UOp &a = work.a, &b = work.b, &c = work.c;
    for (Op op : {Op::ADD, Op::SUB, Op::MUL, Op::MAX, Op::CMPLT, Op::CMPNE, Op::CMPEQ}) work.add(alu(op, {a, b}));
    work.add(alu(Op::NEG, {a}));
    work.add(where(a < b, b, c));
    if (is_float(d)) {
      for (Op op : {Op::SQRT, Op::RECIPROCAL, Op::TRUNC, Op::EXP2, Op::LOG2, Op::SIN})
        work.add(alu(op, {a}), allowed_ulps(op, division_ulps()));
      work.add(alu(Op::FDIV, {a, b}), division_ulps());
    } else {
      for (Op op : {Op::AND, Op::OR, Op::XOR}) work.add(alu(op, {a, b}));
    }
    if (is_int(d)) {
      for (Op op : {Op::CDIV, Op::CMOD, Op::FLOORDIV, Op::FLOORMOD, Op::SHL, Op::SHR}) work.add(alu(op, {a, b}));
      for (int64_t by : {0, 1, 3, 8, 100})
        for (Op op : {Op::CDIV, Op::CMOD, Op::FLOORDIV, Op::SHL, Op::SHR}) work.add(alu(op, {a, constant(Scalar::from_int(by, d))}));
      work.add(alu(Op::MULACC, {a, b, c}));
    }
    check(work);
  }
}

TEST_P(Ops, ConvertEveryDTypeToEveryOther) {
  if (!test::truncates_vectors(device())) GTEST_SKIP() << test::kNoTruncation;
  for (const DType from : kDTypes) {
    if (!takes(from)) continue;
    SCOPED_TRACE(repr(from));
    Work work(from, DType::bool_, DType::bool_);
    for (const DType to : kDTypes) {
      if (!takes(to)) continue;
      work.add(cast(work.a, to));
      if (itemsize(to) == itemsize(from) && !is_bool(to) && !is_bool(from)) work.add(bitcast(work.a, to));
    }
    check(work);
  }
}

TEST_P(Ops, RandomBits) {
  Work work(DType::uint64, DType::uint64, DType::uint64);
  work.add(alu(Op::THREEFRY, {work.a, work.b}));
  check(work);
}

}  // namespace
}  // namespace tinygrad
