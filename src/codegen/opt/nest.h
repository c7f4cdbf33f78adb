#pragma once
/// What the heuristics know of one loop nest of a kernel.

#include <vector>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Iterations of a reduced loop add something only where constant + step * iteration + stride * (that of an output axis) is not negative.
struct LoopBound {
  int64_t constant = 0, step = 0;
  int along = -1;  ///< the output axis
  int64_t stride = 0;
};

/// A loop of the nest. Axes are named by their place in Nest::axes.
struct NestAxis {
  UOp range;
  int number = 0;  ///< as opts number it
  int64_t size = 0;
  bool is_reduce = false;
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
  uint64_t chosen = 0;                              ///< those that only choose what of it is used: with a copy each the copies share it
  double trips = 1;                                 ///< how often it is done
  double cost = 1;                                  ///< of once, as scalars, in cycles
  uint64_t argument = 0;                            ///< that is accessed, as a bit; 0: none, or other memory
  std::vector<int64_t> strides = {};                ///< of an access, along each axis of the nest; 0: none
  std::vector<std::vector<AxisStep>> windows = {};  ///< the axes that it depends on, those that are in one window together
  uint64_t computed = 0;                            ///< the arguments, as bits, of whose elements' computed values it is a part
  uint64_t gates = 0;                               ///< those of which it only tells whether they are loaded
};

struct Nest {
  std::vector<NestAxis> axes;  ///< output axes from the outside in, then reduced ones
  std::vector<NestedWork> works;
  int reduces = 0;         ///< accumulators
  int joined_axis = -1;    ///< the innermost of a REDUCE whose step computes what is the same along an output axis; -1: none
  uint64_t followed = 0;   ///< the output axes along which it is the same, as bits
  int64_t item_bytes = 1;  ///< of the widest dtype in memory or in an accumulator
  double total_cost = 0;
  uint64_t chosen = 0;    ///< short axes that choose between values, as bits
  uint64_t repeated = 0;  ///< the axes of a reduction's terms that results are computed of again, and of these (repeated_terms.h)
  uint64_t computed = 0;  ///< arguments, as bits, of which a REDUCE needs what is computed along no other loops (computed_values.h)
};

/// What an op takes of a scalar, about.
double cycles_of(const UOp& u);

/// The argument, as a bit of a set; 0 for other memory.
uint64_t argument_bit(const UOp& memory);

/// The nest of an effect of the kernel, mostly an END. Axes whose size is not known before launch, or that were already optimized, are left
/// out.
Nest analyze_nest(const UOp& sink, const UOp& effect);

}  // namespace tinygrad::codegen
