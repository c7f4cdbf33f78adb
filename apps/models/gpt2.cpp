#include "models/gpt2.h"

#include "models/workload.h"

namespace tinygrad::apps {

Workload gpt2_inference(int64_t layers, const Spread& spread) {
  const auto net = std::make_shared<gpt2::Gpt2>(layers);
  place_weights(*net, spread);
  return {.results = {(*net)(inputs({1, 128}, DType::int32, spread))}, .owners = {net}};
}

Workload gpt2_training(int64_t layers, const Spread& spread) {
  const Tensor input = inputs({4, 128}, DType::int32, spread), next = inputs({4, 128}, DType::int32, spread);
  return training_step<nn::optim::SGD>(std::make_shared<gpt2::Gpt2>(layers), nn::optim::SGDOptions{.lr = 0.01, .momentum = 0.9}, spread,
                                       [&](const gpt2::Gpt2& net) { return net(input).sparse_categorical_crossentropy(next); });
}

}  // namespace tinygrad::apps
