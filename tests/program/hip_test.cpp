// Rendered HIP runs on the CPU, a thread for each item, with AMD's builtins as functions, beside the evaluator.
#include <gtest/gtest.h>

#include "kernel/describe_kernel.h"
#include "program/cpu_items.h"
#include "renderer/cstyle/cstyle.h"

namespace tinygrad::codegen {
namespace {

/// Memory of a group is that of all threads.
std::string with_shared_memory(std::string text) {
  constexpr std::string_view ours = "__attribute__((shared, ", theirs = "static __attribute__((";
  for (size_t at = text.find(ours); at != text.npos; at = text.find(ours, at)) text.replace(at, ours.size(), theirs);
  return text;
}

std::map<int32_t, spec::Array> run_hip(const Target& target, const UOp& linear, const spec::EvalInputs& inputs) {
  const KernelInfo info = describe_kernel(linear, "k");
  std::string arguments = test::buffer_arguments(info);
  for (size_t i = 0; i < info.variables.size(); ++i) arguments += fmt::format(", variables[{}]", i);
  const std::string text = with_shared_memory(renderer::render_hip(target, linear, info)) +
                           fmt::format(
                               "extern \"C\" void run_item(const Items* all, void* const* buffers, const long* variables) {{\n"
                               "  items = all;\n  {}({});\n}}\n",
                               kernel_symbol("k"), arguments);
  const test::CpuItems code(text, {"-include", TINYGRAD_DATA_DIR "/../tests/renderer/hip_shim/hip.h"});
  return test::run_cpu_items(code, info, inputs, target.arch.str().starts_with("gfx9") ? 64 : 32);
}

void expect_right(const std::string& name, const UOp& kernel, const std::string& opts, const Target& target, double bound = 1e-5) {
  SCOPED_TRACE(fmt::format("{} on {}: {}", name, target.name(), opts));
  const auto run = [&](const UOp& linear, const spec::EvalInputs& inputs) { return run_hip(target, linear, inputs); };
  EXPECT_EQ(test::difference_on(kernel, parse_opts(opts), target, run, bound), "");
}

TEST(HipOnCpu, KernelsGiveTheSame) {
  const Target target = amd_target("gfx942");
  for (const test::GpuCase& c : test::gpu_cases()) expect_right(c.name, c.kernel, c.opts, target);
  for (const DType d : {DType::float16, DType::bfloat16, DType::fp8e4m3, DType::float64})
    expect_right(std::string(repr(d)), test::elementwise(64, {}, d), "LANE(0,4)", target);
}

TEST(HipOnCpu, LoopsThatAreTooLongForTheGridGiveTheSame) {
  Target small = amd_target("gfx942");
  for (int64_t& n : small.max_global) n = 10;
  expect_right("elementwise", test::elementwise(97), "", small);
  expect_right("transpose", test::transpose(13, 11), "", small);
  expect_right("symbolic row sums", test::symbolic_row_sums(23, 12), "", small);
}

TEST(HipOnCpu, EveryTensorCoreGivesTheSame) {
  for (const char* arch : {"gfx90a", "gfx942", "gfx1100", "gfx1201"}) {
    const Target target = amd_target(arch);
    for (size_t i = 0; i < target.tensor_cores.size(); ++i) {
      const TensorCore& core = target.tensor_cores[i];
      const UOp product = test::narrow_matmul(core.m, core.n + 3, 2 * core.k, core.a_type, core.b_type, core.out);
      expect_right(std::string(core.name.str()), product, fmt::format("TC(0,{})", i), target, core.out == DType::float16 ? 2e-2 : 1e-5);
    }
  }
}

/// Of all 256 bytes, MI300's matrix cores see what OCP's stand for.
TEST(HipOnCpu, BytesOfMi300AreOcps) {
  const Target target = amd_target("gfx942");
  const UOp kernel = test::narrow_matmul(16, 16, 32, DType::fp8e4m3, DType::fp8e4m3, DType::float32);
  const auto at = std::ranges::find(target.tensor_cores, Symbol("mfma_f32_16x16x32_fp8"), &TensorCore::name) - target.tensor_cores.begin();
  const UOp linear = full_rewrite(test::with_opts(kernel, {{OptOp::TC, 0, int32_t(at)}}), target, {.noopt = true});
  spec::EvalInputs inputs = test::some_inputs(kernel);
  // A row of a for 32 bytes in turn, times the identity in 16 columns.
  for (int half = 0; half < 2; ++half) {
    auto &a = inputs.params.at(1).bytes, &b = inputs.params.at(2).bytes;
    for (size_t i = 0; i < 256; ++i)
      a[i / 16 * 32 + i % 16 + size_t(half) * 16] = std::byte(i), a[i / 16 * 32 + i % 16 + size_t(1 - half) * 16] = std::byte(0);
    for (size_t k = 0; k < 32; ++k)
      for (size_t n = 0; n < 16; ++n) b[k * 16 + n] = std::byte(k % 16 == n ? 0x38 : 0);  // 1
    const spec::Array out = run_hip(target, linear, inputs).at(0);
    for (size_t i = 0; i < 256; ++i) {
      const double want = Scalar::from_storage_bits(i, DType::fp8e4m3).as_double(), got = out[i].as_double();
      const bool row_has_nan = i / 16 == 7 || i / 16 == 15;  // NaN times 0
      EXPECT_TRUE(row_has_nan ? got != got : got == want) << i << ": " << got << " for " << want;
    }
  }
}

}  // namespace
}  // namespace tinygrad::codegen
