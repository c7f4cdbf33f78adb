#include "search/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace tinygrad::search {
namespace {

KernelInfo one_output(DType dtype, int64_t n) {
  KernelInfo info;
  info.params = {{.slot = 0, .dtype = dtype, .size = n, .written = true}};
  return info;
}

template <class T>
void put(const TrialMemory& memory, std::vector<T> values) {
  const auto to = memory.result(memory.slots()[0]);
  ASSERT_EQ(to.size(), values.size() * sizeof(T));
  std::memcpy(to.data(), values.data(), to.size());
}

TEST(Accuracy, FloatsMayHaveTwiceTheErrorAndFourUlp) {
  const TrialMemory memory(one_output(DType::float32, 2), {}), exact(one_output(DType::float64, 2), {});
  put<float>(memory, {1 + 0x1p-20f, 1});  // an error of 8 ulp
  put<double>(exact, {1, 1});
  const Accuracy accuracy(memory, &exact);
  EXPECT_EQ(accuracy.complaint(memory), "");
  put<float>(memory, {1, 1 + 19 * 0x1p-23f});
  EXPECT_EQ(accuracy.complaint(memory), "");
  put<float>(memory, {1, 1 + 21 * 0x1p-23f});
  EXPECT_NE(accuracy.complaint(memory), "");
  put<float>(memory, {1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_NE(accuracy.complaint(memory), "");
}

TEST(Accuracy, AnErrorThatSaysNothingAllowsNothing) {
  const float inf = std::numeric_limits<float>::infinity();
  const TrialMemory memory(one_output(DType::float32, 3), {}), exact(one_output(DType::float64, 3), {});
  put<double>(exact, {1, 0, 1});
  for (const float wrong : {inf, 1.0f}) {  // an overflow on the way, a comparison that flips
    put<float>(memory, {1, wrong, 1});
    const Accuracy accuracy(memory, &exact);
    EXPECT_EQ(accuracy.complaint(memory), "");
    put<float>(memory, {0, 0, 0});
    EXPECT_NE(accuracy.complaint(memory), "");
  }
}

TEST(Accuracy, SmallValuesAreMeasuredByTheOthers) {
  const TrialMemory memory(one_output(DType::float32, 4), {});
  put<float>(memory, {1, 1, 1, 1e-6f});
  const Accuracy accuracy(memory, nullptr);
  put<float>(memory, {1, 1, 1, 1.2e-6f});
  EXPECT_EQ(accuracy.complaint(memory), "");
  put<float>(memory, {1, 1, 1, 2e-6f});
  EXPECT_NE(accuracy.complaint(memory), "");
}

TEST(Accuracy, IntegersAreTheSame) {
  const TrialMemory memory(one_output(DType::int32, 2), {});
  put<int32_t>(memory, {5, 7});
  const Accuracy accuracy(memory, nullptr);
  EXPECT_EQ(accuracy.complaint(memory), "");
  put<int32_t>(memory, {5, 8});
  EXPECT_NE(accuracy.complaint(memory), "");
}

TEST(Accuracy, NaNAndInfinityAreValuesToo) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const TrialMemory memory(one_output(DType::float32, 3), {});
  put<float>(memory, {inf, nan, 1});
  const Accuracy accuracy(memory, nullptr);
  put<float>(memory, {inf, -nan, 1});
  EXPECT_EQ(accuracy.complaint(memory), "");
  put<float>(memory, {-inf, nan, 1});
  EXPECT_NE(accuracy.complaint(memory), "");
  put<float>(memory, {inf, 1, 1});
  EXPECT_NE(accuracy.complaint(memory), "");
}

}  // namespace
}  // namespace tinygrad::search
