#pragma once
/// Modules on several devices. Each function gives tensors of a module another place, which keeps their values; call it before an optimizer
/// is made, whose state is divided as the parameters are. docs/sharding.md shows what follows from it.

#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/export.h>
#include <tinygrad/mesh.h>
#include <tinygrad/module.h>

namespace tinygrad::nn {
struct Linear;
}
namespace tinygrad::nn::optim {
class Optimizer;
}

namespace tinygrad::nn::parallel {

/// A copy of every tensor on each device. With batches that are cut along their first axis each device computes with its part of a batch,
/// and gradients are summed over all of them.
TINYGRAD_EXPORT void replicate(const Module& module, const std::vector<std::string>& devices);

/// Each device has a part of every parameter, of its gradient, and of the state of an optimizer that is made later. A parameter is gathered
/// where it is used, and again where it is used later (ZeRO-3, "fully sharded data parallel"); a step computes the same as
/// replicate()'s, up to rounding. A parameter is cut along the first axis that divides well. Other tensors, running means for example, are
/// copied.
TINYGRAD_EXPORT void fully_shard(const Module& module, const std::vector<std::string>& devices);
/// The same along one direction of a mesh; tensors may be cut along other ones already. Throws ValueError for a tensor that is on other
/// devices, several of them, or cut along this direction.
TINYGRAD_EXPORT void fully_shard(const Module& module, const Mesh& mesh, std::string_view direction);

/// Each device has a part of the optimizer's state, updates its part of the parameters, and gets the rest of the others (ZeRO-1 and 2: of a
/// gradient each gets the sum of its part alone). The parameters are copies, as replicate() makes them. Throws ValueError where they are
/// not on several devices, or where the optimizer is fused, as its state then is.
TINYGRAD_EXPORT void shard_state(const optim::Optimizer& optimizer);

/// The outputs of a layer divided along a direction: each shard computes its own, of all inputs. Input that is not cut along the direction
/// is needed, and the output is cut along it, in its last axis.
TINYGRAD_EXPORT void shard_outputs(const Linear& layer, const Mesh& mesh, std::string_view direction);
/// Its inputs: each shard multiplies those it has, and the products are summed. What shard_outputs() gives goes in without a move.
TINYGRAD_EXPORT void shard_inputs(const Linear& layer, const Mesh& mesh, std::string_view direction);

}  // namespace tinygrad::nn::parallel
