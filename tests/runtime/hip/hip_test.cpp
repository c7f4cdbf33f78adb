// The HIP runtime on a libamdhip64 without a GPU (tests/support/fake_hip/), whose streams do nothing until somebody waits.
#include "runtime/hip/hip.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "base/dylib.h"
#include "device/device.h"
#include "kernel/kernel_info.h"
#include "support/device_events.h"
#include "support/fake_hip/fake_hip.h"

namespace tinygrad::runtime {
namespace {

/// The library stays open, as in a process that uses it.
test::FakeHip& fake() {
  static const DynamicLibrary& library = *new DynamicLibrary(DynamicLibrary::open({TG_FAKE_HIP}));
  return *library.symbol<test::FakeHip*()>("fake_hip")();
}

class Hip : public ::testing::Test {
 protected:
  void SetUp() override { fake() = {}; }
  void TearDown() override {
    EXPECT_EQ(fake().allocations, 0u);
    EXPECT_EQ(fake().modules, 0u);
    EXPECT_EQ(fake().streams, 0u);
    EXPECT_EQ(fake().events, 0u);
    EXPECT_EQ(fake().graphs, 0u);
  }

  const Context here_{{.hip_driver_path = TG_FAKE_HIP}};
};

std::unique_ptr<Device> open(const char* name = "HIP") { return open_hip(DeviceChoice::parse(name)); }

KernelInfo info_of(const char* name) {
  KernelInfo info;
  info.name = name;
  if (std::string_view(name) != "add") return info;
  for (int32_t slot = 0; slot < 3; ++slot) info.params.push_back({.slot = slot, .dtype = DType::float32, .size = 1});
  info.variables.emplace_back("n");
  return info;
}

std::unique_ptr<Kernel> load(Device& device, const char* name) { return device.load(info_of(name), UOp(), "kernel_" + std::string(name)); }

/// Memory of a device for as long as it is needed.
struct Memory {
  Memory(Device& device, size_t count, BufferSpec how = {})
      : allocator(device.allocator()), bytes(count), spec(std::move(how)), handle(allocator.allocate(bytes, spec)) {}
  ~Memory() { allocator.deallocate(handle, bytes, spec); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void set(const std::vector<float>& values) {
    allocator.copy_in(handle, reinterpret_cast<const std::byte*>(values.data()), values.size() * 4);
  }
  std::vector<float> get() {
    std::vector<float> values(bytes / 4);
    allocator.copy_out(reinterpret_cast<std::byte*>(values.data()), handle, bytes);
    return values;
  }

  Allocator& allocator;
  size_t bytes;
  BufferSpec spec;
  void* handle;
};

constexpr int64_t four[] = {4};

TEST_F(Hip, OpensAsTheArchitectureOfTheDevice) {
  EXPECT_EQ(hip_unavailable(), "");
  EXPECT_EQ(open()->target().name(), "HIP:HIP:gfx942");
  EXPECT_EQ(open("HIP:1")->name().str(), "HIP:1");
  fake().arch = "gfx1100";
  EXPECT_EQ(open()->target(), amd_target("gfx1100"));
  EXPECT_THROW(open("HIP:2"), DeviceError);
  EXPECT_THROW(open("HIP:HIP:gfx90a"), DeviceError);
  fake().arch = "gfx600";
  EXPECT_THROW(open(), DeviceError);
}

TEST_F(Hip, SaysWhatIsMissing) {
  const std::string folder = std::string(TG_FAKE_HIP).substr(0, std::string(TG_FAKE_HIP).rfind('/'));
  const auto reason = [&](const std::string& path) {
    const Context there{{.hip_driver_path = path}};
    return hip_unavailable();
  };
  EXPECT_NE(reason("/nowhere/libamdhip64.so").find("HIP_DRIVER_PATH"), std::string::npos);
  fake().version = 40200000;
  EXPECT_NE(reason(folder + "/./libfake_hip.so").find("version 4.2, expected 5.0"), std::string::npos);
  fake() = {};
  fake().devices = 0;
  EXPECT_NE(reason(folder + "/././libfake_hip.so").find("finds no device"), std::string::npos);
}

TEST_F(Hip, KernelsRunInOrderAndCopiesWait) {
  const auto device = open();
  const auto add = load(*device, "add");
  Memory x(*device, 16), y(*device, 16), sum(*device, 16);
  x.set({1, 2, 3, 4});
  y.set({10, 20, 30, 40});
  void* first[] = {sum.handle, x.handle, y.handle};
  void* second[] = {x.handle, sum.handle, y.handle};
  EXPECT_EQ(add->launch(first, four, {}, false), std::nullopt);
  EXPECT_GT(add->launch(second, four, {}, true).value(), 0);
  EXPECT_EQ(sum.get(), (std::vector<float>{11, 22, 33, 44}));
  EXPECT_EQ(x.get(), (std::vector<float>{21, 42, 63, 84}));
  EXPECT_EQ(add->launch(first, four, {.global = {0, 1, 1}}, false), std::nullopt);  // no groups
  EXPECT_EQ(fake().launches, 2u);
  EXPECT_THROW(add->launch(first, four, {.local = {2048, 1, 1}}, false), DeviceError);
  EXPECT_THROW(add->launch(first, four, {.global = {1, 1 << 20, 1}}, false), DeviceError);
}

TEST_F(Hip, CopiesOfAnySizeAndOverlap) {
  const auto device = open();
  std::vector<float> many(3 << 20);  // more than two pieces of pinned memory
  std::iota(many.begin(), many.end(), 0.0f);
  Memory x(*device, many.size() * 4);
  x.set(many);
  EXPECT_EQ(x.get(), many);
  Memory small(*device, 32);
  small.set({0, 1, 2, 3, 4, 5, 6, 7});
  Allocator& a = device->allocator();
  a.copy(a.offset(small.handle, 4), small.handle, 28);
  EXPECT_EQ(small.get(), (std::vector<float>{0, 0, 1, 2, 3, 4, 5, 6}));
  a.copy(small.handle, a.offset(small.handle, 8), 24);
  EXPECT_EQ(small.get(), (std::vector<float>{1, 2, 3, 4, 5, 6, 5, 6}));
}

TEST_F(Hip, PinnedMemoryIsTheHostsToo) {
  const auto device = open();
  Memory pinned(*device, 64, {.host = true}), plain(*device, 64);
  EXPECT_EQ(device->allocator().host_pointer(plain.handle), nullptr);
  std::byte* const at = device->allocator().host_pointer(pinned.handle);
  ASSERT_NE(at, nullptr);
  EXPECT_EQ(device->allocator().host_pointer(device->allocator().offset(pinned.handle, 8)), at + 8);
}

TEST_F(Hip, MemoryThatIsUsedUpIsATypedError) {
  const auto device = open();
  fake().failing = "hipMalloc";
  fake().error = 2;
  Memory kept(*device, 64);  // the allocator tries once more
  fake().failing = "hipMalloc";
  fake().error = 719;
  EXPECT_THROW(device->allocator().allocate(128, {}), DeviceError);
  Memory after(*device, 128);
  for (const char* call : {"hipHostMalloc", "hipModuleLoadData"}) {
    fake().failing = call;
    fake().error = 2;
    EXPECT_THROW((call == std::string_view("hipHostMalloc") ? kept.set({1}) : void(load(*device, "add"))), OutOfMemoryError) << call;
  }
  kept.set({1});
}

TEST_F(Hip, WhatAKernelDidWrongIsToldByTheNextWait) {
  const auto device = open();
  const auto broken = load(*device, "broken");
  broken->launch({}, {}, {}, false);
  try {
    device->synchronize();
    ADD_FAILURE();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("HIP: a kernel or copy failed: hipErrorLaunchFailure"), std::string::npos) << e.what();
  }
  device->synchronize();
}

TEST_F(Hip, BadBinariesAreRefused) {
  const auto device = open();
  EXPECT_THROW(load(*device, "unknown"), DeviceError);
  EXPECT_THROW(device->load(info_of("add"), UOp(), "kernel_broken"), DeviceError);  // has no function of the name
}

TEST_F(Hip, GraphsRunWithOtherBuffers) {
  const auto device = open();
  const auto add = load(*device, "add");
  Memory x(*device, 16), y(*device, 16), sum(*device, 16), other(*device, 16);
  x.set({1, 2, 3, 4});
  y.set({1, 1, 1, 1});
  void* buffers[] = {sum.handle, x.handle, y.handle};
  void* again[] = {sum.handle, sum.handle, y.handle};
  const KernelInfo info = info_of("add");
  std::vector<GraphLaunch> launches{{.kernel = add.get(), .info = &info, .buffers = buffers, .variables = four, .dims = {}},
                                    {.kernel = add.get(), .info = &info, .buffers = again, .variables = four, .dims = {}}};
  const auto graph = device->make_graph(launches);
  ASSERT_NE(graph, nullptr);
  graph->launch(launches, {}, false);
  EXPECT_EQ(sum.get(), (std::vector<float>{3, 4, 5, 6}));
  void* elsewhere[] = {other.handle, sum.handle, y.handle};
  launches[1].buffers = elsewhere;
  const uint32_t changed[] = {1};
  EXPECT_TRUE(graph->launch(launches, changed, true).has_value());
  EXPECT_EQ(sum.get(), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(other.get(), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(fake().graph_launches, 2u);
  EXPECT_EQ(fake().launches, 0u);
}

TEST_F(Hip, PeersCopyWithoutTheHost) {
  const auto one = open(), two = open("HIP:1");
  const auto add = load(*one, "add");
  Memory x(*one, 16), y(*one, 16), sum(*one, 16), there(*two, 16);
  x.set({1, 2, 3, 4});
  y.set({1, 1, 1, 1});
  void* buffers[] = {sum.handle, x.handle, y.handle};
  add->launch(buffers, four, {}, false);
  EXPECT_TRUE(copy_by_queues(*two, there.handle, *one, sum.handle, 16));
  buffers[1] = sum.handle;
  add->launch(buffers, four, {}, false);  // overwrites what is copied, after the copy
  EXPECT_EQ(there.get(), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(sum.get(), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(fake().peer_copies, 1u);
}

TEST_F(Hip, ProfilesWithoutWaiting) {
  clear_profile();
  const Context profiled{{.profile = true}};
  const auto one = open(), two = open("HIP:1");
  EXPECT_TRUE(one->records_profile());
  const auto add = load(*one, "add");
  Memory x(*one, 16), y(*one, 16), sum(*one, 16), there(*two, 16);
  x.set({1, 2, 3, 4});
  y.set({1, 1, 1, 1});
  clear_profile();
  const size_t waits = fake().waits;
  void* buffers[] = {sum.handle, x.handle, y.handle};
  const KernelInfo info = info_of("add");
  const int64_t before = profile_now_ns();
  for (int i = 0; i < 2; ++i) add->launch(buffers, four, {}, false);
  copy_by_queues(*two, there.handle, *one, sum.handle, 16);
  EXPECT_EQ(fake().waits, waits);
  EXPECT_TRUE(profile_events().empty());
  two->synchronize();
  one->synchronize();
  const auto kernels = test::device_events("HIP", "kernel");
  ASSERT_EQ(kernels.size(), 2u);
  for (const ProfileEvent& k : kernels) EXPECT_EQ(k.name, Symbol("add"));
  test::expect_one_after_another(kernels, before, profile_now_ns());
  EXPECT_EQ(test::device_events("HIP:1", "copy").size(), 1u);
  add->launch(buffers, four, {}, false);  // nobody waits for it
  clear_profile();
}

/// Uses everything once; gives what came out.
std::vector<float> scenario() {
  const auto one = open(), two = open("HIP:1");
  const auto add = load(*one, "add");
  Memory x(*one, 16), y(*one, 16, {.host = true}), sum(*one, 16), there(*two, 16);
  x.set({1, 2, 3, 4});
  y.set({1, 1, 1, 1});
  void* buffers[] = {sum.handle, x.handle, y.handle};
  const KernelInfo info = info_of("add");
  const GraphLaunch launches[] = {{.kernel = add.get(), .info = &info, .buffers = buffers, .variables = four, .dims = {}},
                                  {.kernel = add.get(), .info = &info, .buffers = buffers, .variables = four, .dims = {}}};
  const uint32_t changed[] = {1};
  one->make_graph(launches)->launch(launches, changed, false);
  add->launch(buffers, four, {}, true);
  one->allocator().copy(x.handle, sum.handle, 16);
  copy_by_queues(*two, there.handle, *one, x.handle, 16);
  one->synchronize();
  return there.get();
}

class HipProfiled : public Hip, public ::testing::WithParamInterface<bool> {
 protected:
  const Context profiled_{{.profile = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Profile, HipProfiled, ::testing::Bool());

TEST_P(HipProfiled, EachCallThatFailsIsATypedErrorAndLeavesNothing) {
  const std::vector<float> want{2, 3, 4, 5};
  EXPECT_EQ(scenario(), want);
  for (const char* function : {"hipSetDevice",          "hipStreamCreateWithFlags",     "hipMalloc",
                               "hipHostMalloc",         "hipMemcpyHtoDAsync",           "hipMemcpyDtoHAsync",
                               "hipMemcpyDtoDAsync",    "hipMemcpyPeerAsync",           "hipStreamSynchronize",
                               "hipStreamWaitEvent",    "hipEventCreateWithFlags",      "hipEventRecord",
                               "hipEventSynchronize",   "hipEventElapsedTime",          "hipModuleLoadData",
                               "hipModuleGetFunction",  "hipModuleLaunchKernel",        "hipGraphCreate",
                               "hipGraphAddKernelNode", "hipGraphInstantiateWithFlags", "hipGraphExecKernelNodeSetParams",
                               "hipGraphLaunch",        "hipDeviceCanAccessPeer",       "hipGetDevicePropertiesR0600",
                               "hipGetDeviceCount"}) {
    int failed = 0;
    for (int after = 0; after < 40; ++after) {
      SCOPED_TRACE(fmt::format("{} fails after {} others", function, after));
      fake() = {};
      fake().failing = function;
      fake().fail_after = after;
      fake().error = 719;
      try {
        EXPECT_EQ(scenario(), want);
      } catch (const Error&) {
        ++failed;
      }
      const bool was_reached = fake().failing.empty();
      fake().failing.clear();
      TearDown();
      EXPECT_EQ(scenario(), want);
      if (!was_reached) break;
    }
    EXPECT_GT(failed, 0) << function;
  }
}

}  // namespace
}  // namespace tinygrad::runtime
