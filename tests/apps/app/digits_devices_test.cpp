// The digits demo's network on every device that runs here: the same training as on the interpreted device, step by step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <tinygrad/tinygrad.h>

#include "digits/data.h"

namespace tinygrad::apps {
namespace {

/// As `tg train digits` has it, on pictures of 8x8.
struct Net : nn::Module {
  nn::Conv2d conv1{1, 16, 3, {.padding = {1}, .bias = false}}, conv2{16, 32, 3, {.padding = {1}, .bias = false}};
  nn::BatchNorm norm1{16}, norm2{32};
  nn::Linear out{32 * 4 * 4, 10};

  Tensor operator()(const Tensor& pixels) const {
    const Tensor x = norm1(conv1(pixels.to_float() / 16)).relu();
    return out(norm2(conv2(x)).relu().max_pool2d().flatten(1).dropout(0.3));
  }
  TG_FIELDS(conv1, norm1, conv2, norm2, out)
};

/// The loss of 20 steps of batch 16.
std::vector<float> losses_on(const std::string& device) {
  constexpr int64_t batch = 16, steps = 20;
  const Context on_device{{.dev = device}};
  Tensor::manual_seed(5);
  const ImageSet digits = load_digits(TINYGRAD_DATA_DIR "/digits.csv.gz");
  const Tensor pixels = Tensor(digits.pixels, {digits.size(), 1, 8, 8}), labels(digits.labels);
  const Net net;
  nn::optim::Adam optimizer(nn::state::get_parameters(net), {.lr = 1e-3});
  const auto step = jit([&](const Tensor& x, const Tensor& y) {
    const Context training{{.training = true}};
    optimizer.zero_grad();
    const Tensor loss = net(x).sparse_categorical_crossentropy(y);
    loss.backward();
    optimizer.step();
    return loss;
  });
  std::vector<float> losses;
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t begin = i * batch, end = begin + batch;
    losses.push_back(step(pixels.shrink({{begin, end}, {0, 1}, {0, 8}, {0, 8}}).contiguous().realize(),
                          labels.shrink({{begin, end}}).contiguous().realize())
                         .item<float>());
  }
  return losses;
}

const std::vector<float>& interpreted() {
  static const std::vector<float> losses = losses_on("INTERP");
  return losses;
}

class DigitsOn : public testing::TestWithParam<std::string> {};

TEST_P(DigitsOn, TrainsAsInterpreted) {
  const std::vector<float> losses = losses_on(GetParam());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], interpreted()[i], 1e-4) << "step " << i;
  EXPECT_LT(losses.back(), 0.9f * losses.front());
}

/// As the option DEV names them.
std::vector<std::string> compiled_devices() {
  std::vector<std::string> names;
  for (const DeviceStatus& d : available_devices())
    if (d.works && d.name != "INTERP" && !d.name.starts_with("NULL") && d.name != "DISK" && d.name != "NPY") names.push_back(d.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, DigitsOn, testing::ValuesIn(compiled_devices()), [](const auto& tested) {
  std::string text = tested.param;
  std::replace_if(text.begin(), text.end(), [](char c) { return c == ':' || c == '-'; }, '_');
  return text;
});

}  // namespace
}  // namespace tinygrad::apps
