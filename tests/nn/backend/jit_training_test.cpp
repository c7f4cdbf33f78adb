// A jitted training step.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

struct Net : nn::Module {
  nn::Linear l1{4, 8, {.bias = false}}, l2{8, 3};
  nn::BatchNorm norm{8};
  Tensor operator()(const Tensor& x) const { return l2(norm(l1(x)).relu().dropout(0.3)); }
  TG_FIELDS(l1, norm, l2)
};

/// Losses of some steps, the last gradient, and all tensors of the network after them.
std::vector<Floats> train(bool jitted) {
  Tensor::manual_seed(3);
  Net net;
  nn::optim::Adam optimizer(nn::state::get_parameters(net), {.lr = 0.01});
  const auto function = [&](const Tensor& x, const Tensor& y) {
    const Context training{{.training = true}};
    optimizer.zero_grad();
    const Tensor loss = net(x).sparse_categorical_crossentropy(y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  const auto step = jit(function);
  std::vector<Floats> out;
  for (int i = 0; i < 6; ++i) {
    const Tensor x = Tensor::randn({5, 4}), y = Tensor::randint({5}, 0, 3);
    optimizer.lr.assign(Tensor({0.01 / (i + 1)}));
    out.push_back((jitted ? step(x, y) : function(x, y)).tolist());
  }
  EXPECT_EQ(step.captured(), jitted);
  out.push_back(net.l1.weight.grad().tolist());
  for (const auto& [name, t] : nn::state::get_state_dict(net)) out.push_back(t.tolist());
  for (const auto& [name, t] : nn::state::get_state_dict(optimizer)) out.push_back(t.tolist());
  return out;
}

class JitTraining : public test::EveryDevice {};
INSTANTIATE_TEST_SUITE_P(All, JitTraining, testing::ValuesIn(test::tensor_devices()), test::device_test_name);

TEST_P(JitTraining, AStepDoesWhatItDoesWithoutJit) {
  const auto jitted = train(true), plain = train(false);
  ASSERT_EQ(jitted.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    ASSERT_EQ(jitted[i].size(), plain[i].size());
    for (size_t k = 0; k < plain[i].size(); ++k) EXPECT_NEAR(jitted[i][k], plain[i][k], 1e-5) << i;  // fused in other ways
  }
}

}  // namespace
}  // namespace tinygrad
