// Training for long: memory and nodes stay what they are after a tenth of the steps. 500 steps, 10,000 with TG_TEST_SCALE=20.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include <tinygrad/tinygrad.h>

#include "support/test_scale.h"
#include "uop/uop.h"

namespace tinygrad {
namespace {

/// As `tg train digits` has it.
struct DigitsNet : nn::Module {
  nn::Conv2d conv1{1, 16, 3, {.padding = {1}, .bias = false}}, conv2{16, 32, 3, {.padding = {1}, .bias = false}};
  nn::BatchNorm norm1{16}, norm2{32};
  nn::Linear out{32 * 4 * 4, 10};

  Tensor operator()(const Tensor& pixels) const {
    const Tensor x = norm1(conv1(pixels)).relu();
    return out(norm2(conv2(x)).relu().max_pool2d().flatten(1).dropout(0.3));
  }
  TG_FIELDS(conv1, norm1, conv2, norm2, out)
};

/// What the process holds.
struct Usage {
  size_t nodes;
  int64_t buffer_bytes, resident_kb;

  static Usage now() {
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word && word != "VmRSS:") {}
    int64_t kb = 0;
    status >> kb;
    return {live_node_count(), GlobalCounters::mem_used, kb};
  }
};

/// After a tenth of the steps and after all.
std::pair<Usage, Usage> train(bool jitted, int64_t batch, int steps) {
  Tensor::manual_seed(3);
  const DigitsNet net;
  nn::optim::Adam optimizer(nn::state::get_parameters(net));
  const auto function = [&](const Tensor& x, const Tensor& y) {
    const Context training{{.training = true}};
    optimizer.zero_grad();
    const Tensor loss = net(x).sparse_categorical_crossentropy(y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  const auto step = jit(function);
  Usage early{};
  for (int i = 0; i < steps; ++i) {
    if (i == steps / 10) early = Usage::now();
    const Tensor x = Tensor::rand({batch, 1, 8, 8}).realize(), y = Tensor::randint({batch}, 0, 10).realize();
    const float loss = (jitted ? step(x, y) : function(x, y)).item<float>();
    EXPECT_TRUE(std::isfinite(loss)) << i;
  }
  return {early, Usage::now()};
}

class LongTraining : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(All, LongTraining, testing::Bool(), [](const auto& p) { return p.param ? "jitted" : "eager"; });

TEST_P(LongTraining, KeepsNoMoreThanItDidAfterATenthOfTheSteps) {
  const int scale = test::test_scale();
  const auto [early, late] = train(GetParam(), scale > 1 ? 64 : 8, 500 * scale);
  std::printf("nodes %zu, %zu; buffers %lld, %lld bytes; resident %lld, %lld kB\n", early.nodes, late.nodes, (long long)early.buffer_bytes,
              (long long)late.buffer_bytes, (long long)early.resident_kb, (long long)late.resident_kb);
  EXPECT_LE(double(late.nodes), double(early.nodes) * 1.01);
  EXPECT_LE(double(late.buffer_bytes), double(early.buffer_bytes) * 1.01);
  if (scale > 1) {  // sanitizers, which keep what was freed, run the short form
    EXPECT_LE(double(late.resident_kb), double(early.resident_kb) * 1.01);
  }
}

}  // namespace
}  // namespace tinygrad
