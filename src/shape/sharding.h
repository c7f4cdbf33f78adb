#pragma once
/// How the values of a tensor graph are divided among devices: what follows from how those are that they are made of.

#include <optional>
#include <span>
#include <string>

#include "shape/shape.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad {

using ShardedAxes = SmallVector<ShardedAxis, 2>;

/// How a value is divided in memory, and how it is for those who read it, who see what is gathered there whole.
ShardedAxes stored_axes(const ShardingArg& arg);
ShardedAxes read_axes(const ShardingArg& arg);
bool has_gathered_axes(const ShardingArg& arg);

/// What a shard has of a value of this shape: along a sharded axis of n elements ceil(n / count), the last shards less or nothing of it and
/// padding that holds anything.
Shape shard_shape(const Shape& shape, std::span<const ShardedAxis> axes);
/// How many elements there are along a sharded axis before the cut `number` of the list.
int64_t size_before_cut(const Shape& shape, std::span<const ShardedAxis> axes, size_t number);

/// True where both are the same direction of a mesh or share one.
bool overlap(const MeshAxis& a, const MeshAxis& b);

/// How an op is computed shard by shard.
struct Spread {
  std::vector<ShardedAxes> sources;       ///< how each has to be divided; of sizes and the like, nothing
  ShardedAxes result;                     ///< how the result then is
  SmallVector<MeshAxis, 2> reduced = {};  ///< directions along which the shards have only parts of a reduction's result
};

/// How an op on several devices is computed, whose sources are divided as given: as they are, if that can be. Axes along which elements
/// would have to move from shard to shard are not divided before it.
Spread spread(const UOp& u, std::span<const ShardedAxes> sources);

/// How the source of a view has to be divided so that the view is divided so, with nothing moved in between: of EXPAND, PERMUTE and
/// RESHAPE. Nothing where elements would have to move.
std::optional<ShardedAxes> below_view(const UOp& view, const ShardedAxes& axes);

/// The same for whole graphs, in which there are no calls. What it was asked of must outlive it.
class Shardings {
 public:
  /// Of a value on several devices; nothing for one that is on one device or none.
  const ShardedAxes& of(const UOp& u);

 private:
  NodeMap<ShardedAxes> known_;
};

/// "axis 0 over 4 (batch), axis 1 over 2": as messages say it.
std::string to_string(std::span<const ShardedAxis> axes);

}  // namespace tinygrad
