#pragma once
/// What the heuristics know of one loop nest of a kernel.

#include <vector>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// A mask of a reduction: an iteration adds something only where constant + step * iteration + stride * (the iteration of the output axis
/// `along`) is not negative.
struct LoopBound {
  int64_t constant = 0, step = 0;
  int along = -1;  ///< the output axis
  int64_t stride = 0;
};

/// A loop of the nest. Axes are named by their place in Nest::axes.
struct NestAxis {
  UOp range;
  int number = 0;    ///< as opts number it
  int64_t size = 0;  ///< one that nothing divides stands for a size that is known at launch
  bool is_reduce = false;
  bool is_known = true;
  std::vector<LoopBound> bounds = {};  ///< all along one output axis
};

/// An axis and how many elements of memory, or steps of its window, it moves a load.
struct AxisStep {
  int axis = 0;
  int64_t size = 0;
};

/// Something that is done in the nest.
struct NestedWork {
  UOp node;  ///< LOAD, STORE, REDUCE or an ALU op, some from the step of a REDUCE
  bool is_access = false;
  uint64_t inside = 0;                              ///< the axes of all loops around it, as bits
  uint64_t depends = 0;                             ///< those that change it
  uint64_t chosen = 0;                              ///< axes among `depends` that only choose which part of it is used
  double trips = 1;                                 ///< how often it is done
  double cost = 1;                                  ///< cycles of doing it once, with scalars (target/costs.h)
  uint64_t argument = 0;                            ///< the argument that is accessed, as a bit; 0: none, or other memory
  std::vector<int64_t> strides = {};                ///< of an access, along each axis of the nest; 0: it does not depend on the axis
  std::vector<std::vector<AxisStep>> windows = {};  ///< the axes that it depends on; axes that move it in one window are together
  uint64_t computed = 0;                            ///< arguments, as bits: a tile of values computed of their elements includes this work
  uint64_t converts = 0;                            ///< of such a CAST: the argument, as a bit
  UOp converted = {};                               ///< of a LOAD that sums need only as a CAST makes it: that CAST
  int64_t computed_bytes = 0;                       ///< of an access of such an argument: those of a value; 0 of others
  uint64_t gates = 0;                               ///< arguments, as bits: this work only says whether their elements are loaded
};

struct Nest {
  std::vector<NestAxis> axes;  ///< output axes from the outside in, then reduced ones
  std::vector<NestedWork> works;
  int reduces = 0;         ///< REDUCEs
  int joined_axis = -1;    ///< the innermost axis of a joined reduction, part of whose step is the same along an output axis; -1: none
  uint64_t followed = 0;   ///< those output axes, as bits
  int64_t item_bytes = 1;  ///< bytes of the widest dtype in memory or in an accumulator
  double total_cost = 0;
  uint64_t chosen = 0;    ///< short axes that choose between values, as bits
  uint64_t repeated = 0;  ///< axes of terms that a reduction sums and results use again, and the axes of these results (repeated_terms.h)
  uint64_t computed = 0;  ///< arguments, as bits, whose elements a REDUCE needs only through values computed of them (computed_values.h)
};

/// True for work on values of eight bytes.
bool is_wide(const NestedWork& work);

/// The argument, as a bit of a set; 0 for other memory.
uint64_t argument_bit(const UOp& memory);

/// The nest of an effect of the kernel, mostly an END. Axes that were already optimized are left out, and those whose size is known at
/// launch unless `with_unknown`, in which short ones are left out.
Nest analyze_nest(const UOp& sink, const UOp& effect, bool with_unknown = false);

}  // namespace tinygrad::codegen
