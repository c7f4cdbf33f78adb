// Attention whose rows are masked by what is around the softmax, which is one kernel with its sums.
#include <gtest/gtest.h>

#include <limits>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Parts {
  Tensor scores, allowed, values;
};
Parts parts() {
  const Tensor q = Tensor::rand({3, 8}).realize(), k = Tensor::rand({6, 8}).realize(), v = Tensor::rand({6, 5}).realize();
  const Tensor allowed = (Tensor({{0, 0, 0, 0, 0, 0}, {1, 1, 0, 1, 0, 1}, {0, 0, 1, 1, 1, 1}}) != 0).contiguous().realize();
  return {q.matmul(k.T()), allowed, v};
}

void expect_same(const Tensor& probabilities, const Tensor& values) {
  const std::vector<float> joined = probabilities.matmul(values).tolist(), apart = probabilities.contiguous().matmul(values).tolist();
  for (size_t i = 0; i < joined.size(); ++i) EXPECT_NEAR(joined[i], apart[i], 1e-5) << i;
}

TEST(MaskedAttention, RowsThatAreTakenOutAreZeros) {
  const auto [scores, allowed, values] = parts();
  const Tensor softmax = allowed.where(scores, -infinity).softmax(-1), is_open = allowed.any(-1, {.keepdim = true, .dtype = {}});
  expect_same(is_open.where(softmax, 0), values);
  expect_same(is_open.logical_not().where(0, softmax), values);
  EXPECT_EQ(is_open.where(softmax, 0).matmul(values)[0].tolist(), std::vector<float>(5, 0));
}

TEST(MaskedAttention, SoftmaxInAWiderDtypeThanItsSum) {
  const auto [scores, allowed, values] = parts();
  const Tensor softmax = allowed.where(scores, -infinity).cast(DType::float64).softmax(-1).cast(DType::float32);
  expect_same(allowed.any(-1, {.keepdim = true, .dtype = {}}).where(softmax, 0), values);
}

}  // namespace
}  // namespace tinygrad
