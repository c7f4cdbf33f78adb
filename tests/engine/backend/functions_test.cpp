// Transcendental functions and roots as devices compute them, against the C library's in long double; docs/numerics.md states the
// bounds.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include <tinygrad/context.h>

#include "base/options.h"
#include "device/buffer.h"
#include "device/device.h"
#include "engine/run.h"
#include "support/ulps.h"
#include "uop/build.h"

namespace tinygrad::engine {
namespace {

struct Function {
  const char* name;
  Op op;
  long double (*exact)(long double x, long double y);
  double float32_ulps, float64_ulps;
};

constexpr Function functions[] = {
    {"exp2", Op::EXP2, [](long double x, long double) { return std::exp2(x); }, 1.5, 1.5},
    {"log2", Op::LOG2, [](long double x, long double) { return std::log2(x); }, 2.5, 1},
    {"sin", Op::SIN, [](long double x, long double) { return std::sin(x); }, 2.5, 2.5},
    {"sqrt", Op::SQRT, [](long double x, long double) { return std::sqrt(x); }, 0.5, 0.5},
    {"pow", Op::POW, [](long double x, long double y) { return std::pow(x, y); }, 1, 8},
};

/// How a kernel is made: a device, and options that take native functions and dtypes away.
struct Way {
  const char* name;
  const char* device;
  int transcendental = 1;
  const char* emulated = "";
};

constexpr Way ways[] = {
    {"LLVM", "CPU:LLVM"},
    {"CLANG", "CPU:CLANG"},
    {"INTERP", "INTERP"},
    {"LikeAGpuWithoutThem", "INTERP", 2, "float16,bfloat16,fp8e4m3,fp8e5m2,int64"},
};

class Functions : public testing::TestWithParam<std::tuple<Way, Function>> {};

UOp filled(const std::vector<double>& values, DType dtype, Device& device) {
  const auto size = int64_t(values.size());
  std::vector<std::byte> bytes(values.size() * itemsize(dtype));
  for (size_t i = 0; i < values.size(); ++i) Scalar::from_double(values[i], dtype).to_bytes(bytes.data() + i * itemsize(dtype));
  const BufferPtr resource = Buffer::make(device, size, dtype);
  resource->copyin(bytes);
  return buffer(dtype, {.id = next_buffer_id(), .size = size, .device = device.name(), .resource = resource});
}

std::vector<Scalar> contents(const UOp& memory) {
  Buffer& b = buffer_of(memory);
  std::vector<std::byte> bytes(b.nbytes());
  b.copyout(bytes);
  std::vector<Scalar> out;
  for (size_t at = 0; at < bytes.size(); at += itemsize(b.dtype())) out.push_back(Scalar::from_bytes(bytes.data() + at, b.dtype()));
  return out;
}

TEST_P(Functions, AreWithinTheirBounds) {
  const auto& [way, f] = GetParam();
  const Context chosen{{.dev = way.device, .emulated_dtypes = way.emulated, .transcendental = way.transcendental}};
  Device& device = Device::get(Device::default_name().str());
  for (const DType d : {DType::fp8e5m2, DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    const std::vector<double> x = test::float_samples(d, 5, 500);
    std::vector<double> y(x.rbegin(), x.rend());
    const UOp a = filled(x, d, device), b = filled(y, d, device), out = filled(x, d, device);
    const UOp value = f.op == Op::POW ? alu(f.op, {a, b}) : alu(f.op, {a});
    run_schedule(schedule::make_schedule(sink(UOps{store(out, value)}), target_of), current_options());
    const std::vector<Scalar> left = contents(a), right = contents(b), got = contents(out);
    // Narrow results are rounded from float32 ones.
    const double bound = d == DType::float64 ? f.float64_ulps : d == DType::float32 ? f.float32_ulps : 0.51;
    for (size_t i = 0; i < got.size(); ++i) {
      const long double exact = f.exact(left[i].as_double(), right[i].as_double());
      EXPECT_LE(test::ulps(got[i].as_double(), exact, d), bound) << repr(d) << " " << left[i].to_string() << ", " << right[i].to_string()
                                                                 << " gives " << got[i].to_string() << ", not " << double(exact);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Functions, testing::Combine(testing::ValuesIn(ways), testing::ValuesIn(functions)),
                         [](const auto& test) { return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name; });

}  // namespace
}  // namespace tinygrad::engine
