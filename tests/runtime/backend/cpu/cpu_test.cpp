#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <functional>
#include <memory>
#include <numeric>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "compiler/llvm/llvm.h"
#include "kernel/describe_kernel.h"
#include "runtime/cpu/cpu_code.h"
#include "runtime/every_device.h"
#include "runtime/program_builder.h"

namespace tinygrad {
namespace {

using test::buffer_from;
using test::Program;
using test::ProgramBuilder;
using test::values_of;

Device& cpu() { return Device::get("CPU"); }

std::vector<float> ramp(size_t n, float step = 1) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(i) * step;
  return out;
}
BufferPtr floats(const std::vector<float>& v) { return buffer_from(cpu(), v, DType::float32); }
BufferPtr zeros(size_t n) { return floats(std::vector<float>(n)); }

/// By renderer.
class CpuKernels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  Context device_{{.dev = GetParam()}};
};
/// "CPU:LLVM:rv64gcv" is "LLVM_rv64gcv".
std::string choice_name(const testing::TestParamInfo<const char*>& tested) {
  std::string name = std::string(tested.param).substr(4);
  for (char& c : name)
    if (c == ':' || c == '-') c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Renderers, CpuKernels, testing::Values("CPU:LLVM", "CPU:CLANG"), choice_name);
INSTANTIATE_TEST_SUITE_P(Emulated, CpuKernels,
                         testing::Values("CPU:LLVM:neoverse-n1", "CPU:CLANG:neoverse-n1", "CPU:LLVM:rv64gcv_zvl256b", "CPU:CLANG:rv64gcv"),
                         choice_name);

TEST_P(CpuKernels, AddsVectorsInALoop) {
  ProgramBuilder b;
  const UOp out = b.param(DType::float32, 64, 0), x = b.param(DType::float32, 64, 1), y = b.param(DType::float32, 64, 2);
  const UOp r = b.range(8), at = b.alu(Op::MUL, {r, b.number(8)});
  b.store(out, at, b.alu(Op::ADD, {b.load(x, at, 8), b.load(y, at, 8)}), 8);
  b.end(r);
  Program p(cpu(), b.linear(), "add");
  const BufferPtr buffers[] = {zeros(64), floats(ramp(64)), floats(ramp(64, 2))};
  p.run(buffers);
  EXPECT_EQ(values_of<float>(*buffers[0]), ramp(64, 3));
  EXPECT_EQ(p.info.flops.evaluate({}), 64);
  EXPECT_EQ(p.info.bytes.evaluate({}), 3 * 64 * 4);
}

TEST_P(CpuKernels, ReducesIntoARegister) {
  ProgramBuilder b;
  const UOp out = b.param(DType::float32, 4, 0), x = b.param(DType::float32, 40, 1);
  const UOp acc = b.reg(DType::float32, 1), zero = b.number(0);
  const UOp row = b.range(4);
  b.store(acc, zero, b.constant(DType::float32, 0));
  const UOp col = b.range(10);
  const UOp at = b.alu(Op::ADD, {b.alu(Op::MUL, {row, b.number(10)}), col});
  b.store(acc, zero, b.alu(Op::ADD, {b.load(acc, zero), b.load(x, at)}));
  b.end(col);
  // Loaded after the loop: the same node again would be the value from before.
  const UOp total = b.add(UOp(Op::LOAD, DType::float32, {b.index(acc, b.alu(Op::ADD, {zero, zero}))}));
  b.store(out, row, total);
  b.end(row);
  Program p(cpu(), b.linear(), "row sums");
  const BufferPtr buffers[] = {zeros(4), floats(ramp(40))};
  p.run(buffers);
  EXPECT_EQ(values_of<float>(*buffers[0]), (std::vector<float>{45, 145, 245, 345}));
  // The register is no memory.
  EXPECT_EQ(p.info.bytes.evaluate({}), 44 * 4);
}

TEST_P(CpuKernels, GatesLoadsAndStores) {
  ProgramBuilder b;
  const UOp out = b.param(DType::float32, 16, 0), x = b.param(DType::float32, 5, 1);
  const UOp r = b.range(16);
  const UOp inside = b.alu(Op::CMPLT, {r, b.number(5)}), stored = b.alu(Op::CMPLT, {r, b.number(10)});
  b.store(out, r, b.load(x, r, b.constant(DType::float32, -1), inside), stored);
  b.end(r);
  Program p(cpu(), b.linear(), "gates");
  const BufferPtr buffers[] = {floats(std::vector<float>(16, 7)), floats({1, 2, 3, 4, 5})};
  p.run(buffers);
  EXPECT_EQ(values_of<float>(*buffers[0]), (std::vector<float>{1, 2, 3, 4, 5, -1, -1, -1, -1, -1, 7, 7, 7, 7, 7, 7}));
}

TEST_P(CpuKernels, MasksLanes) {
  for (const DType d : {DType::float32, DType::int8, DType::int64, DType::float16, DType::bool_}) {
    ProgramBuilder b;
    const UOp out = b.param(d, 8, 0), x = b.param(d, 3, 1), zero = b.number(0);
    std::vector<UOp> lanes;
    for (int i = 0; i < 8; ++i) lanes.push_back(b.number(i));
    const UOp at = b.add(stack(lanes));
    const UOp inside = b.alu(Op::CMPLT, {at, b.splat(b.number(3), 8)}), stored = b.alu(Op::CMPLT, {at, b.splat(b.number(6), 8)});
    const UOp run = b.load(x, zero, b.splat(b.constant(d, 1), 8), inside, 8);
    b.store(out, zero, run, stored, 8);
    Program p(cpu(), b.linear(), "mask");
    const size_t bytes = itemsize(d);
    std::vector<std::byte> from(3 * bytes), to(8 * bytes), want(8 * bytes);
    for (size_t i = 0; i < 8; ++i) {
      const Scalar fill = i < 3 ? Scalar::from_int(0, d) : Scalar::from_int(i < 6 ? 1 : 0, d);
      fill.to_bytes(want.data() + i * bytes);
    }
    BufferPtr buffers[] = {buffer_from(cpu(), to, DType::uint8)->view(0, 8, d), buffer_from(cpu(), from, DType::uint8)->view(0, 3, d)};
    p.run(buffers);
    EXPECT_EQ(values_of<std::byte>(*buffers[0]), want) << repr(d);
  }
}

TEST_P(CpuKernels, GathersAndScattersByLane) {
  ProgramBuilder b;
  const UOp out = b.param(DType::int32, 8, 0), x = b.param(DType::int32, 8, 1);
  const UOp from = b.stack({b.number(7), b.number(1), b.number(5), b.number(0)});
  const UOp to = b.stack({b.number(3), b.number(2), b.number(100), b.number(6)});
  const UOp yes = b.constant(DType::bool_, 1), no = b.constant(DType::bool_, 0);
  const UOp gathered = b.load(x, from);
  const UOp some = b.load(x, to, b.splat(b.constant(DType::int32, -1), 4), b.stack({yes, yes, no, yes}));
  b.store(out, to, b.alu(Op::ADD, {gathered, some}), b.stack({yes, yes, no, yes}));
  b.store(out, b.stack({b.number(0), b.number(1)}), b.part(some, 1, 3));
  b.store(out, b.number(7), b.lane(some, 3));
  Program p(cpu(), b.linear(), "gather");
  BufferPtr buffers[] = {buffer_from(cpu(), std::vector<int32_t>(8), DType::int32),
                         buffer_from(cpu(), std::vector<int32_t>{10, 11, 12, 13, 14, 15, 16, 17}, DType::int32)};
  p.run(buffers);
  EXPECT_EQ(values_of<int32_t>(*buffers[0]), (std::vector<int32_t>{12, -1, 23, 30, 0, 0, 26, 16}));
}

UOp scaled_by_chunk() {
  ProgramBuilder b;
  const UOp out = b.param(DType::float32, 1000, 0), n = b.var("n", 1000), scale = b.var("k", 9);
  const UOp r = b.range(n, AxisKind::thread);
  b.store(out, r, b.cast(b.alu(Op::MUL, {r, scale}), DType::float32));
  b.end(r);
  return b.linear();
}

TEST_P(CpuKernels, RunsChunksOfAThreadRange) {
  Program p(cpu(), scaled_by_chunk(), "chunks");
  ASSERT_EQ(p.info.variables, (std::vector<Symbol>{"k", "n"}));  // by name
  EXPECT_EQ(p.info.launch_dims(std::vector<int64_t>{3, 77}).chunks, 77);
  const BufferPtr buffers[] = {zeros(1000)};
  p.run(buffers, std::vector<int64_t>{3, 1000});
  EXPECT_EQ(values_of<float>(*buffers[0]), ramp(1000, 3));
  p.run(buffers, std::vector<int64_t>{5, 10});
  const auto got = values_of<float>(*buffers[0]);
  EXPECT_EQ(got[9], 45);
  EXPECT_EQ(got[10], 30);
  p.run(buffers, std::vector<int64_t>{9, 0});  // nothing to do
  EXPECT_EQ(values_of<float>(*buffers[0]), got);
}

TEST_P(CpuKernels, SkipsEmptyLoops) {
  ProgramBuilder b;
  const UOp out = b.param(DType::float32, 8, 0), n = b.var("n", 8);
  const UOp r = b.range(n);
  b.store(out, r, b.constant(DType::float32, 1));
  b.end(r);
  Program p(cpu(), b.linear(), "loop");
  const BufferPtr buffers[] = {zeros(8)};
  p.run(buffers, std::vector<int64_t>{0});
  EXPECT_EQ(values_of<float>(*buffers[0]), std::vector<float>(8));
  p.run(buffers, std::vector<int64_t>{3});
  EXPECT_EQ(values_of<float>(*buffers[0]), (std::vector<float>{1, 1, 1, 0, 0, 0, 0, 0}));
}

TEST(Cpu, AliasClassesAreInTheText) {
  ProgramBuilder b;
  const UOp out = b.param(DType::float32, 8, 0, 1), x = b.param(DType::float32, 8, 1, 2), zero = b.number(0);
  b.store(out, zero, b.load(x, zero, 8), 8);
  Program p(cpu(), b.linear(), "alias");
  EXPECT_NE(p.source.find("!alias.scope"), std::string::npos);
  const BufferPtr buffers[] = {zeros(8), floats(ramp(8))};
  p.run(buffers);
  EXPECT_EQ(values_of<float>(*buffers[0]), ramp(8));
}

TEST(Cpu, LlvmHearsOfSumsThatFitAndOfNoOthers) {
  ProgramBuilder b;
  const UOp out = b.param(DType::int64, 40, 0), x = b.param(DType::int64, 40, 1), row = b.range(4), column = b.range(10);
  const UOp at = b.alu(Op::ADD, {b.alu(Op::MUL, {row, b.number(10)}), column}), value = b.load(x, at);
  b.store(out, at, b.alu(Op::ADD, {value, b.alu(Op::MUL, {value, column})}));
  b.end(column);
  b.end(row);
  Context guard{{.dev = "CPU:LLVM"}};
  const std::string text = cpu().render(b.linear(), describe_kernel(b.linear(), "k"));
  EXPECT_NE(text.find("mul nsw i64 %r0, 10"), std::string::npos) << text;
  EXPECT_NE(text.find("= add nsw i64 %mul"), std::string::npos) << text;
  EXPECT_NE(text.find("= mul i64 %load"), std::string::npos) << text;
  EXPECT_NE(text.find("= add i64 %load"), std::string::npos) << text;
}

TEST_P(CpuKernels, BranchesOnIf) {
  ProgramBuilder b;
  const UOp out = b.param(DType::float32, 4, 0);
  const UOp r = b.range(4), odd = b.alu(Op::CMPEQ, {b.alu(Op::AND, {r, b.number(1)}), b.number(1)});
  const UOp block = b.add(UOp(Op::IF, DType::void_, {odd}));
  b.store(out, r, b.constant(DType::float32, 5));
  b.add(UOp(Op::ENDIF, DType::void_, {block}));
  b.end(r);
  Program p(cpu(), b.linear(), "if");
  const BufferPtr buffers[] = {zeros(4)};
  p.run(buffers);
  EXPECT_EQ(values_of<float>(*buffers[0]), (std::vector<float>{0, 5, 0, 5}));
}

TEST_P(CpuKernels, ChecksPromisedAlignment) {
  ProgramBuilder b;
  const UOp out = b.add(param(DType::float32, 8, ParamArg{.slot = 0, .align = 32, .alias = 0, .device = {}}));
  b.store(out, b.number(0), b.constant(DType::float32, 1));
  Program p(cpu(), b.linear(), "aligned");
  const BufferPtr whole = zeros(16), buffers[] = {whole->view(4, 8, DType::float32)};
  EXPECT_THROW(p.run(buffers), DeviceError);
}

/// In each chunk a panel of twice the input is written, and a second that has it backwards; the output is their sum.
UOp through_panels(int64_t n, int64_t chunks) {
  ProgramBuilder b;
  const UOp out = b.param(DType::float32, n * chunks, 0, 1), x = b.param(DType::float32, n, 1, 2), width = b.number(8);
  const UOp doubled = b.reg(DType::float32, n), backwards = b.reg(DType::float32, n), one = b.reg(DType::float32, 8);
  const UOp chunk = b.range(chunks, AxisKind::thread);
  const UOp i = b.range(n / 8), at = b.alu(Op::MUL, {i, width}), some = b.load(x, at, 8);
  b.store(one, b.number(0), some, 8);
  b.store(doubled, at, b.alu(Op::ADD, {b.load(one, b.number(0), 8), some}), 8);
  b.end(i);
  const UOp j = b.range(n);
  b.store(backwards, j, b.load(doubled, b.alu(Op::SUB, {b.number(n - 1), j})));
  b.end(j);
  const UOp k = b.range(n / 8), from = b.alu(Op::MUL, {k, width});
  const UOp to = b.alu(Op::ADD, {b.alu(Op::MUL, {chunk, b.number(n)}), from});
  b.store(out, to, b.alu(Op::ADD, {b.load(doubled, from, 8), b.load(backwards, from, 8)}), 8);
  b.end(k);
  b.end(chunk);
  return b.linear();
}

/// Joins when destroyed.
class SmallThread {
 public:
  explicit SmallThread(std::function<void()> work) : work_(std::move(work)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    const auto call = [](void* self) -> void* {
      static_cast<SmallThread*>(self)->work_();
      return nullptr;
    };
    EXPECT_EQ(pthread_create(&thread_, &attributes, call, this), 0);
    pthread_attr_destroy(&attributes);
  }
  ~SmallThread() { pthread_join(thread_, nullptr); }
  SmallThread(const SmallThread&) = delete;
  SmallThread& operator=(const SmallThread&) = delete;

 private:
  std::function<void()> work_;
  pthread_t thread_{};
};

TEST_P(CpuKernels, KeepLargePanelsOffTheStack) {
  for (const int64_t n : {512, 4096, 1 << 18}) {
    for (const int64_t chunks : {1, 16}) {
      Program p(cpu(), through_panels(n, chunks), "panels");
      EXPECT_EQ(p.info.scratch_bytes, n == 512 ? 0 : n == 4096 ? 32 << 10 : 2 << 20) << p.source;
      const BufferPtr x = floats(ramp(size_t(n)));
      std::vector<std::array<BufferPtr, 2>> buffers;
      for (int i = 0; i < 3; ++i) buffers.push_back({zeros(size_t(n * chunks)), x});
      {
        std::vector<std::unique_ptr<SmallThread>> threads;
        for (const auto& of_one : buffers) threads.push_back(std::make_unique<SmallThread>([&] { p.run(of_one); }));
      }
      const std::vector<float> expected(size_t(n * chunks), 2 * float(n - 1));
      for (const auto& of_one : buffers) EXPECT_EQ(values_of<float>(*of_one[0]), expected) << n << " in " << chunks;
    }
  }
}

TEST(Cpu, WithoutClangTheErrorSaysWhatToInstall) {
  Context guard{{.ccache = false, .clang_path = "no-such-clang", .dev = "CPU:CLANG"}};
  EXPECT_EQ(cpu().target().name(), "CPU:CLANG:" + std::string(cpu().target().arch.str()));
  try {
    cpu().compile("void f() {}");
    ADD_FAILURE() << "no error";
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("apt-get install clang"), std::string::npos) << e.what();
  }
  for (const DeviceStatus& d : available_devices()) {
    if (d.name == "CPU:CLANG") {
      EXPECT_FALSE(d.works);
    }
  }
}

TEST(Cpu, WhatClangRefusesIsACompileError) {
  Context guard{{.ccache = false, .dev = "CPU:CLANG"}};
  try {
    cpu().compile("void f() { nonsense; }");
    ADD_FAILURE() << "no error";
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("nonsense"), std::string::npos) << e.what();
  }
}

TEST(Cpu, CompilesForOtherProcessors) {
  // Linear programs for wider machines than this one are rendered and compiled, not run.
  for (const char* arch : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "znver4"}) {
    Context guard{{.dev = std::string("NULL:LLVM:") + arch}};
    Device& device = Device::get("NULL");
    EXPECT_EQ(device.target().arch, Symbol(arch));
    const std::string source = device.render(scaled_by_chunk(), describe_kernel(scaled_by_chunk(), "k"));
    EXPECT_FALSE(compiler::compile_llvmir(source, arch).empty());
  }
}

TEST(Cpu, OneChunkNeedsNoThreads) {
  const KernelInfo info = describe_kernel(scaled_by_chunk(), "k");
  const std::string object = cpu().compile(cpu().render(scaled_by_chunk(), info));
  const runtime::CpuCode code(std::as_bytes(std::span(object)), kernel_symbol("k"), 0);
  std::vector<float> out(1000);
  void* const buffers[] = {out.data()};
  int asked = 0;
  const auto pool = [&]() -> ComputePool& { return ++asked, compute_pool(); };
  code.run(buffers, std::vector<int64_t>{1, 1000}, 1, pool);
  EXPECT_EQ(asked, 0);
  code.run(buffers, std::vector<int64_t>{1, 1000}, 2, pool);
  EXPECT_EQ(asked, 1);
}

TEST_P(CpuKernels, Disassembles) {
  const KernelInfo info = describe_kernel(scaled_by_chunk(), "k");
  const std::string text = cpu().disassemble(cpu().compile(cpu().render(scaled_by_chunk(), info)));
  EXPECT_NE(text.find("ret"), std::string::npos) << text;
}

TEST(Null, RunsNothing) {
  Device& device = Device::get("NULL");
  Program p(device, scaled_by_chunk(), "chunks");
  const BufferPtr buffer = Buffer::make(device, 1000, DType::float32);
  const BufferPtr buffers[] = {buffer};
  p.run(buffers, std::vector<int64_t>{1, 1000});
  EXPECT_EQ(values_of<float>(*buffer), std::vector<float>(1000));
}

}  // namespace
}  // namespace tinygrad
