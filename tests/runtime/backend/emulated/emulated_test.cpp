// Devices that are processes under an emulator: other CPUs than the host's, and the DSP.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "device/device.h"
#include "kernel/describe_kernel.h"
#include "runtime/emulated/image.h"
#include "runtime/emulated/shared_heap.h"
#include "runtime/every_device.h"
#include "runtime/program_builder.h"
#include "target/target.h"

namespace tinygrad {
namespace {

using test::buffer_from;
using test::Program;
using test::ProgramBuilder;
using test::values_of;

std::vector<int32_t> counted(size_t n, int32_t first = 0) {
  std::vector<int32_t> out(n);
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// out[i] = 3 x[i] + 1, all lanes of 128 bytes at a time.
UOp tripled(DType d, int64_t n) {
  ProgramBuilder b;
  const int lanes = 128 / static_cast<int>(itemsize(d));
  const UOp out = b.param(d, n, 0, 1), x = b.param(d, n, 1, 2), r = b.range(n / lanes), at = b.alu(Op::MUL, {r, b.number(lanes)});
  const UOp product = b.alu(Op::MUL, {b.load(x, at, lanes), b.splat(b.constant(d, 3), lanes)});
  b.store(out, at, b.alu(Op::ADD, {product, b.splat(b.constant(d, 1), lanes)}), lanes);
  b.end(r);
  return b.linear();
}

/// Stores far outside of all memory.
UOp astray() {
  ProgramBuilder b;
  const UOp out = b.param(DType::int32, 8, 0), n = b.var("n", int64_t{1} << 40);
  b.store(out, n, b.constant(DType::int32, 1));
  return b.linear();
}

/// By the option DEV.
class Emulated : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  Device& device() { return Device::get(std::string_view(GetParam()).substr(0, 3)); }
  BufferPtr ints(const std::vector<int32_t>& values) { return buffer_from(device(), values, DType::int32); }
  void expect_that_it_works() {
    Program p(device(), tripled(DType::int32, 64), "tripled");
    const BufferPtr buffers[] = {ints(std::vector<int32_t>(64)), ints(counted(64))};
    p.run(buffers);
    std::vector<int32_t> expected;
    for (int32_t i = 0; i < 64; ++i) expected.push_back(3 * i + 1);
    EXPECT_EQ(values_of<int32_t>(*buffers[0]), expected);
  }

  Context choice_{{.dev = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(All, Emulated, testing::Values("DSP", "CPU:LLVM:neoverse-n1", "CPU:CLANG:rv64gcv"), [](const auto& tested) {
  std::string name = tested.param;
  std::erase_if(name, [](char c) { return c == ':' || c == '-'; });
  return name;
});

TEST_P(Emulated, MemoryOfTheHostIsNotUsedInPlace) {
  std::vector<int32_t> host(64);
  EXPECT_THROW(Buffer::make(device(), 64, DType::int32, {.external_ptr = host.data(), .owner = {}}), DeviceError);
}

TEST_P(Emulated, AKernelThatCrashesIsAnErrorAndTheNextOneRuns) {
  expect_that_it_works();
  Program p(device(), astray(), "astray");
  const BufferPtr memory[] = {ints(counted(8))};
  try {
    p.run(memory, std::vector<int64_t>{int64_t{3} << 27});  // beyond the memory that is shared
    ADD_FAILURE() << "no error";
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("the process that runs kernels was ended by signal 11"), std::string::npos) << e.what();
  }
  expect_that_it_works();
  EXPECT_EQ(values_of<int32_t>(*memory[0]), counted(8));
  p.run(memory, std::vector<int64_t>{2});
  EXPECT_EQ(values_of<int32_t>(*memory[0])[2], 1);
}

TEST_P(Emulated, TooMuchMemoryIsAnErrorAndTheNextAllocationWorks) {
  EXPECT_THROW(Buffer::make(device(), int64_t{2} << 30, DType::uint8)->ensure_allocated(), OutOfMemoryError);
  expect_that_it_works();
}

TEST_P(Emulated, AForkedChildCannotUseIt) {
  Program p(device(), tripled(DType::int32, 64), "tripled");
  const BufferPtr buffers[] = {ints(std::vector<int32_t>(64)), ints(counted(64))};
  p.run(buffers);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      p.run(buffers);
    } catch (const DeviceError&) {
      ::_exit(7);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  expect_that_it_works();
}

class EmulatedCode : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* device : {"DSP", "CPU:LLVM:neoverse-n1", "CPU:LLVM:rv64gcv"})
      if (const std::string why = test::why_not(device); !why.empty()) GTEST_SKIP() << why;
  }
};

std::string code_of(const char* choice, const UOp& linear) {
  const Context guard{{.dev = choice}};
  Device& device = Device::get(std::string_view(choice).substr(0, 3));
  return device.disassemble(device.compile(device.render(linear, describe_kernel(linear, "k"))));
}

TEST_F(EmulatedCode, HasInstructionsForVectors) {
  for (const DType d : {DType::int32, DType::int16, DType::uint8})
    EXPECT_NE(code_of("DSP", tripled(d, 256)).find("vmem"), std::string::npos) << repr(d);
  EXPECT_NE(code_of("CPU:CLANG:neoverse-n1", tripled(DType::float32, 128)).find("4s"), std::string::npos);
  EXPECT_NE(code_of("CPU:LLVM:rv64gcv", tripled(DType::float32, 128)).find("vsetvli"), std::string::npos);
}

/// What the heuristics make of a kernel.
UOp chosen(const UOp& kernel) { return codegen::full_rewrite(kernel, dsp_target("v66")); }

TEST_F(EmulatedCode, HeuristicsUseVectorsForIntegersAndNoneForFloats) {
  using codegen::test::elementwise;
  for (const DType d : {DType::int8, DType::uint8, DType::int16, DType::int32}) {
    EXPECT_NE(code_of("DSP", chosen(elementwise(4096, {}, d))).find("vmem"), std::string::npos) << repr(d);
  }
  EXPECT_EQ(code_of("DSP", chosen(elementwise(4096))).find("vmem"), std::string::npos);
}

TEST_F(EmulatedCode, TargetsDifferInFloatsAndWidth) {
  const Context guard{{.dev = "DSP:CLANG:v66"}};
  const Target& dsp = Device::get("DSP").target();
  EXPECT_EQ(dsp.name(), "DSP:CLANG:v66");
  EXPECT_EQ(dsp.lanes(DType::uint8), 128);
  EXPECT_EQ(dsp.lanes(DType::float32), 1);
  EXPECT_FALSE(dsp.supports(DType::float16));
}

/// While it lives, no program is found.
class EmptyPath {
 public:
  EmptyPath() { ::setenv("PATH", "/nonexistent", 1); }
  ~EmptyPath() { ::setenv("PATH", path_.c_str(), 1); }
  EmptyPath(const EmptyPath&) = delete;
  EmptyPath& operator=(const EmptyPath&) = delete;

 private:
  const std::string path_ = std::getenv("PATH");
};

TEST(EmulatedErrors, SayWhatToInstall) {
  const EmptyPath nowhere;
  for (const char* choice : {"DSP:CLANG", "CPU:LLVM:cortex-a72"}) {
    Context guard{{.dev = choice}};
    try {
      Device::get(std::string_view(choice).substr(0, 3));
      ADD_FAILURE() << choice << " opens";
    } catch (const DeviceError& e) {
      EXPECT_NE(std::string(e.what()).find("apt-get install qemu-user-static"), std::string::npos) << e.what();
    }
  }
  for (const DeviceStatus& d : available_devices()) {
    if (d.name == "DSP") {
      EXPECT_NE(d.reason.find("qemu-user-static"), std::string::npos) << d.reason;
    }
  }
}

TEST(EmulatedErrors, NameTheProcessorsThatAreKnown) {
  for (const auto& [choice, said] :
       {std::pair{"CPU:LLVM:pentium", "neoverse-n1"}, std::pair{"DSP:CLANG:v1", "v66"}, std::pair{"DSP:CLANG:v68", "cannot run"}}) {
    Context guard{{.dev = choice}};
    try {
      Device::get(std::string_view(choice).substr(0, 3));
      ADD_FAILURE() << choice << " opens";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(said), std::string::npos) << e.what();
    }
  }
}

TEST(SharedHeap, GivesOutWhatWasGivenBack) {
  runtime::SharedHeap heap;
  std::vector<std::pair<void*, size_t>> blocks;
  for (size_t n : {1u, 127u, 128u, 129u, 1u << 20, 64u << 20}) blocks.emplace_back(heap.allocate(n), n);
  for (const auto& [memory, size] : blocks) {
    ASSERT_TRUE(heap.contains(memory));
    EXPECT_EQ(heap.offset(memory) % runtime::SharedHeap::alignment, 0u);
    static_cast<std::byte*>(memory)[size - 1] = std::byte{1};
  }
  const size_t most = runtime::SharedHeap::bytes - runtime::SharedHeap::mailbox_bytes - runtime::SharedHeap::alignment;
  EXPECT_EQ(heap.allocate(most), nullptr);
  for (size_t i : {4u, 0u, 2u, 1u, 5u, 3u}) heap.free(blocks[i].first, blocks[i].second);
  void* all = heap.allocate(most);
  EXPECT_NE(all, nullptr);
  heap.free(all, most);
  EXPECT_EQ(heap.allocate(SIZE_MAX), nullptr);
}

TEST_F(EmulatedCode, ImagesThatAreNoneAreRefused) {
  const Context guard{{.dev = "DSP"}};
  const std::string object = Device::get("DSP").compile("void f(void) {}");
  for (const std::string& bytes : {std::string(), std::string("ELF"), std::string(200, 'x'), object, object.substr(0, 60)})
    EXPECT_THROW(runtime::Image{bytes}, FormatError) << bytes.size();
}

}  // namespace
}  // namespace tinygrad
