#pragma once
/// The networks that the compiler is measured with. Weights are memory of unspecified content: these are for compiling.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/tensor.h>

namespace tinygrad::apps {

/// One inference or one step of training, not computed yet.
struct Workload {
  std::vector<Tensor> results;                     ///< realizing them is the work
  std::vector<std::shared_ptr<void>> owners = {};  ///< the network and the optimizer, alive meanwhile as in a training
};

/// Where it is computed.
struct Spread {
  std::vector<std::string> devices = {};  ///< each has a batch of its own and copies of weights; none: the default device
  bool fully_sharded = false;             ///< parts of weights in place of copies
};

/// Names that make_workload() takes.
std::vector<std::string> model_names();
/// Throws ValueError for another name.
Workload make_workload(std::string_view name, const Spread& spread = {});

Workload resnet50_inference(const Spread& spread);
Workload resnet50_training(const Spread& spread);
Workload gpt2_inference(int64_t layers, const Spread& spread);
Workload gpt2_training(int64_t layers, const Spread& spread);
Workload mnist_training(const Spread& spread);

}  // namespace tinygrad::apps
