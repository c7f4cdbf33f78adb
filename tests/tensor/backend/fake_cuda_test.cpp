// The CUDA backend over a driver without a GPU, which runs our PTX: memory, copies, launches, graphs, peers, and what goes wrong.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <fmt/core.h>
#include <tinygrad/errors.h>
#include <tinygrad/tinygrad.h>

#include "base/dylib.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "device/buffer.h"
#include "device/device.h"
#include "program/program.h"
#include "runtime/cuda/cuda.h"
#include "support/device_events.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/temp_folder.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;
using test::FakeCuda;

FakeCuda& control() {
  static const DynamicLibrary& library = *new DynamicLibrary(DynamicLibrary::open({TG_FAKE_CUDA}));
  return *library.symbol<FakeCuda*()>("fake_cuda")();
}

KernelInfo named(const std::string& name) {
  KernelInfo info;
  info.name = name;
  return info;
}

class FakeCudaTest : public testing::Test {
 protected:
  FakeCudaTest() {
    control().failing.clear();
    control().memory_bytes = size_t{1} << 30;
    control().version = 12040;
    control().devices = 2;
  }
  ~FakeCudaTest() override { control().failing.clear(); }

  static void fail(const char* call, int error, int after = 0) {
    control().failing = call;
    control().error = error;
    control().fail_after = after;
  }

  // A toolkit that is not there: then the driver gets PTX.
  const Context on_device_{{.ccache = false, .cuda_driver_path = TG_FAKE_CUDA, .cuda_path = "/nonexistent", .dev = "CUDA:PTX"}};
};

std::string why_not(const std::string& path) {
  const Context context{{.cuda_driver_path = path}};
  return runtime::cuda_unavailable();
}

TEST_F(FakeCudaTest, DriversThatCannotBeUsed) {
  EXPECT_NE(why_not("/nonexistent/libcuda.so.1").find("CUDA_DRIVER_PATH"), std::string::npos) << why_not("/nonexistent/libcuda.so.1");
  EXPECT_NE(why_not(TG_FAKE_HALF_CUDA).find("no symbol"), std::string::npos) << why_not(TG_FAKE_HALF_CUDA);
  // A path of its own: what opened once is kept.
  const std::string copy = testing::TempDir() + "tinygrad_other_cuda.so";
  std::filesystem::copy_file(TG_FAKE_CUDA, copy, std::filesystem::copy_options::overwrite_existing);
  const DynamicLibrary library = DynamicLibrary::open({copy});
  FakeCuda& other = *library.symbol<FakeCuda*()>("fake_cuda")();
  other.version = 11080;
  EXPECT_NE(why_not(copy).find("11.8"), std::string::npos) << why_not(copy);
  other.version = 12040;
  other.devices = 0;
  EXPECT_NE(why_not(copy).find("no device"), std::string::npos) << why_not(copy);
  other.devices = 1;
  EXPECT_EQ(why_not(copy), "");
  std::filesystem::remove(copy);
}

TEST_F(FakeCudaTest, ComputesWhatTheCpuDoes) {
  const auto work = [](const char* device) {
    const Context on{{.dev = device}};
    const Tensor x = (Tensor::arange(24 * 20).cast(DType::float32) * 0.01).reshape({24, 20}), y = x.transpose().contiguous();
    return Tensor::cat(
               {x.matmul(y).reshape({-1}), x.softmax().reshape({-1}), x.cast(DType::bfloat16).sum(AxisList{0}).cast(DType::float32)})
        .tolist();
  };
  const Floats here = work("CUDA:PTX"), there = work("CPU");
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], there[i], 1e-4 * std::max(1.0f, std::abs(there[i]))) << i;
  EXPECT_GT(control().kernels_run, 0u);
}

/// Kernels that load four elements at once must not do so from between.
TEST_F(FakeCudaTest, ViewsBeginAnywhere) {
  constexpr int64_t n = 8192;
  Floats values(n + 8);
  std::iota(values.begin(), values.end(), 0.0f);
  const Tensor x = Tensor(values).to("CUDA").realize();
  for (const int64_t first : {0, 1, 2, 3, 4, 6}) {
    const Floats got = (x.shrink({{first, first + n}}) * 2).tolist();
    for (size_t i = 0; i < size_t(n); ++i) ASSERT_EQ(got[i], 2 * values[size_t(first) + i]) << i << " from " << first;
  }
}

TEST_F(FakeCudaTest, MemoryThatIsNotAlignedIsRefused) {
  Device& device = Device::get("CUDA");
  const auto program = get_program(codegen::test::elementwise(8192), device, current_options());
  ASSERT_EQ(program->info.params[1].align, 16);
  std::vector<BufferPtr> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(Buffer::make(device, 8192 + 4, DType::float32));
  const auto launch = [&](size_t odd) {
    std::vector<void*> handles;
    for (size_t i = 0; i < buffers.size(); ++i) handles.push_back(buffers[i]->view(i == odd ? 4 : 16, 8192, DType::float32)->handle());
    program->kernel->launch(handles, {}, program->info.launch_dims({}), true);
  };
  EXPECT_NO_THROW(launch(3));
  for (size_t odd = 0; odd < 3; ++odd) EXPECT_THROW(launch(odd), DeviceError) << odd;
}

TEST_F(FakeCudaTest, CopiesInPieces) {
  std::vector<float> values((size_t{10} << 20) / sizeof(float) + 3);
  std::iota(values.begin(), values.end(), 0.0f);
  const Tensor t = Tensor(values).to("CUDA").realize();
  EXPECT_EQ(t.tolist(), values);
}

/// In pinned memory, a piece of which is read while the other travels.
TEST_F(FakeCudaTest, FilesAreReadToPinnedMemory) {
  constexpr size_t bytes = (size_t{18} << 20) + 5;
  const test::TempFolder folder;
  std::string text(bytes, 0);
  for (size_t i = 0; i < bytes; ++i) text[i] = char(i * 3 + i / 255);
  const auto write = [&] { std::ofstream(folder.path("x"), std::ios::binary) << text; };
  write();
  Tensor({1.0f}).to("CUDA").realize();  // has pinned memory
  const FakeCuda before = control();
  const auto is_read = [&] {
    const std::vector<std::byte> got = Tensor::from_file(folder.path("x")).to("CUDA").data();
    return got.size() == bytes && std::memcmp(got.data(), text.data(), bytes) == 0;
  };
  EXPECT_TRUE(is_read());
  EXPECT_LE(control().allocations, before.allocations + 1);
  const Tensor file = Tensor::from_file(folder.path("x"));
  ASSERT_EQ(::truncate(folder.path("x").c_str(), bytes / 2), 0);
  EXPECT_THROW(file.to("CUDA").realize(), IoError);
  write();
  EXPECT_TRUE(is_read());
}

TEST_F(FakeCudaTest, CopiesOnTheDeviceMayOverlap) {
  Device& device = Device::get("CUDA");
  const BufferPtr buffer = Buffer::make(device, 1000, DType::uint8);
  std::vector<uint8_t> values(1000), expected, got(1000);
  std::iota(values.begin(), values.end(), uint8_t{0});
  for (const auto& [to, from] : {std::pair(30, 0), std::pair(0, 30), std::pair(500, 0), std::pair(7, 7)}) {
    buffer->copyin(std::as_bytes(std::span(values)));
    expected = values;
    std::memmove(expected.data() + to, values.data() + from, 470);
    auto* base = static_cast<std::byte*>(buffer->handle());
    device.allocator().copy(base + to, base + from, 470);
    buffer->copyout(std::as_writable_bytes(std::span(got)));
    EXPECT_EQ(got, expected) << to << " from " << from;
  }
}

TEST_F(FakeCudaTest, ReplaysAreGraphs) {
  const Tensor twice = (Tensor::eye(4) * 2).contiguous().realize();
  const auto f = jit([&](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 4; ++i) y = y.matmul(twice).contiguous();
    return y;
  });
  const Tensor a = Tensor::ones({2, 4}).contiguous().realize(), b = Tensor::full({2, 4}, 3.0).contiguous().realize();
  const FakeCuda before = control();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(f(i % 2 ? a : b).tolist(), Floats(8, i % 2 ? 16 : 48)) << i;
  EXPECT_GT(control().graph_launches, before.graph_launches);
  EXPECT_LT(control().launches, before.launches + 6 * 4) << "replays launch no kernels one by one";
}

TEST_F(FakeCudaTest, DevicesCopyFromEachOther) {
  const size_t before = control().peer_copies;
  const Tensor here = (Tensor({1.0f, 2.0f, 3.0f}) + 1).realize(), there = here.to("CUDA:1");
  EXPECT_EQ((there * 2).tolist(), (Floats{4, 6, 8}));
  EXPECT_EQ(control().peer_copies, before + 1);
}

TEST_F(FakeCudaTest, ReplaysOverTwoDevicesDoNotWait) {
  const auto waits = [] { return device_statistics("CUDA").waits + device_statistics("CUDA:1").waits; };
  const auto f = jit([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 3; ++i) y = ((y + 1).to("CUDA:1") * 2).to("CUDA");
    return y.realize();
  });
  const Tensor a = Tensor({1.0f, 2.0f}).realize(), b = Tensor({3.0f, 4.0f}).realize();
  for (int i = 0; i < 3; ++i) f(i % 2 ? a : b);
  std::vector<Tensor> results;
  const uint64_t before = waits();
  for (int i = 0; i < 10; ++i) results.push_back(f(i % 2 ? a : b));
  EXPECT_EQ(waits(), before);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(results[size_t(i)].tolist(), i % 2 ? (Floats{22, 30}) : (Floats{38, 46})) << i;
}

TEST_F(FakeCudaTest, MemoryThatIsUsedUp) {
  Device& device = Device::get("CUDA");
  device.allocator().empty_cache();
  control().memory_bytes = control().bytes + (size_t{1} << 20);
  {
    const BufferPtr freed = Buffer::make(device, 700 << 10, DType::uint8);
    freed->ensure_allocated();
  }
  const BufferPtr other = Buffer::make(device, 800 << 10, DType::uint8);
  EXPECT_NO_THROW(other->ensure_allocated()) << "the cache is emptied first";
  const BufferPtr large = Buffer::make(device, 2 << 20, DType::uint8);
  EXPECT_THROW(large->ensure_allocated(), OutOfMemoryError);
  control().memory_bytes = size_t{1} << 30;
  EXPECT_NO_THROW(large->ensure_allocated());
}

/// Not only allocations ask the driver for memory.
TEST_F(FakeCudaTest, CallsThatFindNoMemory) {
  const Tensor x = Tensor({1.0f, 2.0f}).to("CUDA").realize();
  int n = 100;
  for (const char* call : {"cuMemHostAlloc", "cuModuleLoadData", "cuLaunchKernel", "cuEventCreate"}) {
    const float by = float(++n);
    // A device of its own, as pinned memory for copies is kept.
    const std::string device = fmt::format("CUDA:{}", control().devices++);
    const auto work = [&] { return (Tensor({1.0f, 2.0f}).to(device) * by).tolist(); };
    fail(call, 2);
    EXPECT_THROW(work(), OutOfMemoryError) << call;
    EXPECT_EQ(control().failing, "") << call << " was not made";
    EXPECT_EQ(work(), (Floats{by, 2 * by})) << "after " << call;
  }
  for (const char* call : {"cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphInstantiateWithFlags"}) {
    const auto f = jit([](const Tensor& y) { return ((y + 1).realize() * 2).realize(); });
    fail(call, 2);
    int failures = 0;
    for (int i = 0; i < 4; ++i) try {
        EXPECT_EQ(f(x).tolist(), (Floats{4, 6})) << call;
      } catch (const OutOfMemoryError&) {
        ++failures;
      }
    EXPECT_EQ(failures, 1) << call;
    EXPECT_EQ(f(x).tolist(), (Floats{4, 6})) << "after " << call;
  }
}

TEST_F(FakeCudaTest, KernelsThatFailLater) {
  const Tensor x = Tensor({1.0f, 2.0f}).to("CUDA").realize();
  const Tensor y = (x + 1).realize();
  synchronize("CUDA");
  fail("kernel", 719);
  const Tensor z = (x * 3).realize();
  EXPECT_THROW(z.tolist(), DeviceError);
  EXPECT_THROW(z.tolist(), DeviceError) << "what it wrote is lost";
  EXPECT_EQ((x * 5).tolist(), (Floats{5, 10})) << "the next works";
  EXPECT_EQ(y.tolist(), (Floats{2, 3}));
}

TEST_F(FakeCudaTest, CallsThatFail) {
  const Tensor x = Tensor({1.0f, 2.0f}).to("CUDA").realize();
  size_t n = 107;
  for (const char* call :
       {"cuLaunchKernel", "cuModuleLoadData", "cuModuleGetFunction", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cuEventRecord"}) {
    const float by = float(++n);
    const Tensor many = Tensor(Floats(n, 2.0f)).to("CUDA").realize();  // of a size whose kernel nobody has loaded
    fail(call, 999);
    try {
      const Tensor y = (many * by + Tensor(Floats(n, by)).to("CUDA")).realize();
      EXPECT_THROW(y.tolist(), DeviceError) << call;
    } catch (const DeviceError&) {}
    EXPECT_EQ(control().failing, "") << call << " was not made";
    EXPECT_EQ((x * by).tolist(), (Floats{by, 2 * by})) << "after " << call;
  }
}

TEST_F(FakeCudaTest, LaunchesThatAreTooLarge) {
  const std::string text = "// k\n.visible .entry kernel_k(\n)\n{\n  ret;\n}\n";
  Device& device = Device::get("CUDA");
  const KernelInfo info = named("k");
  const auto kernel = device.load(info, {}, text);
  const auto launch = [&](LaunchDims dims) { kernel->launch({}, {}, dims, false); };
  EXPECT_THROW(launch({.global = {1, 1 << 16, 1}}), DeviceError);
  EXPECT_THROW(launch({.global = {int64_t{1} << 32, 1, 1}}), DeviceError);
  EXPECT_THROW(launch({.local = {64, 32, 1}}), DeviceError);
  const size_t before = control().launches;
  EXPECT_NO_THROW(launch({.global = {0, 1, 1}})) << "nothing to do";
  EXPECT_EQ(control().launches, before);
  EXPECT_NO_THROW(launch({.global = {3, 1, 1}, .local = {32, 1, 1}}));
  EXPECT_GT(kernel->launch({}, {}, {}, true).value(), 0);
  EXPECT_THROW(device.load(info, {}, "no PTX"), DeviceError);
}

/// Beyond what their text may declare: the driver is asked before the first launch, and each launch gives it.
TEST_F(FakeCudaTest, KernelsWithMuchGroupMemory) {
  using namespace codegen::test;
  Device& device = Device::get("CUDA");
  const auto opts =
      codegen::parse_opts("UPCAST(0,4) UPCAST(1,4) LOCAL(0,16) LOCAL(1,16) UNROLL(2,32) STAGE(2,1,group,4) STAGE(2,2,group,4)");
  const auto load = [&] { return get_program(with_opts(matmul(64, 64, 256), opts), device, current_options()); };
  for (const auto& [failing, most] : {std::pair("", 64 << 10), std::pair("cuFuncSetAttribute", 227 << 10)}) {
    const size_t before = control().modules;
    control().most_group_bytes = most;
    if (*failing) fail(failing, 1);
    try {
      load();
      ADD_FAILURE() << "a device with " << most << " bytes took it";
    } catch (const DeviceError& e) {
      EXPECT_NE(std::string(e.what()).find("a group's memory"), std::string::npos) << e.what();
    }
    EXPECT_EQ(control().modules, before) << "nothing stays loaded";
    control().most_group_bytes = 227 << 10;
  }
  const auto program = load();
  ASSERT_GT(program->info.group_bytes, 64 << 10);
  const auto fill = [](const BufferPtr& b, float x) {
    const Floats values(b->size(), x);
    b->copyin(std::as_bytes(std::span(values)));
  };
  const auto make = [&](int64_t n) {
    const BufferPtr b = Buffer::make(device, n, DType::float32);
    fill(b, 0.5f);
    return b;
  };
  const BufferPtr out = make(64 * 64), a = make(64 * 256), b = make(256 * 64);
  void* handles[] = {out->handle(), a->handle(), b->handle()};
  const LaunchDims dims = program->info.launch_dims({});
  Floats got(64 * 64);
  program->kernel->launch(handles, {}, dims, true);
  out->copyout(std::as_writable_bytes(std::span(got)));
  EXPECT_EQ(got, Floats(64 * 64, 64.0f));
  fill(out, 0);
  const GraphLaunch launches[] = {
      {.kernel = program->kernel.get(), .info = &program->info, .buffers = handles, .variables = {}, .dims = dims}};
  const auto graph = device.make_graph(launches);
  ASSERT_NE(graph, nullptr);
  graph->launch(launches, {}, true);
  out->copyout(std::as_writable_bytes(std::span(got)));
  EXPECT_EQ(got, Floats(64 * 64, 64.0f)) << "in a graph";
}

TEST_F(FakeCudaTest, HostsReachPinnedMemory) {
  Device& device = Device::get("CUDA");
  const BufferPtr pinned = Buffer::make(device, 16, DType::float32, {.host = true}), own = Buffer::make(device, 16, DType::float32);
  EXPECT_NE(pinned->data(), nullptr);
  EXPECT_EQ(pinned->view(8, 2, DType::float32)->data(), pinned->data() + 8);
  EXPECT_THROW(own->data(), DeviceError);
}

TEST_F(FakeCudaTest, ProfilingDoesNotWait) {
  const Tensor x = Tensor({1.0f, 2.0f}).to("CUDA").realize();
  synchronize("CUDA");
  clear_profile();
  const Context profiled{{.profile = true}};
  const int64_t before = profile_now_ns();
  const FakeCuda at_first = control();
  Tensor y = x;
  for (int i = 2; i < 6; ++i) y = (y * i).realize();
  EXPECT_EQ(control().waits, at_first.waits);
  EXPECT_EQ(control().kernels_run, at_first.kernels_run);
  synchronize("CUDA");
  const int64_t after = profile_now_ns();
  EXPECT_EQ(control().waits, at_first.waits + 1);
  const auto kernels = test::device_events("CUDA", "kernel");
  ASSERT_EQ(kernels.size(), 4u);
  test::expect_one_after_another(kernels, before, after);
  EXPECT_EQ(y.tolist(), (Floats{120, 240}));

  clear_profile();
  const Tensor there = y.to("CUDA:1").realize();
  synchronize("CUDA:1");
  const auto copies = test::device_events("CUDA:1", "copy");
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].name, Symbol("copy from CUDA"));
  clear_profile();
}

TEST_F(FakeCudaTest, ProfilesOfWhatFailed) {
  const Tensor x = Tensor({1.0f, 2.0f}).to("CUDA").realize();
  synchronize("CUDA");
  clear_profile();
  const Context profiled{{.profile = true}};
  const size_t events = control().events;
  fail("kernel", 719);
  const Tensor z = (x * 3).realize();
  EXPECT_THROW(synchronize("CUDA"), DeviceError);
  EXPECT_TRUE(test::device_events("CUDA", "kernel").empty());
  for (const char* call : {"cuLaunchKernel", "cuEventCreate", "cuEventRecord", "cuEventElapsedTime"}) {
    fail(call, 999);
    try {
      (x * 5).realize();
      synchronize("CUDA");
    } catch (const DeviceError&) {}
    EXPECT_EQ(control().failing, "") << call << " was not made";
  }
  EXPECT_EQ((x * 7).tolist(), (Floats{7, 14}));
  synchronize("CUDA");
  EXPECT_EQ(control().events, events) << "none is kept";
  clear_profile();
}

/// A program that never waits.
TEST_F(FakeCudaTest, ProfilesDoNotPileUp) {
  const Tensor x = Tensor({1.0f, 2.0f}).to("CUDA").realize();
  const Context profiled{{.profile = true}};
  const FakeCuda at_first = control();
  size_t most = 0;
  for (int i = 0; i < 5000; ++i) {
    (x * 2).realize();
    most = std::max(most, control().events);
  }
  EXPECT_LE(most, at_first.events + 2 * 4096 + 3);
  synchronize("CUDA");
  clear_profile();
}

TEST_F(FakeCudaTest, NothingIsLeftBehind) {
  Device& device = Device::get("CUDA");
  device.allocator().empty_cache();
  const FakeCuda before = control();
  {
    const BufferPtr b = Buffer::make(device, 1 << 20, DType::uint8);
    b->ensure_allocated();
    const auto kernel = device.load(named("k"), {}, "// k\n.visible .entry kernel_k(\n)\n{\n  ret;\n}\n");
    kernel->launch({}, {}, {}, true);
    EXPECT_GT(control().modules, before.modules);
  }
  device.allocator().empty_cache();
  EXPECT_EQ(control().allocations, before.allocations);
  EXPECT_EQ(control().modules, before.modules);
  EXPECT_EQ(control().events, before.events);
}

}  // namespace
}  // namespace tinygrad
