#include "models/resnet.h"

#include "models/workload.h"

namespace tinygrad::apps {

namespace {

Tensor images(int64_t batch) { return Tensor::empty({batch, 3, 224, 224}); }

}  // namespace

Workload resnet50_inference() {
  const auto net = std::make_shared<ResNet50>();
  forget_weights(*net);
  return {.results = {(*net)(images(1))}, .owners = {net}};
}

Workload resnet50_training() {
  constexpr int64_t batch = 4;
  const Tensor input = images(batch).is_param_(false), classes = Tensor::empty({batch}, {.dtype = DType::int32});
  return training_step<nn::optim::SGD>(std::make_shared<ResNet50>(), nn::optim::SGDOptions{.lr = 0.01, .momentum = 0.9},
                                       [&](const ResNet50& net) { return net(input).sparse_categorical_crossentropy(classes); });
}

}  // namespace tinygrad::apps
