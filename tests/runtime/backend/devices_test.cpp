// Memory, launches and errors on every device. After each test a kernel must give the right numbers.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "codegen/opt/parse_opts.h"
#include "program/run_kernel.h"
#include "runtime/every_device.h"
#include "runtime/program_builder.h"
#include "support/test_scale.h"

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
  Device& disk = Device::get("DISK:" + path);
  const BufferPtr here = floats(7777, 5), there = Buffer::make(disk, 7777, DType::float32), back = floats(7777);
  there->copy_from(*here);
  back->copy_from(*there);
  EXPECT_EQ(values_of<float>(*back), values_of<float>(*here));
  ::unlink(path.c_str());
}

TEST_P(DeviceTest, CopiesToAndFromAnotherDevice) {
  Device& other = Device::get(device().name() == Symbol("CPU") ? "INTERP" : "CPU");
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
  for (const size_t i : test::sampled_below(target.tensor_cores.size())) {
    const TensorCore& core = target.tensor_cores[i];
    // Hopper's wgmma of 8-bit floats cuts off what it adds up some 13 bits below the largest term.
    const bool cuts_off = core.a.in_memory && is_fp8(core.a_type);
    const double bound = core.out == DType::float16 ? 2e-2 : core.kept_bits != 0 ? 2e-3 : cuts_off ? 1e-3 : 1e-5;
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
  EXPECT_THROW(device().load(program(elementwise(4)).info, {}, device().compile("nonsense {")), CompileError);
}

TEST_P(DeviceTest, BinariesThatAreNone) {
  if (interprets()) GTEST_SKIP() << "it has no compiler";
  const Program p = program(elementwise(4));
  for (const char* binary : {"", "not a binary"}) EXPECT_THROW(device().load(p.info, {}, binary), Error) << binary;
}

TEST_P(DeviceTest, LargerGroupsThanThereAre) {
  if (!has_groups()) GTEST_SKIP() << "it has no work-groups";
  if (interprets()) GTEST_SKIP() << "it runs groups of any size, for all targets";
  Target larger = device().target();
  larger.max_group_items *= 2;
  const UOp kernel = elementwise(larger.max_group_items, {{OptOp::LOCAL, 0, int32_t(larger.max_group_items)}});
  const BufferPtr memory = floats(size_t(larger.max_group_items)), buffers[] = {memory, memory, memory};
  // The compiler, or whoever loads or launches it, says so.
  EXPECT_THROW(Program(device(), codegen::full_rewrite(kernel, larger, {.noopt = true}), "k").run(buffers), Error);
}

TEST_P(DeviceTest, MoreGroupsThanThereAre) {
  if (!has_groups()) GTEST_SKIP() << "it has no work-groups";
  Program p = program(elementwise(64));
  const BufferPtr out = floats(64);
  void* const handles[] = {out->handle(), out->handle(), out->handle()};
  for (size_t i = 0; i < 3; ++i) {
    LaunchDims dims = p.info.launch_dims({});
    for (const int64_t n : {device().target().max_global[i] + 1, int64_t{1} << 40, int64_t{-1}}) {
      dims.global[i] = n;
      EXPECT_THROW(p.kernel->launch(handles, {}, dims, true), DeviceError) << n << " along " << i;
    }
    dims.global[i] = 0;
    EXPECT_NO_THROW(p.kernel->launch(handles, {}, dims, true)) << "nothing to do";
  }
  EXPECT_EQ(values_of<float>(*out)[8], 8);
}

/// Kernels whose accesses have gates, on parts of an arena; what lies around these and what the gates keep out must stay.
class Gates : public DeviceTest {
 protected:
  static constexpr int64_t before = 97, n = 40;  // elements

  /// `kernel` reads n elements of slot 1 and writes n of slot 0. `written` says of each which it is: -1 where nothing is written, 0 for
  /// what a gate kept out plus 1, otherwise 1 and the number of the one that was read.
  template <class T>
  void expect(const UOp& kernel, DType dtype, int64_t (*written)(int64_t)) {
    if (!takes(dtype)) return;
    // Where a device promises kernels how their arguments are aligned, these are.
    const int64_t unit = std::max<int64_t>(device().target().memory_alignment / int64_t(sizeof(T)), 1);
    const auto aligned = [&](int64_t first) { return (first + unit - 1) / unit * unit; };
    const int64_t out = aligned(before), in = aligned(out + n + before);
    std::vector<T> values(size_t(in + n + before));
    for (size_t i = 0; i < values.size(); ++i) values[i] = T(i % 101);
    const BufferPtr arena = buffer_from(device(), values, dtype);
    const auto part = [&](int64_t first) { return arena->view(first * int64_t(sizeof(T)), n, dtype); };
    const BufferPtr buffers[] = {part(out), part(in)};
    program(kernel).run(buffers);
    for (int64_t i = 0; i < n; ++i)
      if (const int64_t from = written(i); from >= 0) values[size_t(out + i)] = from == 0 ? T(1) : T(values[size_t(in + from - 1)] + 1);
    EXPECT_EQ(values_of<T>(*arena), values) << repr(dtype);
  }

  /// out[i - 3] = a[i + 5] + 1, as far as both are there; what is not there of `a` is 0.
  static UOp shifted(DType dtype, std::vector<Opt> opts) {
    const UOp i = codegen::test::loop(64, 0), to = i - 3, from = i + 5;
    const UOp x = load(index_valid(codegen::test::arg(1, n, dtype), from, from < n));
    const UOp written = index_valid(codegen::test::arg(0, n, dtype), to, logical_not(to < 0) & (to < n));
    return codegen::test::kernel({codegen::test::ended(store(written, x + constant(dtype, 1)), {i})}, std::move(opts));
  }
  /// out[4000000 i] = a[4000000 i] + 1 for i = 0
  static UOp far(DType dtype) {
    const UOp i = codegen::test::loop(64, 0), at = i * 4000000, valid = i < 1;
    const UOp x = load(index_valid(codegen::test::arg(1, n, dtype), at, valid));
    return codegen::test::kernel(
        {codegen::test::ended(store(index_valid(codegen::test::arg(0, n, dtype), at, valid), x + constant(dtype, 1)), {i})});
  }

  template <class T>
  void expect_all(DType dtype) {
    std::vector<std::vector<Opt>> all{{}, {{OptOp::UPCAST, 0, 4}}, {{OptOp::UPCAST, 0, 5}}, {{OptOp::LANE, 0, 4}}};
    if (has_groups()) all.insert(all.end(), {{{OptOp::LOCAL, 0, 7}}, {{OptOp::UPCAST, 0, 4}, {OptOp::LOCAL, 0, 5}}});
    for (const std::vector<Opt>& opts : all) {
      SCOPED_TRACE(codegen::to_string(opts));
      expect<T>(shifted(dtype, opts), dtype, [](int64_t i) { return i + 8 < n ? i + 9 : 0; });
    }
    expect<T>(far(dtype), dtype, [](int64_t i) { return i == 0 ? int64_t{1} : -1; });
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Gates, testing::ValuesIn(test::every_device()), test::device_test_name);

TEST_P(Gates, KeepWhatLiesAroundOfFloats) { expect_all<float>(DType::float32); }
TEST_P(Gates, KeepWhatLiesAroundOfShorts) { expect_all<int16_t>(DType::int16); }
TEST_P(Gates, KeepWhatLiesAroundOfBytes) { expect_all<uint8_t>(DType::uint8); }

TEST_P(DeviceTest, AnIndexThatIsNotThere) {
  if (interprets()) GTEST_SKIP() << "it has as many as are asked for";
  EXPECT_THROW(Device::get(std::string(device().name().str()) + ":999"), DeviceError);
}

}  // namespace
}  // namespace tinygrad
