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

/// Names that make_workload() takes.
std::vector<std::string> model_names();
/// On the default device. Throws ValueError for another name.
Workload make_workload(std::string_view name);

Workload resnet50_inference();
Workload resnet50_training();
Workload gpt2_inference(int64_t layers);
Workload gpt2_training(int64_t layers);
Workload mnist_training();

}  // namespace tinygrad::apps
