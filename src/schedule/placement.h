#pragma once
/// What placing decides of the values of a graph, and writing kernels reads.

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/kernel.h"
#include "schedule/loops.h"
#include "schedule/place.h"
#include "uop/node_map.h"

namespace tinygrad::schedule {

/// A place at which a kernel needs a value.
struct Use {
  int kernel = 0;
  Place place{};
  SmallVector<int, 3> source_uses{};  ///< for each source, which of its uses serves this one
  UOps ranges{};                      ///< opened here, by a REDUCE
  int before = -1;                    ///< while placing: one of the same value in the same kernel, where there are many
  double weight = 0;                  ///< while placing: of the kernel without it
};

struct Value {
  std::vector<Use> uses;
  UOp storage;                ///< the PARAM it is stored in, if it is stored
  std::optional<int> kernel;  ///< that stores it: none before it is placed
};

struct Placement {
  NodeMap<int> numbers;         ///< of the nodes, in the walking order
  std::vector<Value> values;    ///< of each node
  NodeMap<Use> roots;           ///< of each stored value, the place at which its own kernel computes it
  NodeMap<Use> stores;          ///< of each STORE that is a kernel: the kernel, and in source_uses the use of its value
  std::vector<Kernel> kernels;  ///< without expressions, those of outputs first
  Loops loops;
  std::vector<ValueNote> notes;  ///< if they are asked for
};

}  // namespace tinygrad::schedule
