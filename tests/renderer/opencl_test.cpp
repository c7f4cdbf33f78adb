// What OpenCL C looks like, for people: tests/renderer/golden/ holds the texts of small kernels. After a change to code generation,
// TG_UPDATE_GOLDEN=1 writes them anew, and the difference is read. tests/runtime/backend/ runs such kernels.
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

std::string render(const UOp& kernel, const OpenClLimits& limits = {}) {
  const Target target = opencl_target(limits);
  const UOp linear = codegen::full_rewrite(kernel, target, {.noopt = true, .spec = 3});
  return renderer::render_opencl(target, linear, describe_kernel(linear, kernel.arg_as<KernelArg>().name.str()));
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = TINYGRAD_DATA_DIR "/../tests/renderer/golden/" + name + ".cl";
  if (std::getenv("TG_UPDATE_GOLDEN")) std::ofstream(path) << text;
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Opt local(int axis, int n) { return {OptOp::LOCAL, axis, n}; }
Opt upcast(int axis, int n) { return {OptOp::UPCAST, axis, n}; }
Opt lane(int axis, int n) { return {OptOp::LANE, axis, n}; }

TEST(OpenCl, Matmul) { expect_golden("matmul", render(matmul(8, 32, 12, {local(1, 16), upcast(0, 2)}))); }
TEST(OpenCl, ItemsShareASum) { expect_golden("group_sum", render(row_sums(4, 256, {{OptOp::GROUP, 1, 16}}))); }
TEST(OpenCl, Softmax) { expect_golden("softmax", render(softmax(4, 32, {local(0, 4)}))); }
TEST(OpenCl, TilesOfOperands) {
  expect_golden(
      "tiles",
      render(matmul(32, 32, 32, {local(0, 8), local(1, 8), {OptOp::UNROLL, 2, 4}, {OptOp::STAGE, 2, StageOpt{1, Scope::group, 1}.arg()}})));
}

TEST(OpenCl, VectorsAreLoadedAndStoredButComputedInScalars) {
  const std::string text = render(elementwise(64, {lane(0, 4)}));
  expect_golden("vectors", text);
  EXPECT_FALSE(has(text, "* (float4)")) << text;
}

TEST(OpenCl, VariablesAreArguments) {
  const UOp n = variable("n", 1, 64), i = range(cast(n, DType::index), RangeArg{.id = 0});
  expect_golden("variable", render(kernel({ended(write(arg(0, 64), i, read(arg(1, 64), i) * 2), {i})})));
}

TEST(OpenCl, SumsThatMayOverflowWrapAround) {
  const UOp i = loop(16, 0), x = read(arg(1, 16, DType::int32), i);
  const std::string text = render(kernel({ended(write(arg(0, 16, DType::int32), i, x * x + 7), {i})}));
  EXPECT_TRUE(has(text, "(int)((uint)")) << text;
  EXPECT_FALSE(has(render(elementwise(1024)), "uint")) << "indices are known not to overflow";
}

TEST(OpenCl, HalvesWithoutArithmeticAreConvertedByTheDriver) {
  const std::string text = render(elementwise(16, {}, DType::float16));
  expect_golden("stored_halves", text);
  EXPECT_TRUE(has(text, "vload_half") && has(text, "vstore_half_rte")) << text;
  EXPECT_FALSE(has(render(elementwise(16, {}, DType::float16), {.has_half = true}), "vload_half"));
}

TEST(OpenCl, PragmasOnlyWhereTheyAreNeeded) {
  EXPECT_FALSE(has(render(elementwise(16)), "#pragma"));
  EXPECT_TRUE(has(render(elementwise(16, {}, DType::float64), {.has_double = true}), "cl_khr_fp64"));
  EXPECT_TRUE(has(render(elementwise(16, {}, DType::float16), {.has_half = true}), "cl_khr_fp16"));
  EXPECT_FALSE(has(render(elementwise(16, {}, DType::float16)), "#pragma"));
}

}  // namespace
}  // namespace tinygrad
