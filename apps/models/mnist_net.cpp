#include "models/mnist_net.h"

#include "models/workload.h"

namespace tinygrad::apps {

Workload mnist_training(const Spread& spread) {
  constexpr int64_t batch = 512;
  const Tensor pixels = inputs({batch, 1, 28, 28}, DType::uint8, spread), digits = inputs({batch}, DType::uint8, spread);
  return training_step<nn::optim::Adam>(std::make_shared<MnistNet>(), nn::optim::AdamOptions{}, spread,
                                        [&](const MnistNet& net) { return net(pixels).sparse_categorical_crossentropy(digits); });
}

}  // namespace tinygrad::apps
