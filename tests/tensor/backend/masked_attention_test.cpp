// Attention whose rows are masked by what is around the softmax, which is one kernel with its sums.
#include <gtest/gtest.h>

#include <cmath>
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
  for (size_t i = 0; i < joined.size(); ++i)
    EXPECT_TRUE(joined[i] == apart[i] || std::fabs(joined[i] - apart[i]) < 1e-5 || (std::isnan(joined[i]) && std::isnan(apart[i])))
        << i << ": " << joined[i] << ", apart " << apart[i];
}

TEST(MaskedAttention, RowsThatAreTakenOutAreZeros) {
  const auto [scores, allowed, values] = parts();
  const Tensor softmax = allowed.where(scores, -infinity).softmax(-1), is_open = allowed.any(-1, {.keepdim = true, .dtype = {}});
  expect_same(is_open.where(softmax, 0), values);
  expect_same(is_open.logical_not().where(0, softmax), values);
  expect_same(is_open.where(softmax, 0), (Tensor({{0}, {0}, {0}, {1}, {0}, {0}}) != 0).where(infinity, values));
  EXPECT_EQ(is_open.where(softmax, 0).matmul(values)[0].tolist(), std::vector<float>(5, 0));
}

// As programs exported from PyTorch have it.
TEST(MaskedAttention, NaNOfRowsThatAreMaskedIsTakenForZero) {
  const auto [scores, allowed, values] = parts();
  const Tensor softmax = allowed.where(scores, -infinity).softmax(-1), probabilities = softmax.isnan().where(0, softmax);
  expect_same(probabilities, values);
  EXPECT_EQ(probabilities.matmul(values)[0].tolist(), std::vector<float>(5, 0));
  // Others stay.
  const Tensor hole = (Tensor({{0}, {0}, {0}, {1}, {0}, {0}}) != 0).where(std::nan(""), values);
  expect_same(probabilities, hole);
  // A number that stands for infinity, and NaN among the scores.
  for (const double in_row : {infinity, std::nan("")}) {
    const Tensor odd = (Tensor({{0}, {1}, {0}}) != 0).where(Tensor({0.0, in_row, 0.0, 0.0, 0.0, 0.0}), scores).softmax(-1);
    expect_same(odd.isnan().where(0, odd), values);
  }
}

TEST(MaskedAttention, SoftmaxInAWiderDtypeThanItsSum) {
  const auto [scores, allowed, values] = parts();
  const Tensor softmax = allowed.where(scores, -infinity).cast(DType::float64).softmax(-1).cast(DType::float32);
  expect_same(allowed.any(-1, {.keepdim = true, .dtype = {}}).where(softmax, 0), values);
}

}  // namespace
}  // namespace tinygrad
