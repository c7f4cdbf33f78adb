// Rendered Metal runs on the CPU, a thread for each item, through a small metal_stdlib, beside the evaluator and the interpreted device.
#include <gtest/gtest.h>

#include "compiler/clang/clang.h"
#include "kernel/describe_kernel.h"
#include "program/cpu_items.h"
#include "renderer/cstyle/cstyle.h"

namespace tinygrad::codegen {
namespace {

constexpr int64_t simdgroup = 32;

std::map<int32_t, spec::Array> run_metal(const UOp& linear, const spec::EvalInputs& inputs) {
  const KernelInfo info = describe_kernel(linear, "k");
  const std::string text =
      renderer::render_metal(metal_target(), linear, info) +
      fmt::format(
          "extern \"C\" void run_item(const Items* all, void* const* buffers, const long* variables) {{\n"
          "  items = all;\n"
          "  const uint3 group{{all->group[0], all->group[1], all->group[2]}}, item{{all->item[0], all->item[1], all->item[2]}};\n"
          "  {}({}{}, group, item);\n}}\n",
          kernel_symbol("k"), test::buffer_arguments(info), info.variables.empty() ? "" : ", variables");
  const test::CpuItems code(text, {"-I", TINYGRAD_DATA_DIR "/../tests/renderer/metal_shim"});
  return test::run_cpu_items(code, info, inputs, simdgroup);
}

void expect_right(const test::GpuCase& c, double bound = 1e-5) {
  SCOPED_TRACE(c.name + ": " + c.opts);
  EXPECT_EQ(test::difference_on(c.kernel, parse_opts(c.opts), metal_target(), run_metal, bound), "");
}

TEST(Metal, KernelsGiveTheSame) {
  for (const test::GpuCase& c : test::gpu_cases()) expect_right(c);
  expect_right({"half", test::elementwise(64, {}, DType::float16), "LANE(0,8)"});
  expect_right({"bfloat16", test::elementwise(64, {}, DType::bfloat16), "LANE(0,4)"});
}

TEST(Metal, SimdgroupMatricesGiveTheSame) {
  const Target metal = metal_target();
  for (size_t i = 0; i < metal.tensor_cores.size(); ++i) {
    const TensorCore& core = metal.tensor_cores[i];
    const UOp product = test::narrow_matmul(16, 24, 16, core.a_type, core.b_type, core.out),
              odd = test::narrow_matmul(9, 11, 13, core.a_type, core.b_type, core.out);
    const std::string name(core.name.str()), tc = fmt::format("TC(0,{})", i), tiles = tc + " UPCAST(0,2) LOCAL(1,3)",
                                             staged = tc + " LOCAL(0,2) STAGE(2,1,group,1) STAGE(2,2,group,1)";
    const double bound = core.out == DType::float16 ? 2e-2 : 1e-5;
    for (const std::string& opts : {tc, tiles, staged}) expect_right({name, product, opts}, bound);
    expect_right({name, odd, tc}, bound);
  }
}

}  // namespace
}  // namespace tinygrad::codegen
