// VALIDATE_WITH_CPU, on devices that run a kernel as it is, or all but right.
#include "engine/validation.h"

#include <gtest/gtest.h>

#include <functional>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "codegen/kernels.h"
#include "device/device.h"
#include "engine/launch.h"
#include "support/message_of.h"

namespace tinygrad::engine {
namespace {

using test::message_of;

/// Another kernel, and what is done to the first buffer behind it.
class Spoiled final : public Kernel {
 public:
  using Spoil = std::function<void(float*)>;
  Spoiled(const Kernel& kernel, Spoil spoil) : kernel_(const_cast<Kernel&>(kernel)), spoil_(std::move(spoil)) {}
  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override {
    const auto seconds = kernel_.launch(buffers, variables, dims, wait);
    spoil_(static_cast<float*>(buffers[0]));
    return seconds;
  }

 private:
  Kernel& kernel_;
  const Spoil spoil_;
};

class ValidationTest : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int64_t size = 48;

  /// Launches a product of matrices whose result is spoiled.
  void launch_spoiled(const Spoiled::Spoil& spoil, bool validate = true) {
    Device& device = Device::get(GetParam());
    const UOp sink = codegen::test::matmul(size, size, size);
    const auto right = get_program(sink, device, current_options());
    const Program program{right->info, std::make_unique<Spoiled>(*right->kernel, spoil), sink};
    std::vector<BufferPtr> buffers;
    std::vector<void*> handles;
    for (int i = 0; i < 3; ++i) {
      buffers.push_back(Buffer::make(device, size * size, DType::float32));
      std::vector<float> values(size * size);
      for (size_t k = 0; k < values.size(); ++k) values[k] = 0.01f * float(k % 101) - 0.5f;
      buffers.back()->copyin(std::as_bytes(std::span(values)));
      handles.push_back(buffers.back()->handle());
    }
    const Context context{{.validate_with_cpu = validate}};
    launch(program, device, handles, {});
  }
};

TEST_P(ValidationTest, WhatIsRightPasses) {
  launch_spoiled([](float*) {});
}

TEST_P(ValidationTest, RoundingPasses) {
  launch_spoiled([](float* out) { out[7] *= 1 + 1e-6f; });
}

TEST_P(ValidationTest, AWrongElementIsNamed) {
  const std::string message = message_of<DeviceError>([&] { launch_spoiled([](float* out) { out[77] = 1000; }); });
  EXPECT_NE(message.find("VALIDATE_WITH_CPU: kernel "), std::string::npos) << message;
  EXPECT_NE(message.find(std::string(" on ") + GetParam() + " wrote 1000 to element 77 of argument 0, the CPU "), std::string::npos)
      << message;
}

TEST_P(ValidationTest, OffItDoesNotLook) {
  launch_spoiled([](float* out) { out[77] = 1000; }, false);
}

INSTANTIATE_TEST_SUITE_P(Devices, ValidationTest, testing::Values("CPU", "INTERP"));

TEST(Validation, Tolerances) {
  EXPECT_EQ(validation_tolerance(DType::int32), 0);
  EXPECT_EQ(validation_tolerance(DType::bool_), 0);
  EXPECT_LT(validation_tolerance(DType::float64), validation_tolerance(DType::float32));
  EXPECT_LT(validation_tolerance(DType::float32), validation_tolerance(DType::float16));
  EXPECT_LT(validation_tolerance(DType::float16), validation_tolerance(DType::fp8e4m3));
}

TEST(Validation, LaunchesAreMadeOneByOne) {
  const Context context{{.debug = 0, .profile = false, .validate_with_cpu = true}};
  EXPECT_TRUE(times_launches());
}

}  // namespace
}  // namespace tinygrad::engine
