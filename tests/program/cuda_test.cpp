// Rendered CUDA C runs on the CPU, a thread for each item, beside the evaluator. What is assembly in it, narrow floats, tensor cores and
// asynchronous copies, is only compiled (tests/corpus/); the same kernels as PTX are run in tests/runtime/backend/.
#include <gtest/gtest.h>

#include "compiler/clang/clang.h"
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

struct Case {
  const char* name;
  UOp kernel;
  const char* opts = "";
};

TEST(CudaC, KernelsGiveTheSame) {
  if (const std::string missing = compiler::clang_missing(); !missing.empty()) GTEST_SKIP() << missing;
  const UOp matmul = test::matmul(16, 32, 16), odd = test::matmul(10, 12, 9);
  for (const Case& c :
       {Case{"elementwise", test::elementwise(64)},
        {"elementwise", test::elementwise(64), "LANE(0,4) LOCAL(0,8)"},
        {"row sums", test::row_sums(5, 64), "GROUP(1,16)"},
        {"row maxima", test::row_sums(5, 64, {}, Op::MAX), "LANE(1,4) UNROLL(1,2)"},
        {"matmul", odd, "LOCAL(0,3) LOCAL(1,7) UPCAST(0,2) UNROLL(2,4)"},
        {"matmul", matmul, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
        {"matmul", matmul, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
        {"matmul", matmul, "UPCAST(0,4) UPCAST(1,4) LOCAL(0,2) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
        {"matmul", matmul, "GROUP(2,4) LOCAL(0,2) LOCAL(1,2)"},
        {"softmax", test::softmax(6, 37), "GROUP(2,8)"},
        {"argmax", test::argmax(5, 50), "GROUP(1,16)"},
        {"symbolic row sums", test::symbolic_row_sums(9, 40), "LOCAL(0,4) GROUP(1,8)"},
        {"gather", test::gather(16, 5), "LOCAL(0,5)"},
        {"padded", test::padded(8, 1, 2), "LOCAL(0,4)"},
        {"transpose", test::transpose(30, 17), "LOCAL(0,8) LOCAL(1,8) STAGE(1,1,group,1)"},
        {"convolution", test::convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4)"},
        {"doubles", test::elementwise(64, {}, DType::float64), "LOCAL(0,8)"},
        {"bytes", test::elementwise(64, {}, DType::int8), "LANE(0,16)"},
        {"longs", test::elementwise(64, {}, DType::uint64), "LANE(0,2)"},
        {"bools", test::elementwise(64, {}, DType::bool_), "LANE(0,4)"}}) {
    SCOPED_TRACE(std::string(c.name) + ": " + c.opts);
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
