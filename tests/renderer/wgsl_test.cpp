// What WGSL looks like, for people: tests/renderer/golden/ holds the texts of small kernels. After a change to code generation,
// TG_UPDATE_GOLDEN=1 writes them anew, and the difference is read.
#include "renderer/wgsl/wgsl.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include <tinygrad/errors.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "kernel/describe_kernel.h"
#include "target/webgpu.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

using namespace codegen::test;
using codegen::parse_opts;

std::string render(const UOp& kernel, const WebGpuLimits& limits = {.has_float16 = true}) {
  const Target target = webgpu_target(limits);
  const UOp linear = codegen::full_rewrite(kernel, target, {.noopt = true});
  return renderer::render_wgsl(target, linear, describe_kernel(linear, kernel.arg_as<KernelArg>().name.str()));
}

void expect_golden(const std::string& name, const UOp& kernel) {
  const std::string path = TINYGRAD_DATA_DIR "/../tests/renderer/golden/" + name + ".wgsl", text = render(kernel);
  if (std::getenv("TG_UPDATE_GOLDEN")) std::ofstream(path) << text;
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

void expect_text(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

TEST(Wgsl, MatmulWithTiles) {
  expect_golden("matmul", matmul(16, 16, 16, parse_opts("LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1) STAGE(2,2,group,1)")));
}
TEST(Wgsl, SoftmaxInGroups) { expect_golden("softmax", softmax(4, 32, parse_opts("GROUP(2,8)"))); }
TEST(Wgsl, BytesInWords) { expect_golden("bytes", elementwise(64, {}, DType::uint8)); }
TEST(Wgsl, LanesAreScalars) { expect_golden("lanes", elementwise(64, parse_opts("LANE(0,4)"))); }

TEST(Wgsl, VariablesAreUniforms) {
  const UOp n = variable("sz", 1, 40), i = range(n, RangeArg{.id = 0, .kind = AxisKind::loop});
  const UOp k = kernel({ended(write(arg(0, 40), i, read(arg(1, 40), i) + cast(n, DType::float32)), {i})});
  expect_text(render(k), {"struct Variables {\n  v_sz: i32,", "@binding(2) var<uniform> variables: Variables;", "variables.v_sz"});
}

TEST(Wgsl, HalvesNeedTheFeature) {
  EXPECT_TRUE(render(elementwise(8, {}, DType::float16)).starts_with("enable f16;\n"));
  const std::string emulated = render(elementwise(8, {}, DType::float16), {});
  EXPECT_EQ(emulated.find("f16"), std::string::npos) << emulated;
  expect_text(emulated, {"array<atomic<u32>>"});
}

/// The language refuses constants that are not finite.
TEST(Wgsl, InfinitiesAndNaNAreMadeAtRunTime) {
  const auto plus = [](double v) {
    const UOp i = loop(4, 0);
    return render(kernel({ended(write(arg(0, 4), i, alu(Op::MAX, {read(arg(1, 4), i), constant(DType::float32, v)})), {i})}));
  };
  expect_text(plus(std::numeric_limits<double>::infinity()), {"infinity()"});
  expect_text(plus(-std::numeric_limits<double>::infinity()), {"-infinity()"});
  expect_text(plus(std::nan("")), {"not_a_number()"});
  expect_text(plus(-0.0), {"-0.0f", "maximum_f32("});
  expect_text(plus(0), {"at_least_f32("});
}

TEST(Wgsl, WhatItHasNotIsACompileError) { EXPECT_THROW(render(elementwise(8, {}, DType::float64)), CompileError); }

}  // namespace
}  // namespace tinygrad
