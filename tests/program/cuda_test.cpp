// Rendered CUDA C runs on the CPU, a thread for each item, beside the evaluator. What is assembly in it, narrow floats, tensor cores and
// asynchronous copies, is only compiled (tests/corpus/); the same kernels as PTX are run in tests/runtime/backend/.
#include <gtest/gtest.h>

#include "compiler/clang/clang.h"
#include "kernel/describe_kernel.h"
#include "program/cpu_items.h"
#include "renderer/cstyle/cstyle.h"

namespace tinygrad::codegen {
namespace {

Target without_assembly() {
  Target t = cuda_target("sm_80");
  t.async_copy_bytes = 0;
  return t;
}

std::map<int32_t, spec::Array> run_cuda(const UOp& linear, const spec::EvalInputs& inputs) {
  const KernelInfo info = describe_kernel(linear, "k");
  std::string variables;
  for (size_t i = 0; i < info.variables.size(); ++i) variables += fmt::format(", variables[{}]", i);
  const std::string text = renderer::render_cuda(cuda_target("sm_80"), linear, info) +
                           fmt::format(
                               "extern \"C\" void run_item(const Items* all, void* const* buffers, const long* variables) {{\n"
                               "  items = all;\n  {}({}{});\n}}\n",
                               kernel_symbol("k"), test::buffer_arguments(info), variables);
  const test::CpuItems code(text, {"-include", TINYGRAD_DATA_DIR "/../tests/renderer/cuda_shim/cuda_items.h"});
  return test::run_cpu_items(code, info, inputs, 32);
}

TEST(CudaC, KernelsGiveTheSame) {
  if (const std::string missing = compiler::clang_missing(); !missing.empty()) GTEST_SKIP() << missing;
  std::vector<test::GpuCase> cases = test::gpu_cases();
  cases.push_back({"doubles", test::elementwise(64, {}, DType::float64), "LOCAL(0,8)"});
  for (const test::GpuCase& c : cases) {
    SCOPED_TRACE(c.name + ": " + c.opts);
    EXPECT_EQ(test::difference_on(c.kernel, parse_opts(c.opts), without_assembly(), run_cuda), "");
  }
}

TEST(CudaC, LoopsThatAreTooLongForTheGridGiveTheSame) {
  if (const std::string missing = compiler::clang_missing(); !missing.empty()) GTEST_SKIP() << missing;
  Target small = cuda_target("sm_80");
  for (int64_t& n : small.max_global) n = 10;
  for (const UOp& kernel : {test::elementwise(97), test::transpose(13, 11), test::symbolic_row_sums(23, 12)})
    EXPECT_EQ(test::difference_on(kernel, {}, small, run_cuda), "");
}

}  // namespace
}  // namespace tinygrad::codegen
