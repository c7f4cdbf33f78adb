#include "models/gpt2.h"

#include "models/workload.h"

namespace tinygrad::apps {

namespace {

Tensor some_tokens(int64_t batch) { return Tensor::empty({batch, 128}, {.dtype = DType::int32}); }

}  // namespace

Workload gpt2_inference(int64_t layers) {
  const auto net = std::make_shared<gpt2::Gpt2>(layers);
  forget_weights(*net);
  return {.results = {(*net)(some_tokens(1))}, .owners = {net}};
}

Workload gpt2_training(int64_t layers) {
  const Tensor input = some_tokens(4), next = some_tokens(4);
  return training_step<nn::optim::SGD>(std::make_shared<gpt2::Gpt2>(layers), nn::optim::SGDOptions{.lr = 0.01, .momentum = 0.9},
                                       [&](const gpt2::Gpt2& net) { return net(input).sparse_categorical_crossentropy(next); });
}

}  // namespace tinygrad::apps
