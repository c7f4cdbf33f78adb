#include "models/mnist_net.h"

#include "models/workload.h"

namespace tinygrad::apps {

Workload mnist_training() {
  constexpr int64_t batch = 512;
  const Tensor pixels = Tensor::empty({batch, 1, 28, 28}, {.dtype = DType::uint8}),
               digits = Tensor::empty({batch}, {.dtype = DType::uint8});
  return training_step<nn::optim::Adam>(std::make_shared<MnistNet>(), nn::optim::AdamOptions{},
                                        [&](const MnistNet& net) { return net(pixels).sparse_categorical_crossentropy(digits); });
}

}  // namespace tinygrad::apps
