// Memory, launches and errors on every device. After each test a kernel must give the right numbers.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "program/run_kernel.h"
#include "runtime/every_device.h"
#include "runtime/program_builder.h"

namespace tinygrad {
namespace {

using codegen::test::elementwise;
using test::buffer_from;
using test::Program;
using test::values_of;

class DeviceTest : public test::EveryDevice {
 protected:
  Program program(const UOp& sink) { return {device(), codegen::full_rewrite(sink, device().target(), {.noopt = true}), "k"}; }
  BufferPtr floats(size_t n, float first = 0) {
    std::vector<float> values(n);
    std::iota(values.begin(), values.end(), first);
    return buffer_from(device(), values, DType::float32);
  }
  bool interprets() { return GetParam() == "INTERP"; }

  void TearDown() override {
    if (IsSkipped()) return;
    Program p = program(elementwise(4));
    const BufferPtr buffers[] = {floats(4), floats(4, 1), floats(4, 2)};
    p.run(buffers);
    EXPECT_EQ(values_of<float>(*buffers[0]), (std::vector<float>{3, 7, 13, 21}));
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::ValuesIn(test::every_device()), test::device_test_name);

TEST_P(DeviceTest, CopiesWithinItself) {
  const BufferPtr a = floats(1000), b = Buffer::make(device(), 1000, DType::float32);
  b->copy_from(*a);
  EXPECT_EQ(values_of<float>(*b), values_of<float>(*a));
  // Parts of one buffer that overlap, up and down.
  const BufferPtr low = a->view(0, 900, DType::float32), high = a->view(400, 900, DType::float32);
  high->copy_from(*low);
  EXPECT_EQ(values_of<float>(*a)[999], 899);
  low->copy_from(*high);
  EXPECT_EQ(values_of<float>(*a)[0], 0);
  EXPECT_EQ(values_of<float>(*a)[899], 899);
}

TEST_P(DeviceTest, CopiesBytesThatBeginAnywhere) {
  std::vector<uint8_t> want(61);
  std::iota(want.begin(), want.end(), uint8_t{1});
  const BufferPtr buffer = buffer_from(device(), want, DType::uint8);
  for (const auto& [begin, size] : {std::pair{1, 2}, {3, 2}, {5, 11}, {8, 4}, {57, 4}, {60, 1}, {0, 61}}) {
    const std::vector<uint8_t> other(size_t(size), uint8_t(200 + begin));
    buffer->view(begin, size, DType::uint8)->copyin(std::as_bytes(std::span(other)));
    std::copy(other.begin(), other.end(), want.begin() + begin);
    EXPECT_EQ(values_of<uint8_t>(*buffer), want) << begin << " " << size;
  }
}

TEST_P(DeviceTest, CopiesToAndFromAFile) {
  const std::string path = testing::TempDir() + "tinygrad_device_test_" + test::device_test_name({GetParam(), 0});
  Device& disk = runtime::open_device("DISK:" + path);
  const BufferPtr here = floats(7777, 5), there = Buffer::make(disk, 7777, DType::float32), back = floats(7777);
  there->copy_from(*here);
  back->copy_from(*there);
  EXPECT_EQ(values_of<float>(*back), values_of<float>(*here));
  ::unlink(path.c_str());
}

TEST_P(DeviceTest, CopiesToAndFromAnotherDevice) {
  Device& other = runtime::open_device(device().name() == Symbol("CPU") ? "INTERP" : "CPU");
  const BufferPtr here = floats(77, 5), there = Buffer::make(other, 77, DType::float32), back = floats(77);
  there->copy_from(*here);
  back->copy_from(*there);
  EXPECT_EQ(values_of<float>(*there), values_of<float>(*here));
  EXPECT_EQ(values_of<float>(*back), values_of<float>(*here));
}

TEST_P(DeviceTest, KernelsTakeViews) {
  Program p = program(elementwise(64));
  const BufferPtr arena = floats(400);
  const BufferPtr buffers[] = {arena->view(4 * 301, 64, DType::float32), arena->view(4 * 3, 64, DType::float32),
                               arena->view(4 * 101, 64, DType::float32)};
  p.run(buffers);
  const std::vector<float> got = values_of<float>(*arena);
  for (size_t i = 0; i < 400; ++i) {
    const bool written = i >= 301 && i < 365;
    const auto k = static_cast<float>(written ? i - 301 : 0);
    EXPECT_EQ(got[i], written ? (k + 3) * (k + 101) + 1 : static_cast<float>(i)) << i;
  }
}

TEST_P(DeviceTest, VariablesComeWithEachLaunch) {
  Program p = program(codegen::test::symbolic_row_sums(9, 40));
  for (const auto& [m, n] : {std::pair{9, 40}, {1, 1}, {4, 17}}) {
    const BufferPtr buffers[] = {buffer_from(device(), std::vector<float>(9, -1), DType::float32),
                                 buffer_from(device(), std::vector<float>(360, 1), DType::float32)};
    const int64_t variables[] = {m, n};
    p.run(buffers, variables);
    for (int i = 0; i < 9; ++i) EXPECT_EQ(values_of<float>(*buffers[0])[static_cast<size_t>(i)], static_cast<float>(i < m ? n : -1));
  }
}

TEST_P(DeviceTest, ThreadsShareAKernel) {
  Program p = program(elementwise(64));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const BufferPtr buffers[] = {floats(64), floats(64, static_cast<float>(t)), floats(64, static_cast<float>(i))};
        p.run(buffers);
        EXPECT_EQ(values_of<float>(*buffers[0])[1], static_cast<float>((t + 1) * (i + 1) + 1));
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST_P(DeviceTest, EveryTensorCore) {
  const Target target = device().target();
  if (target.tensor_cores.empty()) GTEST_SKIP() << "it has no tensor cores";
  const auto run = [&](const UOp& linear, const spec::EvalInputs& inputs) { return test::run_on_device(device(), linear, inputs); };
  for (size_t i = 0; i < target.tensor_cores.size(); ++i) {
    const TensorCore& core = target.tensor_cores[i];
    const double bound = core.out == DType::float16 ? 2e-2 : core.kept_bits != 0 ? 2e-3 : 1e-5;
    SCOPED_TRACE(core.name.str());
    for (const int more : {0, 3}) {
      const UOp kernel = codegen::test::narrow_matmul(2 * core.m + more, 2 * core.n, 2 * core.k, core.a_type, core.b_type, core.out);
      EXPECT_EQ(codegen::test::difference_on(kernel, {{OptOp::TC, 0, int32_t(i)}}, target, run, bound), "");
    }
  }
}

TEST_P(DeviceTest, MoreMemoryThanThereIs) {
  const BufferPtr huge = Buffer::make(device(), int64_t{1} << 50, DType::uint8);
  EXPECT_THROW(huge->ensure_allocated(), OutOfMemoryError);
  const Context limit{{.memory_limit = 1 << 20}};
  EXPECT_THROW(Buffer::make(device(), 1 << 20, DType::float32)->ensure_allocated(), OutOfMemoryError);
}

TEST_P(DeviceTest, TextThatIsNoProgram) {
  if (interprets()) GTEST_SKIP() << "it has no compiler";
  EXPECT_THROW(device().compile("nonsense {"), CompileError);
}

TEST_P(DeviceTest, BinariesThatAreNone) {
  if (interprets()) GTEST_SKIP() << "it has no compiler";
  const Program p = program(elementwise(4));
  for (const char* binary : {"", "not a binary"}) EXPECT_THROW(device().load(p.info, {}, binary), Error) << binary;
}

TEST_P(DeviceTest, LargerGroupsThanThereAre) {
  if (!has_groups()) GTEST_SKIP() << "it has no work-groups";
  if (interprets()) GTEST_SKIP() << "it runs groups of any size, for all targets";
  if (device().target().renderer == Symbol("WGSL")) GTEST_SKIP() << "the text says how large groups are";
  Program p = program(elementwise(64));
  const BufferPtr buffers[] = {floats(64), floats(64), floats(64)};
  std::vector<void*> handles;
  for (const BufferPtr& b : buffers) handles.push_back(b->handle());
  LaunchDims dims = p.info.launch_dims({});
  dims.local[0] = device().target().max_group_items * 2;
  EXPECT_THROW(p.kernel->launch(handles, {}, dims, true), DeviceError);
}

TEST_P(DeviceTest, AnIndexThatIsNotThere) {
  if (interprets()) GTEST_SKIP() << "it has as many as are asked for";
  EXPECT_THROW(runtime::open_device(std::string(device().name().str()) + ":99"), DeviceError);
}

}  // namespace
}  // namespace tinygrad
