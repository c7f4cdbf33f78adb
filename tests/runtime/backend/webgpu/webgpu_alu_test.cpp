// Every ALU op and conversion on every dtype that WEBGPU takes, through codegen with all that it emulates, against the definitions in
// dtype/scalar_ops.h.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <fmt/core.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "device/device.h"
#include "dtype/scalar_ops.h"
#include "runtime/program_builder.h"
#include "runtime/webgpu/webgpu.h"
#include "support/ulps.h"

namespace tinygrad {
namespace {

using codegen::test::arg;
using codegen::test::ended;
using codegen::test::read;
using codegen::test::write;

constexpr DType kDTypes[] = {DType::bool_, DType::int8,   DType::uint8,   DType::int16,   DType::uint16,  DType::int32,    DType::uint32,
                             DType::int64, DType::uint64, DType::fp8e4m3, DType::fp8e5m2, DType::float16, DType::bfloat16, DType::float32};

Device& gpu() { return Device::get("WEBGPU"); }

bool is_subnormal(const Scalar& s) { return s.dtype() == DType::float32 && std::fpclassify(float(s.as_double())) == FP_SUBNORMAL; }

/// Values at which ops differ, then random bits. WGSL lets drivers read what is below float32's normal numbers as 0.
std::vector<Scalar> values_to_try(DType d, uint64_t seed) {
  std::vector<Scalar> out;
  std::mt19937_64 random(seed);
  if (is_float(d)) {
    const double inf = std::numeric_limits<double>::infinity();
    for (double v : {0.0,    -0.0,    1.0,    -1.0,     0.5,          -2.5,         3.0,           1e-8, 65504.0,     127.9,
                     -128.9, 255.5,   256.0,  32767.9,  2147483647.0, 2147483648.0, -2147483648.0, 3e9,  -3e9,        6442450944.0,
                     0x1p62, -0x1p63, 0x1p63, 0x1.8p63, 0x1p64,       1e30,         inf,           -inf, std::nan("")}) {
      out.push_back(Scalar::from_double(v, d));
    }
    for (int i = 0; i < 30; ++i) out.push_back(Scalar::from_storage_bits(random() >> (64 - bitsize(d)), d));
    for (int i = 0; i < 30; ++i) out.push_back(Scalar::from_double(std::uniform_real_distribution<>(-100, 100)(random), d));
  } else {
    for (int64_t v : {0, 1, -1, 2, 3, 7, 8, 31, 63, 64, 100}) out.push_back(Scalar::from_int(v, d));
    out.push_back(min_value(d));
    out.push_back(max_value(d));
    for (int i = 0; i < 50; ++i) out.push_back(Scalar::from_uint(random() >> (random() % 64), d));
  }
  std::erase_if(out, is_subnormal);
  return out;
}

BufferPtr upload(const std::vector<Scalar>& values) {
  const DType d = values[0].dtype();
  std::vector<std::byte> bytes(values.size() * itemsize(d));
  for (size_t i = 0; i < values.size(); ++i) values[i].to_bytes(bytes.data() + i * itemsize(d));
  const BufferPtr buffer = Buffer::make(gpu(), static_cast<int64_t>(values.size()), d);
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

using Body = std::function<UOp(const UOp&, const UOp&)>;
using Definition = std::function<Scalar(const Scalar&, const Scalar&)>;
/// Whether what was computed may stand for what is defined.
using Accepts = std::function<bool(const Scalar& got, const Scalar& want)>;

bool same(const Scalar& got, const Scalar& want) { return got == want || (is_subnormal(want) && got.as_double() == 0); }
/// So many units in the last place.
Accepts within(double bound) {
  return [bound](const Scalar& got, const Scalar& want) {
    if (same(got, want)) return true;
    if (!got.is_finite() || !want.is_finite()) return false;
    return test::ulps(got.as_double(), want.as_double(), want.dtype()) <= bound;
  };
}

class WebGpuAlu : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (const std::string why = runtime::webgpu_unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
  static DType dtype() { return GetParam(); }

  /// out[i] = body(a[i], b[i]) of every first value with every second.
  static void check(const std::string& what, DType second, DType result, const Body& body, const Definition& definition,
                    const Accepts& accepts = same) {
    std::vector<Scalar> a, b;
    for (const Scalar& x : values_to_try(dtype(), 1))
      for (const Scalar& y : values_to_try(second, 2)) {
        a.push_back(x);
        b.push_back(y);
      }
    const auto n = static_cast<int64_t>(a.size());
    const UOp i = codegen::test::loop(n, 0), value = body(read(arg(1, n, dtype()), i), read(arg(2, n, second), i));
    const UOp kernel = codegen::test::kernel({ended(write(arg(0, n, result), i, value), {i})});
    test::Program program(gpu(), codegen::full_rewrite(kernel, gpu().target(), {.spec = 1}), "alu");
    const BufferPtr buffers[] = {Buffer::make(gpu(), n, result), upload(a), upload(b)};
    try {
      program.run(buffers);
    } catch (const std::exception& e) {
      FAIL() << what << ": " << e.what();
    }
    const std::vector<Scalar> got = download(*buffers[0]);
    int wrong = 0;
    for (size_t k = 0; k < got.size() && wrong < 5; ++k) {
      const Scalar want = definition(a[k], b[k]);
      if (accepts(got[k], want)) continue;
      ++wrong;
      ADD_FAILURE() << fmt::format("{} of {}: {}, {} gives {}, not {}", what, repr(dtype()), a[k].to_string(), b[k].to_string(),
                                   got[k].to_string(), want.to_string());
    }
  }
  static void check_binary(Op op, Scalar (*definition)(const Scalar&, const Scalar&), const Accepts& accepts = same) {
    const DType result = in_group(op, Group::comparison) ? DType::bool_ : dtype();
    check(std::string(name(op)), dtype(), result, [=](const UOp& x, const UOp& y) { return alu(op, {x, y}); }, definition, accepts);
  }
  static void check_unary(Op op, Scalar (*definition)(const Scalar&), const Accepts& accepts = same) {
    check(
        std::string(name(op)), DType::bool_, dtype(), [=](const UOp& x, const UOp&) { return alu(op, {x}); },
        [=](const Scalar& x, const Scalar&) { return definition(x); }, accepts);
  }
};
class WebGpuFloatAlu : public WebGpuAlu {};
class WebGpuIntAlu : public WebGpuAlu {};

TEST_P(WebGpuAlu, RingOps) {
  check_binary(Op::ADD, scalar::add);
  check_binary(Op::SUB, scalar::sub);
  check_binary(Op::MUL, scalar::mul);
  if (!is_bool(dtype())) check_unary(Op::NEG, scalar::neg);
}

TEST_P(WebGpuAlu, Comparisons) {
  check_binary(Op::CMPLT, scalar::cmplt);
  check_binary(Op::CMPNE, scalar::cmpne);
  check_binary(Op::CMPEQ, scalar::cmpeq);
  check_binary(Op::MAX, scalar::max);
}

TEST_P(WebGpuAlu, Ternary) {
  check(
      "WHERE", DType::bool_, dtype(), [](const UOp& x, const UOp& c) { return where(c, x, constant(x.dtype(), 1)); },
      [](const Scalar& x, const Scalar& c) { return c.as_bool() ? x : Scalar::from_int(1, x.dtype()); });
}

TEST_P(WebGpuFloatAlu, FloatOps) {
  // The specification gives division 2.5 units.
  const Accepts quotient = dtype() == DType::float32 ? within(2.5) : within(1);
  check_binary(Op::FDIV, scalar::fdiv, quotient);
  check_unary(Op::RECIPROCAL, scalar::reciprocal, quotient);
  check_unary(Op::SQRT, scalar::sqrt, quotient);
  check_unary(Op::TRUNC, scalar::trunc);
}

TEST_P(WebGpuFloatAlu, Functions) {
  check_unary(Op::EXP2, scalar::exp2, within(2));
  check_unary(Op::LOG2, scalar::log2, within(3));
  check_unary(Op::SIN, scalar::sin, within(3));
}

TEST_P(WebGpuIntAlu, BitsAndDivision) {
  check_binary(Op::AND, scalar::and_);
  check_binary(Op::OR, scalar::or_);
  check_binary(Op::XOR, scalar::xor_);
  check_binary(Op::CDIV, scalar::cdiv);
  check_binary(Op::CMOD, scalar::cmod);
  check_binary(Op::FLOORDIV, scalar::floordiv);
  check_binary(Op::FLOORMOD, scalar::floormod);
  check_binary(Op::SHL, scalar::shl);
  check_binary(Op::SHR, scalar::shr);
}

TEST_P(WebGpuIntAlu, ConstantDivisorsAndAmounts) {
  struct Case {
    Op op;
    Scalar (*definition)(const Scalar&, const Scalar&);
  };
  for (const Case& c : {Case{Op::CDIV, scalar::cdiv}, Case{Op::CMOD, scalar::cmod}, Case{Op::SHL, scalar::shl}, Case{Op::SHR, scalar::shr}})
    for (int64_t value : {0, 1, -1, 3, 8, 200}) {
      const Scalar k = Scalar::from_int(value, dtype());
      check(
          fmt::format("{} by {}", name(c.op), value), DType::bool_, dtype(),
          [=](const UOp& x, const UOp&) { return alu(c.op, {x, constant(k)}); },
          [=](const Scalar& x, const Scalar&) { return c.definition(x, k); });
    }
}

TEST_P(WebGpuAlu, ConversionsFromIt) {
  for (const DType to : kDTypes) {
    check(
        fmt::format("CAST to {}", repr(to)), DType::bool_, to, [=](const UOp& x, const UOp&) { return cast(x, to); },
        [=](const Scalar& x, const Scalar&) { return x.cast(to); });
    if (itemsize(to) != itemsize(dtype()) || is_bool(to) || is_bool(dtype())) continue;
    check(
        fmt::format("BITCAST to {}", repr(to)), DType::bool_, to, [=](const UOp& x, const UOp&) { return bitcast(x, to); },
        [=](const Scalar& x, const Scalar&) { return x.bitcast(to); });
  }
}

std::string param_name(const testing::TestParamInfo<DType>& tested) {
  const std::string_view text = repr(tested.param);
  return std::string(text.substr(text.find('.') + 1));
}
INSTANTIATE_TEST_SUITE_P(All, WebGpuAlu, testing::ValuesIn(kDTypes), param_name);
INSTANTIATE_TEST_SUITE_P(Integers, WebGpuIntAlu, testing::ValuesIn(kDTypes + 1, kDTypes + 9), param_name);
INSTANTIATE_TEST_SUITE_P(Floats, WebGpuFloatAlu, testing::ValuesIn(kDTypes + 9, kDTypes + 14), param_name);

}  // namespace
}  // namespace tinygrad
