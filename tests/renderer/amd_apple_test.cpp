// What HIP and Metal look like, for people: tests/renderer/golden/ holds the texts of small kernels. After a change to code generation,
// TG_UPDATE_GOLDEN=1 writes them anew, and the difference is read. tests/program/ runs such texts on the CPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "kernel/describe_kernel.h"
#include "renderer/cstyle/cstyle.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

using namespace codegen::test;

void expect_golden(const std::string& name, const UOp& kernel, const Target& target, decltype(renderer::render_hip)* render) {
  const UOp linear = codegen::full_rewrite(kernel, target, {.noopt = true});
  const std::string text = render(target, linear, describe_kernel(linear, kernel.arg_as<KernelArg>().name.str()));
  const std::string path = TINYGRAD_DATA_DIR "/../tests/renderer/golden/" + name;
  if (std::getenv("TG_UPDATE_GOLDEN")) std::ofstream(path) << text;
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

void expect_hip(const std::string& name, const UOp& kernel, const char* arch = "gfx942") {
  expect_golden(name + ".hip", kernel, amd_target(arch), renderer::render_hip);
}
void expect_metal(const std::string& name, const UOp& kernel) {
  expect_golden(name + ".metal", kernel, metal_target(), renderer::render_metal);
}

UOp product(const Target& target, std::string_view core) {
  for (size_t i = 0; i < target.tensor_cores.size(); ++i) {
    const TensorCore& c = target.tensor_cores[i];
    if (c.name.str() != core) continue;
    return with_opts(narrow_matmul(c.m, c.n, 2 * c.k, c.a_type, c.b_type, c.out), {{OptOp::TC, 0, int32_t(i)}});
  }
  return {};
}

TEST(Hip, ItemsShareASum) { expect_hip("group_sum", row_sums(4, 256, {{OptOp::GROUP, 1, 64}})); }
TEST(Hip, Halves) { expect_hip("half", elementwise(64, {{OptOp::LANE, 0, 8}}, DType::float16)); }
TEST(Hip, MatrixCores) {
  expect_hip("mfma", product(amd_target("gfx90a"), "mfma_f32_16x16x16_bf16"), "gfx90a");
  expect_hip("mfma_fp8", product(amd_target("gfx942"), "mfma_f32_16x16x32_fp8"), "gfx942");
  expect_hip("wmma", product(amd_target("gfx1100"), "wmma_f32_16x16x16_f16"), "gfx1100");
}

TEST(Metal, ItemsShareASum) { expect_metal("group_sum", row_sums(4, 256, {{OptOp::GROUP, 1, 64}})); }
TEST(Metal, Vectors) { expect_metal("vectors", elementwise(64, {{OptOp::LANE, 0, 4}})); }
TEST(Metal, SimdgroupMatrices) { expect_metal("simdgroup", product(metal_target(), "simdgroup_8x8x8_f16_f32")); }
TEST(Metal, VariablesAreAnArray) {
  const UOp n = variable("n", 1, 64), i = range(cast(n, DType::index), RangeArg{.id = 0});
  expect_metal("variable", kernel({ended(write(arg(0, 64), i, read(arg(1, 64), i) * 2), {i})}));
}

}  // namespace
}  // namespace tinygrad
