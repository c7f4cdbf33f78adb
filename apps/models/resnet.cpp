#include "models/resnet.h"

#include "models/workload.h"

namespace tinygrad::apps {

Workload resnet50_inference(const Spread& spread) {
  const auto net = std::make_shared<ResNet50>();
  place_weights(*net, spread);
  return {.results = {(*net)(inputs({1, 3, 224, 224}, {}, spread))}, .owners = {net}};
}

Workload resnet50_training(const Spread& spread) {
  constexpr int64_t batch = 4;
  const Tensor input = inputs({batch, 3, 224, 224}, {}, spread).is_param_(false), classes = inputs({batch}, DType::int32, spread);
  return training_step<nn::optim::SGD>(std::make_shared<ResNet50>(), nn::optim::SGDOptions{.lr = 0.01, .momentum = 0.9}, spread,
                                       [&](const ResNet50& net) { return net(input).sparse_categorical_crossentropy(classes); });
}

}  // namespace tinygrad::apps
