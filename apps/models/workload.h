#pragma once
#include <memory>
#include <optional>

#include <tinygrad/parallel.h>
#include <tinygrad/tinygrad.h>

#include "models/models.h"

namespace tinygrad::apps {

/// Replaces the drawing of random weights by memory, as after loading them.
inline void forget_weights(const nn::Module& net) {
  for (Tensor& t : std::vector<Tensor>(nn::state::get_parameters(net))) t.replace(Tensor::empty(t.shape(), {.dtype = t.dtype()}));
}

/// The same for weights that each device has, or has a part of.
inline void place_weights(const nn::Module& net, const Spread& spread) {
  forget_weights(net);
  if (spread.devices.empty()) return;
  spread.fully_sharded ? nn::parallel::fully_shard(net, spread.devices) : nn::parallel::replicate(net, spread.devices);
}

/// Memory for a batch on each device, of this shape; without a dtype, of the default float.
inline Tensor inputs(Sizes shape, std::optional<DType> dtype, const Spread& spread) {
  if (spread.devices.empty()) return Tensor::empty(shape, {.dtype = dtype});
  shape[0] *= static_cast<int64_t>(spread.devices.size());
  return Tensor::empty(shape, {.dtype = dtype}).shard(spread.devices, 0).realize();
}

/// A step of training: the loss of `loss_of(net)`, the updated parameters and statistics, and the optimizer's state.
template <class Optimizer, class Net, class Options>
Workload training_step(std::shared_ptr<Net> net, const Options& options, const Spread& spread, auto loss_of) {
  const Context training{{.training = true}};
  place_weights(*net, spread);
  const auto optimizer = std::make_shared<Optimizer>(nn::state::get_parameters(*net), options);
  const Tensor loss = loss_of(*net);
  loss.backward();
  Workload work{.results = optimizer->schedule_step(), .owners = {net, optimizer}};
  work.results.push_back(loss);
  for (const Tensor& t : nn::state::get_parameters(*net)) work.results.push_back(t);
  return work;
}

}  // namespace tinygrad::apps
