// What is WEBGPU's own: buffers whose handles are numbers, words that several elements share, views that begin where nothing can be bound,
// launches that are submitted together, and the library's errors as ours.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "device/device.h"
#include "kernel/describe_kernel.h"
#include "runtime/program_builder.h"
#include "runtime/webgpu/api.h"
#include "runtime/webgpu/kernel.h"
#include "runtime/webgpu/webgpu.h"

namespace tinygrad {
namespace {

using namespace codegen::test;
using tinygrad::test::buffer_from;
using tinygrad::test::Program;
using tinygrad::test::values_of;
namespace webgpu = runtime::webgpu;

class WebGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = runtime::webgpu_unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
  static Device& gpu() { return Device::get("WEBGPU"); }
  static Program program(const UOp& kernel) { return {gpu(), codegen::full_rewrite(kernel, gpu().target(), {.spec = 1}), "k"}; }

  template <class T>
  static std::vector<T> ramp(size_t n) {
    std::vector<T> out(n);
    std::iota(out.begin(), out.end(), T(1));
    return out;
  }
};

TEST_F(WebGpu, CopiesRunsOfBytesAnywhere) {
  const std::vector<uint8_t> all = ramp<uint8_t>(61);
  const BufferPtr buffer = buffer_from(gpu(), all, DType::uint8);
  EXPECT_EQ(values_of<uint8_t>(*buffer), all);
  std::vector<uint8_t> want = all;
  for (const auto& [begin, size] : {std::pair{1, 2}, {3, 2}, {5, 11}, {8, 4}, {57, 4}, {60, 1}, {0, 61}}) {
    const BufferPtr part = buffer->view(begin, size, DType::uint8);
    EXPECT_EQ(values_of<uint8_t>(*part), std::vector<uint8_t>(want.begin() + begin, want.begin() + begin + size));
    const std::vector<uint8_t> other(size_t(size), uint8_t(200 + begin));
    part->copyin(std::as_bytes(std::span(other)));
    std::copy(other.begin(), other.end(), want.begin() + begin);
    EXPECT_EQ(values_of<uint8_t>(*buffer), want) << begin << " " << size;
  }
}

TEST_F(WebGpu, CopiesWithinItselfAndBetweenDevices) {
  const BufferPtr a = buffer_from(gpu(), ramp<float>(1000), DType::float32), b = Buffer::make(gpu(), 1000, DType::float32);
  b->copy_from(*a);
  EXPECT_EQ(values_of<float>(*b), ramp<float>(1000));
  a->view(40, 900, DType::float32)->copy_from(*a->view(0, 900, DType::float32));  // they overlap
  std::vector<float> want = ramp<float>(1000);
  std::copy_backward(want.begin(), want.begin() + 900, want.begin() + 910);
  EXPECT_EQ(values_of<float>(*a), want);
  const BufferPtr on_cpu = Buffer::make(Device::get("CPU"), 1000, DType::float32);
  on_cpu->copy_from(*a);
  EXPECT_EQ(values_of<float>(*on_cpu), want);
  b->copy_from(*on_cpu);
  EXPECT_EQ(values_of<float>(*b), want);
}

TEST_F(WebGpu, CopiesMoreThanGoesThroughAtOnce) {
  const std::vector<int32_t> all = ramp<int32_t>((72 << 20) / 4);
  EXPECT_EQ(values_of<int32_t>(*buffer_from(gpu(), all, DType::int32)), all);
}

TEST_F(WebGpu, RunsOnViewsThatBeginAnywhere) {
  Program floats = program(elementwise(10)), bytes = program(elementwise(10, {}, DType::uint8));
  const BufferPtr in = buffer_from(gpu(), ramp<float>(100), DType::float32),
                  out = buffer_from(gpu(), std::vector<float>(100), DType::float32);
  const BufferPtr in8 = buffer_from(gpu(), ramp<uint8_t>(100), DType::uint8),
                  out8 = buffer_from(gpu(), std::vector<uint8_t>(100), DType::uint8);
  for (const int64_t first : {0, 1, 2, 3, 5, 8, 17, 64, 90}) {
    const BufferPtr views[] = {out->view(first * 4, 10, DType::float32), in->view(first * 4, 10, DType::float32),
                               in->view(4, 10, DType::float32)};
    floats.run(views);
    const BufferPtr views8[] = {out8->view(first, 10, DType::uint8), in8->view(first, 10, DType::uint8), in8->view(3, 10, DType::uint8)};
    bytes.run(views8);
    const auto got = values_of<float>(*views[0]);
    const auto got8 = values_of<uint8_t>(*views8[0]);
    for (int64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(got[size_t(i)], float((first + i + 1) * (i + 2) + 1));
      EXPECT_EQ(got8[size_t(i)], uint8_t((first + i + 1) * (i + 4) + 1));
    }
  }
}

/// Bytes of one word are stored by different work-items, and what is beside them stays.
TEST_F(WebGpu, StoresPartsOfWords) {
  for (const DType d : {DType::bool_, DType::int8, DType::uint16}) {
    const UOp i = loop(37, 0), kernel_of_37 = kernel({ended(write(arg(0, 37, d), i, read(arg(1, 37, d), i)), {i})});
    Program copy = program(kernel_of_37);
    const size_t bytes = 40 * itemsize(d);
    const BufferPtr from = buffer_from(gpu(), std::vector<uint8_t>(bytes, 1), DType::uint8),
                    to = buffer_from(gpu(), std::vector<uint8_t>(bytes, 0), DType::uint8);
    const BufferPtr views[] = {to->view(int64_t(itemsize(d)), 37, d), from->view(0, 37, d)};
    copy.run(views);
    std::vector<uint8_t> want(bytes, 0);
    std::fill(want.begin() + long(itemsize(d)), want.end() - 2 * long(itemsize(d)), uint8_t(1));
    EXPECT_EQ(values_of<uint8_t>(*to), want) << repr(d);
  }
}

TEST_F(WebGpu, LaunchesThatAreSubmittedTogetherSeeEachOther) {
  const UOp n = variable("n", 0, 1000), i = loop(64, 0), x = arg(0, 64, DType::int32);
  Program add = program(kernel({ended(write(x, i, read(x, i) + cast(n, DType::int32)), {i})}));
  const BufferPtr buffer = buffer_from(gpu(), std::vector<int32_t>(64), DType::int32);
  void* const handle = buffer->handle();
  // More than are submitted at once, and more variables than there is room for.
  for (int64_t k = 0; k < 1000; ++k)
    add.kernel->launch(std::span(&handle, 1), std::span(&k, 1), add.info.launch_dims(std::span(&k, 1)), false);
  EXPECT_EQ(values_of<int32_t>(*buffer), std::vector<int32_t>(64, 999 * 500));
}

/// A dimension has at most 65535 groups.
TEST_F(WebGpu, LongLoopsAreTwoDimensions) {
  constexpr int64_t n = 200000;
  Program p(gpu(), codegen::full_rewrite(elementwise(n), gpu().target(), {.noopt = true}), "k");
  const LaunchDims dims = p.info.launch_dims({});
  EXPECT_EQ(dims.global[0] * dims.global[1], n);
  EXPECT_LE(std::max(dims.global[0], dims.global[1]), 65535);
  const BufferPtr buffers[] = {Buffer::make(gpu(), n, DType::float32), buffer_from(gpu(), std::vector<float>(n, 2), DType::float32),
                               buffer_from(gpu(), ramp<float>(n), DType::float32)};
  p.run(buffers);
  std::vector<float> want = ramp<float>(n);
  for (float& x : want) x = 2 * x + 1;
  EXPECT_EQ(values_of<float>(*buffers[0]), want);
}

/// So has one whose length no such two numbers have as a product, and one that is not known before the launch.
TEST_F(WebGpu, LongLoopsOfAnyLengthAreTwoDimensions) {
  constexpr int64_t n = 200003;  // a prime
  Program fixed(gpu(), codegen::full_rewrite(elementwise(n), gpu().target(), {.noopt = true, .spec = 1}), "k");
  EXPECT_GT(fixed.info.launch_dims({}).global[1], 1);
  const BufferPtr buffers[] = {buffer_from(gpu(), std::vector<float>(n + 64, -1), DType::float32)->view(0, n, DType::float32),
                               buffer_from(gpu(), std::vector<float>(n, 2), DType::float32),
                               buffer_from(gpu(), ramp<float>(n), DType::float32)};
  fixed.run(buffers);
  const std::vector<float> got = values_of<float>(*buffers[0]);
  for (const size_t i : {size_t{0}, size_t{65535}, size_t{65536}, size_t(n - 1)}) EXPECT_EQ(got[i], float(2 * (i + 1) + 1)) << i;
  Program symbolic(gpu(), codegen::full_rewrite(symbolic_row_sums(n, 2), gpu().target(), {.noopt = true, .spec = 1}), "s");
  const BufferPtr rows = buffer_from(gpu(), std::vector<float>(2 * n, 1), DType::float32);
  for (const int64_t m : {int64_t{1}, int64_t{65536}, int64_t{70001}, n}) {
    const BufferPtr memory[] = {buffer_from(gpu(), std::vector<float>(n, -1), DType::float32), rows};
    symbolic.run(memory, std::vector<int64_t>{m, 2});
    const std::vector<float> sums = values_of<float>(*memory[0]);
    EXPECT_EQ(std::count(sums.begin(), sums.end(), 2), m);
    EXPECT_EQ(std::count(sums.begin(), sums.begin() + m, 2), m) << "and they are the first";
  }
}

TEST_F(WebGpu, IsSafeForSeveralThreads) {
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(4);
  for (size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([t, &results] {
      Program p = program(elementwise(1000));
      const std::vector<float> in(1000, float(t));
      for (int k = 0; k < 20; ++k) {
        const BufferPtr buffers[] = {Buffer::make(gpu(), 1000, DType::float32), buffer_from(gpu(), in, DType::float32),
                                     buffer_from(gpu(), in, DType::float32)};
        p.run(buffers);
        results[t] = values_of<float>(*buffers[0]);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (size_t t = 0; t < results.size(); ++t) EXPECT_EQ(results[t], std::vector<float>(1000, float(t * t + 1)));
}

TEST_F(WebGpu, TimesALaunch) {
  Program p = program(matmul(64, 64, 64));
  const BufferPtr buffers[] = {Buffer::make(gpu(), 4096, DType::float32), buffer_from(gpu(), ramp<float>(4096), DType::float32),
                               buffer_from(gpu(), ramp<float>(4096), DType::float32)};
  std::vector<void*> handles;
  for (const BufferPtr& b : buffers) handles.push_back(b->handle());
  const auto seconds = p.kernel->launch(handles, {}, p.info.launch_dims({}), true);
  ASSERT_TRUE(seconds);
  EXPECT_GT(*seconds, 0);
  EXPECT_LT(*seconds, 60);
}

// Errors: after each of them the next kernel works.

class WebGpuErrors : public WebGpu {
 protected:
  void TearDown() override {
    if (IsSkipped()) return;
    Program p = program(elementwise(4));
    const BufferPtr buffers[] = {Buffer::make(gpu(), 4, DType::float32), buffer_from(gpu(), ramp<float>(4), DType::float32),
                                 buffer_from(gpu(), ramp<float>(4), DType::float32)};
    p.run(buffers);
    EXPECT_EQ(values_of<float>(*buffers[0]), (std::vector<float>{2, 5, 10, 17}));
  }
};

TEST_F(WebGpuErrors, BadTextIsACompileErrorThatShowsIt) {
  try {
    gpu().load({}, {}, "fn nonsense( {");
    ADD_FAILURE() << "no error";
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("nonsense"), std::string::npos) << e.what();
  }
}

TEST_F(WebGpuErrors, BuffersThatAreTooLargeAreOutOfMemory) {
  EXPECT_THROW(Buffer::make(gpu(), int64_t(1) << 40, DType::float32)->ensure_allocated(), OutOfMemoryError);
  const Context limit{{.memory_limit = 1 << 20}};
  EXPECT_THROW(Buffer::make(gpu(), 1 << 20, DType::float32)->ensure_allocated(), OutOfMemoryError);
}

TEST_F(WebGpuErrors, OversizedLaunches) {
  Program p = program(elementwise(4));
  const BufferPtr buffers[] = {Buffer::make(gpu(), 4, DType::float32), Buffer::make(gpu(), 4, DType::float32),
                               Buffer::make(gpu(), 4, DType::float32)};
  std::vector<void*> handles;
  for (const BufferPtr& b : buffers) handles.push_back(b->handle());
  LaunchDims dims;
  dims.global[1] = 1 << 20;
  EXPECT_THROW(p.kernel->launch(handles, {}, dims, true), DeviceError);
  dims.global[1] = 0;  // nothing to do
  EXPECT_EQ(p.kernel->launch(handles, {}, dims, true), 0);
}

TEST_F(WebGpuErrors, MemoryOfAnotherDevice) {
  Program p = program(elementwise(4));
  float host[4] = {};
  void* const handles[] = {host, host, host};
  EXPECT_THROW(p.kernel->launch(handles, {}, p.info.launch_dims({}), true), DeviceError);
}

/// A kernel may have an index that leads out of its memory, and even then touches no other.
TEST_F(WebGpuErrors, AccessesStayInTheirMemory) {
  const UOp i = loop(64, 0), at = cast(read(arg(1, 64, DType::int32), i), DType::index);
  Program scatter(
      gpu(), codegen::full_rewrite(kernel({ended(write(arg(0, 64), at, read(arg(2, 64), at) + 1), {i})}), gpu().target(), {.noopt = true}),
      "k");
  std::vector<int32_t> wild(64);
  for (size_t k = 0; k < 64; ++k) wild[k] = k % 2 ? int32_t(1) << (k / 3) : -int32_t(k) * 1000;
  const BufferPtr before = buffer_from(gpu(), ramp<float>(4096), DType::float32), out = buffer_from(gpu(), ramp<float>(64), DType::float32),
                  behind = buffer_from(gpu(), ramp<float>(4096), DType::float32);
  const BufferPtr buffers[] = {out, buffer_from(gpu(), wild, DType::int32), buffer_from(gpu(), ramp<float>(64), DType::float32)};
  scatter.run(buffers);
  gpu().wait();
  EXPECT_EQ(values_of<float>(*before), ramp<float>(4096));
  EXPECT_EQ(values_of<float>(*behind), ramp<float>(4096));
}

/// A device of its own, which may be lost.
class LostWebGpu : public WebGpu {
 protected:
  struct Text {
    KernelInfo info;
    std::string wgsl;
  };
  static Text text_of(const UOp& kernel) {
    const UOp linear = codegen::full_rewrite(kernel, gpu().target(), {.noopt = true});
    const KernelInfo info = describe_kernel(linear, "k");
    return {info, gpu().render(linear, info)};
  }

  struct Opened {
    webgpu::Gpu gpu{"WEBGPU", webgpu::adapters()[0]};
    webgpu::WebGpuAllocator memory{gpu};
    webgpu::WebGpuKernel kernel;
    void* handles[3];

    explicit Opened(const Text& text) : kernel(gpu, memory, text.info, text.wgsl) {
      for (void*& h : handles) h = memory.allocate(16, {});
    }
    ~Opened() {
      for (void* h : handles) memory.deallocate(h, 16, {});
      EXPECT_EQ(memory.bytes_in_use(), 0u);
    }
    void set(void* handle, const std::vector<float>& values) { memory.copy_in(handle, std::as_bytes(std::span(values)).data(), 16); }
    std::vector<float> get(void* handle) {
      std::vector<float> values(4);
      memory.copy_out(std::as_writable_bytes(std::span(values)).data(), handle, 16);
      return values;
    }
  };

  template <class F>
  static void expect_lost(F f) {
    try {
      f();
      ADD_FAILURE() << "no error";
    } catch (const DeviceError& e) {
      EXPECT_NE(std::string(e.what()).find("the device is lost"), std::string::npos) << e.what();
    }
  }
};

TEST_F(LostWebGpu, BetweenTwoLaunchesIsAnErrorThatSaysSo) {
  const Text p = text_of(elementwise(4));
  for (const int pending : {0, 1, 63, 200}) {
    Opened device(p);
    const auto launch = [&](bool wait) { return device.kernel.launch(device.handles, {}, p.info.launch_dims({}), wait); };
    for (void* h : device.handles) device.set(h, ramp<float>(4));
    for (int i = 0; i < pending; ++i) launch(false);
    device.gpu.close();
    expect_lost([&] { launch(false); });
    expect_lost([&] { launch(true); });
    expect_lost([&] { device.gpu.synchronize(); });
    expect_lost([&] { device.get(device.handles[0]); });
    expect_lost([&] { device.set(device.handles[0], ramp<float>(4)); });
    expect_lost([&] { device.memory.copy(device.handles[0], device.handles[1], 16); });
    expect_lost([&] { device.memory.allocate(1 << 20, {}); });
    expect_lost([&] { device.gpu.make_module("fn f() {}"); });
    expect_lost([&] { webgpu::WebGpuKernel(device.gpu, device.memory, p.info, p.wgsl); });
    device.gpu.close();  // again
  }
  Opened another(p);
  for (void* h : another.handles) another.set(h, ramp<float>(4));
  another.kernel.launch(another.handles, {}, p.info.launch_dims({}), false);
  EXPECT_EQ(another.get(another.handles[0]), (std::vector<float>{2, 5, 10, 17})) << "another one works";
}

TEST_F(WebGpuErrors, LibrariesThatAreMissingOrAnother) {
  const auto message = [](const char* path) -> std::string {
    try {
      runtime::webgpu::open_library(path);
      return "no error";
    } catch (const DeviceError& e) {
      return e.what();
    }
  };
  EXPECT_NE(message("/nonexistent/libwgpu_native.so").find("WEBGPU_PATH"), std::string::npos);
  EXPECT_NE(message("libm.so.6").find("is another library; wgpu-native 29 is needed"), std::string::npos) << message("libm.so.6");
}

TEST_F(WebGpuErrors, AdaptersThatAreNotThere) { EXPECT_THROW(Device::get("WEBGPU:99"), DeviceError); }

}  // namespace
}  // namespace tinygrad
