#pragma once
#include <memory>

#include <tinygrad/tinygrad.h>

#include "models/models.h"

namespace tinygrad::apps {

/// Replaces the drawing of random weights by memory, as after loading them.
inline void forget_weights(const nn::Module& net) {
  for (Tensor& t : std::vector<Tensor>(nn::state::get_parameters(net))) t.replace(Tensor::empty(t.shape(), {.dtype = t.dtype()}));
}

/// A step of training: the loss of `loss_of(net)`, the updated parameters and statistics, and the optimizer's state.
template <class Optimizer, class Net, class Options>
Workload training_step(std::shared_ptr<Net> net, const Options& options, auto loss_of) {
  const Context training{{.training = true}};
  forget_weights(*net);
  const auto optimizer = std::make_shared<Optimizer>(nn::state::get_parameters(*net), options);
  const Tensor loss = loss_of(*net);
  loss.backward();
  Workload work{.results = optimizer->schedule_step(), .owners = {net, optimizer}};
  work.results.push_back(loss);
  for (const Tensor& t : nn::state::get_parameters(*net)) work.results.push_back(t);
  return work;
}

}  // namespace tinygrad::apps
