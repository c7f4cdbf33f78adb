// Every ALU op and conversion on every dtype, scalar and in vectors, against the definitions in dtype/scalar_ops.h.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <fmt/core.h>

#include <tinygrad/context.h>

#include "device/device.h"
#include "dtype/scalar_ops.h"
#include "runtime/backend/ptx_device.h"
#include "runtime/every_device.h"
#include "runtime/program_builder.h"
#include "shape/shape.h"
#include "target/target.h"

namespace tinygrad {
namespace {

using test::Program;
using test::ProgramBuilder;

constexpr DType kDTypes[] = {DType::bool_,  DType::int8,  DType::uint8,  DType::int16,   DType::uint16,  DType::int32,
                             DType::uint32, DType::int64, DType::uint64, DType::float16, DType::float32, DType::float64};
constexpr int kLanes = 8;

/// The one of the test's Context.
Device& device() {
  test::register_ptx_device();
  return Device::get(Device::default_name().str());
}

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
  const BufferPtr buffer = Buffer::make(device(), static_cast<int64_t>(values.size()), d);
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
/// Whether the i-th result may be this.
using Expected = std::function<bool(size_t, const Scalar&)>;

/// What a test computes: one loop each, in one kernel, because a compiler may take long to start.
class Checks {
 public:
  /// In scalars and in vectors of at most so many lanes.
  void add(std::string what, Operands in, DType result, const Body& body, Expected expected, int most_lanes = kLanes) {
    for (int lanes = 1; lanes <= most_lanes; lanes *= kLanes) add_vectors(what, in, result, body, expected, lanes);
  }

  void add_vectors(const std::string& what, const Operands& in, DType result, const Body& body, const Expected& expected, int lanes) {
    const auto n = static_cast<int64_t>(in.a.size());
    const auto slot = static_cast<int32_t>(buffers_.size());
    const UOp out = builder_.param(result, n, slot), x = builder_.param(in.a[0].dtype(), n, slot + 1),
              y = builder_.param(in.b[0].dtype(), n, slot + 2), z = builder_.param(in.c[0].dtype(), n, slot + 3);
    const UOp r = builder_.range(n / lanes), at = builder_.alu(Op::MUL, {r, builder_.number(lanes)});
    const UOp value = body(builder_, builder_.load(x, at, lanes), builder_.load(y, at, lanes), builder_.load(z, at, lanes));
    builder_.store(out, at, value, lanes);
    builder_.end(r);
    buffers_.insert(buffers_.end(), {Buffer::make(device(), n, result), upload(in.a), upload(in.b), upload(in.c)});
    checks_.push_back({what, lanes, in, expected, static_cast<size_t>(slot)});
  }

  void run() {
    Program program(device(), builder_.linear(), "alu");
    program.run(buffers_);
    for (const Check& c : checks_) compare(c, download(*buffers_[c.slot]));
  }

 private:
  struct Check {
    std::string what;
    int lanes;
    Operands in;
    Expected expected;
    size_t slot;
  };

  static void compare(const Check& c, const std::vector<Scalar>& got) {
    int wrong = 0;
    for (size_t i = 0; i < got.size() && wrong < 5; ++i) {
      if (c.expected(i, got[i])) continue;
      ++wrong;
      ADD_FAILURE() << fmt::format("{} in {} lanes of {}: {}, {}, {} gives {}", c.what, c.lanes, repr(c.in.a[i].dtype()),
                                   c.in.a[i].to_string(), c.in.b[i].to_string(), c.in.c[i].to_string(), got[i].to_string());
    }
  }

  ProgramBuilder builder_;
  std::vector<BufferPtr> buffers_;
  std::vector<Check> checks_;
};

/// A renderer and a dtype.
class DeviceAlu : public testing::TestWithParam<std::tuple<const char*, DType>> {
 protected:
  void SetUp() override {
    test::register_ptx_device();
    if (const std::string why = test::why_not(std::get<0>(GetParam())); !why.empty()) GTEST_SKIP() << why;
  }
  DType dtype() const { return std::get<1>(GetParam()); }

  void check_binary(Op op, Scalar (*definition)(const Scalar&, const Scalar&)) {
    const Operands in = operands(dtype(), dtype(), DType::bool_);
    const DType result = in_group(op, Group::comparison) ? DType::bool_ : dtype();
    checks_.add(
        std::string(name(op)), in, result, [op](ProgramBuilder& b, const UOp& x, const UOp& y, const UOp&) { return b.alu(op, {x, y}); },
        [=](size_t i, const Scalar& got) { return got == definition(in.a[i], in.b[i]); });
  }
  void check_unary(Op op, Scalar (*definition)(const Scalar&)) {
    const Operands in = operands(dtype(), DType::bool_, DType::bool_);
    checks_.add(
        std::string(name(op)), in, dtype(), [op](ProgramBuilder& b, const UOp& x, const UOp&, const UOp&) { return b.alu(op, {x}); },
        [=](size_t i, const Scalar& got) { return got == definition(in.a[i]); });
  }

  /// In vectors of all widths that a processor has, one number, and several vectors.
  void check_ldexp() {
    Operands in = operands(dtype(), dtype(), DType::bool_);
    constexpr size_t most_lanes = size_t{kLanes} * kLanes;
    for (auto* v : {&in.a, &in.b, &in.c}) v->resize(v->size() / most_lanes * most_lanes);
    for (size_t i = 0; i < in.a.size(); ++i) {
      const double x = in.a[i].as_double(), n = in.b[i].as_double();
      const bool means_nothing = std::isinf(n) && (x == 0 || !std::isfinite(x));
      in.b[i] = means_nothing ? Scalar::from_double(-3, dtype()) : scalar::trunc(in.b[i]);
    }
    checks_.add(
        "LDEXP", in, dtype(), [](ProgramBuilder& b, const UOp& x, const UOp& y, const UOp&) { return b.alu(Op::LDEXP, {x, y}); },
        [=](size_t i, const Scalar& got) { return got == scalar::ldexp(in.a[i], in.b[i]); }, most_lanes);
  }

  /// AVX-512 has an instruction for each of its registers.
  void check_max_of_registers() {
    Operands in = operands(dtype(), dtype(), DType::bool_);
    for (auto* v : {&in.a, &in.b, &in.c}) v->resize(v->size() / 16 * 16);
    for (const int lanes : {2, 4, 16})
      checks_.add_vectors(
          "MAX", in, dtype(), [](ProgramBuilder& b, const UOp& x, const UOp& y, const UOp&) { return b.alu(Op::MAX, {x, y}); },
          [=](size_t i, const Scalar& got) { return got == scalar::max(in.a[i], in.b[i]); }, lanes);
  }

  Context device_{{.dev = std::get<0>(GetParam())}};
  Checks checks_;
};
class DeviceFloatAlu : public DeviceAlu {};
class DeviceIntAlu : public DeviceAlu {};
class DeviceBoolAlu : public DeviceAlu {};

TEST_P(DeviceAlu, RingOps) {
  check_binary(Op::ADD, scalar::add);
  check_binary(Op::SUB, scalar::sub);
  check_binary(Op::MUL, scalar::mul);
  check_unary(Op::NEG, scalar::neg);
  checks_.run();
}

TEST_P(DeviceAlu, Comparisons) {
  check_binary(Op::CMPLT, scalar::cmplt);
  check_binary(Op::CMPNE, scalar::cmpne);
  check_binary(Op::CMPEQ, scalar::cmpeq);
  check_binary(Op::MAX, scalar::max);
  checks_.run();
}

TEST_P(DeviceAlu, Ternary) {
  const Operands choice = operands(DType::bool_, dtype(), dtype());
  checks_.add(
      "WHERE", choice, dtype(), [](ProgramBuilder& b, const UOp& x, const UOp& y, const UOp& z) { return b.alu(Op::WHERE, {x, y, z}); },
      [=](size_t i, const Scalar& got) { return got == (choice.a[i].as_bool() ? choice.b[i] : choice.c[i]); });
  const Operands in = operands(dtype(), dtype(), dtype());
  checks_.add(
      "MULACC", in, dtype(), [](ProgramBuilder& b, const UOp& x, const UOp& y, const UOp& z) { return b.alu(Op::MULACC, {x, y, z}); },
      [=](size_t i, const Scalar& got) {
        return got == scalar::mulacc(in.a[i], in.b[i], in.c[i]) || got == scalar::add(scalar::mul(in.a[i], in.b[i]), in.c[i]);
      });
  checks_.run();
}

TEST_P(DeviceFloatAlu, FloatOps) {
  check_binary(Op::FDIV, scalar::fdiv);
  check_unary(Op::RECIPROCAL, scalar::reciprocal);
  check_unary(Op::SQRT, scalar::sqrt);
  check_unary(Op::TRUNC, scalar::trunc);
  if (device().target().supports(Op::LDEXP) && itemsize(dtype()) >= 4) {
    check_ldexp();
    check_max_of_registers();
  }
  checks_.run();
}

TEST_P(DeviceBoolAlu, Bits) {
  check_binary(Op::AND, scalar::and_);
  check_binary(Op::OR, scalar::or_);
  check_binary(Op::XOR, scalar::xor_);
  checks_.run();
}

TEST_P(DeviceIntAlu, BitsAndDivision) {
  check_binary(Op::AND, scalar::and_);
  check_binary(Op::OR, scalar::or_);
  check_binary(Op::XOR, scalar::xor_);
  check_binary(Op::CDIV, scalar::cdiv);
  check_binary(Op::CMOD, scalar::cmod);
  check_binary(Op::SHL, scalar::shl);
  check_binary(Op::SHR, scalar::shr);
  checks_.run();
}

TEST_P(DeviceIntAlu, ConstantDivisorsAndAmounts) {
  struct Case {
    Op op;
    Scalar (*definition)(const Scalar&, const Scalar&);
  };
  const Operands in = operands(dtype(), DType::bool_, DType::bool_);
  for (const Case& c :
       {Case{Op::CDIV, scalar::cdiv}, Case{Op::CMOD, scalar::cmod}, Case{Op::SHL, scalar::shl}, Case{Op::SHR, scalar::shr}}) {
    for (int64_t value : {0, 1, -1, 3, 8, 200}) {
      const Scalar constant = Scalar::from_int(value, dtype());
      checks_.add(
          fmt::format("{} by {}", name(c.op), value), in, dtype(),
          [=](ProgramBuilder& b, const UOp& x, const UOp&, const UOp&) {
            const UOp k = b.constant(constant);
            return b.alu(c.op, {x, shape_of(x).empty() ? k : b.splat(k, kLanes)});
          },
          [=](size_t i, const Scalar& got) { return got == c.definition(in.a[i], constant); });
    }
  }
  checks_.run();
}

TEST_P(DeviceAlu, ConversionsFromIt) {
  const bool truncates_vectors = test::truncates_vectors(device());
  const Operands in = operands(dtype(), DType::bool_, DType::bool_);
  for (const DType to : kDTypes) {
    if (!device().supports(to)) continue;
    const bool truncates = is_float(dtype()) && is_int(to), makes_vectors = device().target().renderer == Symbol("CLANG");  // of loops
    checks_.add(
        fmt::format("CAST to {}", repr(to)), in, to,
        [to](ProgramBuilder& b, const UOp& x, const UOp&, const UOp&) { return b.cast(x, to); },
        [=](size_t i, const Scalar& got) { return got == in.a[i].cast(to); },
        !truncates || truncates_vectors ? kLanes
        : makes_vectors                 ? 0
                                        : 1);
    if (itemsize(to) != itemsize(dtype())) continue;
    checks_.add(
        fmt::format("BITCAST to {}", repr(to)), in, to,
        [to](ProgramBuilder& b, const UOp& x, const UOp&, const UOp&) { return b.bitcast(x, to); },
        [=](size_t i, const Scalar& got) { return got == in.a[i].bitcast(to); });
  }
  checks_.run();
}

using Case = std::tuple<const char*, DType>;

/// "DSP:CLANG:v66" is "DSP_CLANG_v66", and what is on the CPU goes by the rest.
std::string param_name(const testing::TestParamInfo<Case>& tested) {
  const std::string_view text = repr(std::get<1>(tested.param)), choice = std::get<0>(tested.param);
  std::string name(choice.starts_with("CPU:") ? choice.substr(4) : choice);
  for (char& c : name)
    if (c == ':' || c == '-') c = '_';
  return name + "_" + std::string(text.substr(text.find('.') + 1));
}

const auto kRenderers = testing::Values("CPU:LLVM", "CPU:CLANG", "PTXSIM:PTX");
INSTANTIATE_TEST_SUITE_P(All, DeviceAlu, testing::Combine(kRenderers, testing::ValuesIn(kDTypes)), param_name);
INSTANTIATE_TEST_SUITE_P(Bools, DeviceBoolAlu, testing::Combine(kRenderers, testing::Values(DType::bool_)), param_name);
INSTANTIATE_TEST_SUITE_P(Floats, DeviceFloatAlu, testing::Combine(kRenderers, testing::ValuesIn(kDTypes + 9, kDTypes + 12)), param_name);
INSTANTIATE_TEST_SUITE_P(Integers, DeviceIntAlu, testing::Combine(kRenderers, testing::ValuesIn(kDTypes + 1, kDTypes + 9)), param_name);

/// Processors under an emulator, with the dtypes that they have.
std::vector<Case> emulated(const DType* first, const DType* last) {
  std::vector<Case> out;
  const auto add = [&](const char* choice, const Target& target) {
    for (const DType* d = first; d != last; ++d)
      if (target.supports(*d)) out.push_back({choice, *d});
  };
  add("DSP:CLANG:v66", dsp_target("v66"));
  add("CPU:LLVM:neoverse-n1", cpu_target("neoverse-n1"));
  add("CPU:CLANG:armv8-a", cpu_target("armv8-a"));
  add("CPU:LLVM:rv64gcv", cpu_target("rv64gcv"));
  add("CPU:CLANG:rv64gcv_zvl256b", cpu_target("rv64gcv_zvl256b"));
  return out;
}
INSTANTIATE_TEST_SUITE_P(EmulatedAll, DeviceAlu, testing::ValuesIn(emulated(kDTypes, std::end(kDTypes))), param_name);
INSTANTIATE_TEST_SUITE_P(EmulatedBools, DeviceBoolAlu, testing::ValuesIn(emulated(kDTypes, kDTypes + 1)), param_name);
INSTANTIATE_TEST_SUITE_P(EmulatedFloats, DeviceFloatAlu, testing::ValuesIn(emulated(kDTypes + 9, kDTypes + 12)), param_name);
INSTANTIATE_TEST_SUITE_P(EmulatedIntegers, DeviceIntAlu, testing::ValuesIn(emulated(kDTypes + 1, kDTypes + 9)), param_name);

}  // namespace
}  // namespace tinygrad
