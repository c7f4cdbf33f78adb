#include "search/exact_kernel.h"

#include <gtest/gtest.h>

#include "codegen/kernels.h"
#include "spec/evaluate.h"
#include "spec/verify.h"
#include "uop/graph.h"

namespace tinygrad::search {
namespace {

using namespace codegen::test;

spec::Array numbers(DType dtype, size_t n) {
  std::vector<double> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = double(int(i * 37 % 101) - 50) / 32;  // exact in every float
  return spec::Array::of(dtype, values);
}

// The evaluator's exact values are those of the float64 kernel.
void expect_exact(const UOp& kernel, DType dtype, size_t out, std::vector<size_t> in) {
  const std::optional<UOp> exact = exact_kernel(kernel);
  ASSERT_TRUE(exact);
  spec::verify_kernel(*exact);
  spec::EvalInputs a, b;
  a.params[0] = spec::Array::of(dtype, std::vector<double>(out));
  b.params[0] = spec::Array::of(DType::float64, std::vector<double>(out));
  for (size_t i = 0; i < in.size(); ++i) {
    a.params[int32_t(i + 1)] = numbers(dtype, in[i]);
    b.params[int32_t(i + 1)] = numbers(DType::float64, in[i]);
  }
  spec::evaluate(std::span(&kernel, 1), a, {.exact = true});
  spec::evaluate(std::span(&*exact, 1), b);
  const auto want = a.params[0].as<double>(), got = b.params[0].as<double>();
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < out; ++i) EXPECT_DOUBLE_EQ(want[i], got[i]) << i;
}

TEST(ExactKernel, IsTheEvaluatorsExactValue) {
  expect_exact(matmul(5, 6, 7), DType::float32, 30, {35, 42});
  expect_exact(softmax(3, 5), DType::float32, 15, {15});
  expect_exact(elementwise(9, {}, DType::float16), DType::float16, 9, {9, 9});
}

TEST(ExactKernel, NoneWhereBitsAreLookedAtOrAllIsExact) {
  const UOp i = loop(4, 0);
  const UOp bits = kernel({ended(write(arg(0, 4, DType::int32), i, bitcast(read(arg(1, 4), i), DType::int32)), {i})});
  EXPECT_FALSE(exact_kernel(bits));
  EXPECT_FALSE(exact_kernel(elementwise(4, {}, DType::int32)));
  EXPECT_FALSE(exact_kernel(elementwise(4, {}, DType::float64)));
}

}  // namespace
}  // namespace tinygrad::search
