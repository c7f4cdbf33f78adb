// What C looks like, for people: tests/renderer/golden/ holds the texts of small kernels. After a change to code generation,
// TG_UPDATE_GOLDEN=1 writes them anew, and the difference is read.
#include "renderer/cstyle/cstyle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "kernel/describe_kernel.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

using namespace codegen::test;

/// For a fixed machine, not for the one that the test runs on.
std::string render(const UOp& kernel) {
  Target target = cpu_target("x86-64-v3");
  target.renderer = "CLANG";
  const UOp linear = codegen::full_rewrite(kernel, target, {.noopt = true});
  return renderer::render_c(target, linear, describe_kernel(linear, kernel.arg_as<KernelArg>().name.str()));
}

void expect_golden(const std::string& name, const UOp& kernel) {
  const std::string path = TINYGRAD_DATA_DIR "/../tests/renderer/golden/" + name + ".c", text = render(kernel);
  if (std::getenv("TG_UPDATE_GOLDEN")) std::ofstream(path) << text;
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

Opt lane(int axis, int n) { return {OptOp::LANE, axis, n}; }

TEST(CStyle, Matmul) { expect_golden("matmul", matmul(8, 32, 10, {lane(1, 16), {OptOp::UPCAST, 0, 2}, {OptOp::THREAD, 0, 2}})); }
TEST(CStyle, Softmax) { expect_golden("softmax", softmax(4, 32, {lane(2, 8)})); }
TEST(CStyle, BFloat16IsComputedInFloat) { expect_golden("bfloat16", elementwise(64, {lane(0, 8)}, DType::bfloat16)); }

TEST(CStyle, GatherWithGate) {
  const UOp i = loop(16, 0), at = cast(read(arg(2, 16, DType::int32), i), DType::index);
  const UOp valid = logical_not(at < 0) & (at < 5);
  expect_golden("gather", kernel({ended(write(arg(0, 16), i, load(index_valid(arg(1, 5), at, valid))), {i})}));
}

TEST(CStyle, Halves) { expect_golden("half", row_sums(4, 64, {lane(1, 8)}, Op::MAX, DType::float16)); }

TEST(CStyle, ConstantsKeepEveryBit) {
  const auto times = [](float v) {
    const UOp i = loop(4, 0);
    return render(kernel({ended(write(arg(0, 4), i, read(arg(1, 4), i) * constant(Scalar::of(v))), {i})}));
  };
  for (const auto& [value, text] : std::initializer_list<std::pair<float, const char*>>{{0.1f, "0.1f"},
                                                                                        {1e-45f, "1e-45f"},
                                                                                        {3.4028235e38f, "3.4028235e+38f"},
                                                                                        {-0.0f, "-0.0f"},
                                                                                        {-INFINITY, "-INFINITY"},
                                                                                        {3, "3.0f"}}) {
    EXPECT_NE(times(value).find("in1[i] * " + std::string(text) + ";"), std::string::npos) << times(value);
  }
}

}  // namespace
}  // namespace tinygrad
