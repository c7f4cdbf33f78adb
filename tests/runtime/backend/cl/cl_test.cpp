// What is OpenCL's own: handles, errors, the cache of compiled kernels. ops_test.cpp, kernels_test.cpp and devices_test.cpp have what every
// device does.
#include <gtest/gtest.h>

#include <numeric>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "device/device.h"
#include "runtime/cl/cl.h"
#include "runtime/program_builder.h"
#include "support/message_of.h"

namespace tinygrad {
namespace {

using codegen::test::arg;
using codegen::test::elementwise;
using codegen::test::ended;
using codegen::test::kernel;
using codegen::test::loop;
using codegen::test::read;
using codegen::test::write;
using test::buffer_from;
using test::message_of;
using test::Program;
using test::values_of;

class OpenClDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = runtime::cl_unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
  Device& device() { return Device::get("CL"); }

  BufferPtr floats(size_t n, float first = 0) {
    std::vector<float> values(n);
    std::iota(values.begin(), values.end(), first);
    return buffer_from(device(), values, DType::float32);
  }
  UOp linear(const UOp& sink) { return codegen::full_rewrite(sink, device().target(), {.noopt = true}); }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(OpenClDevice, PartsThatBeginInsideAnElementAreRefused) {
  Program p(device(), linear(elementwise(64)), "k");
  const BufferPtr bytes = Buffer::make(device(), 400, DType::uint8);
  const BufferPtr unaligned[] = {floats(64), floats(64), bytes->view(2, 64, DType::float32)};
  EXPECT_TRUE(has(message_of<DeviceError>([&] { p.run(unaligned); }), "copy it first"));
}

TEST_F(OpenClDevice, HandlesOfOtherDevicesAreErrors) {
  Program p(device(), linear(elementwise(64)), "k");
  Device& cpu = Device::get("CPU");
  const BufferPtr buffers[] = {floats(64), floats(64), buffer_from(cpu, std::vector<float>(64), DType::float32)};
  EXPECT_TRUE(has(message_of<DeviceError>([&] { p.run(buffers); }), "no memory of this device"));
}

TEST_F(OpenClDevice, BadKernelsSayWhatTheDriverSays) {
  KernelInfo info;
  info.name = "k";
  const auto load = [&](const char* source) { device().load(info, {}, source); };
  const std::string text = message_of<CompileError>([&] { load("__kernel void kernel_k() { undeclared_thing++; }"); });
  EXPECT_TRUE(has(text, "undeclared_thing") && has(text, "CL_BUILD_PROGRAM_FAILURE")) << text;
  for (int round = 0; round < 2; ++round)  // built, and from the disk cache
    EXPECT_TRUE(has(message_of<DeviceError>([&] { load("__kernel void kernel_other() {}"); }), "CL_INVALID_KERNEL_NAME"));
  EXPECT_THROW(load(""), Error);
}

TEST_F(OpenClDevice, OversizedLaunchesAreErrorsAndTheNextWorks) {
  Program p(device(), linear(elementwise(64)), "k");
  const BufferPtr buffers[] = {floats(64), floats(64), floats(64)};
  std::vector<void*> handles;
  for (const BufferPtr& b : buffers) handles.push_back(b->handle());
  LaunchDims dims = p.info.launch_dims({});
  dims.local[0] = device().target().max_group_items * 2;
  EXPECT_TRUE(has(message_of<DeviceError>([&] { p.kernel->launch(handles, {}, dims, true); }), "work-items"));
  p.run(buffers);
  EXPECT_EQ(values_of<float>(*buffers[0])[8], 65);
}

TEST_F(OpenClDevice, LaunchesReturnEarlyAndWaitsWait) {
  Program p(device(), linear(elementwise(1 << 16, {{OptOp::LOCAL, 0, 64}})), "k");
  const BufferPtr x = floats(1 << 16), one = buffer_from(device(), std::vector<float>(1 << 16, 1), DType::float32);
  void* const handles[] = {x->handle(), x->handle(), one->handle()};
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(p.kernel->launch(handles, {}, p.info.launch_dims({})));
  EXPECT_EQ(values_of<float>(*x)[7], 57);
  const auto seconds = p.kernel->launch(handles, {}, p.info.launch_dims({}), true);
  ASSERT_TRUE(seconds);
  EXPECT_GT(*seconds, 0);
  EXPECT_LT(*seconds, 10);
}

TEST_F(OpenClDevice, EmptyLaunchesDoNothing) {
  Program p(device(), linear(elementwise(64)), "k");
  const BufferPtr buffers[] = {floats(64), floats(64), floats(64)};
  std::vector<void*> handles;
  for (const BufferPtr& b : buffers) handles.push_back(b->handle());
  LaunchDims dims = p.info.launch_dims({});
  dims.global[0] = 0;
  EXPECT_EQ(p.kernel->launch(handles, {}, dims, true), 0.0);
  EXPECT_EQ(values_of<float>(*buffers[0])[8], 8);
}

TEST_F(OpenClDevice, ThereIsNoSuchDevice) {
  EXPECT_TRUE(has(message_of<DeviceError>([] { Device::get("CL:99"); }), "on this machine"));
}

TEST_F(OpenClDevice, TheTargetIsWhatTheDeviceSays) {
  const Target& t = device().target();
  EXPECT_EQ(t.device, Symbol("CL"));
  EXPECT_GE(t.max_group_items, 1);
  EXPECT_GE(t.group_memory_bytes, 16 << 10);
  EXPECT_FALSE(t.arch.empty());
  EXPECT_EQ(t.arch.str().find(':'), std::string_view::npos);
}

}  // namespace
}  // namespace tinygrad
