#pragma once
#include <functional>

#include "uop/uop.h"

namespace tinygrad::schedule {

/// The cost model of fusion. Everything is in units of one simple scalar operation of a vectorized kernel; what matters is only which of
/// two sums is smaller:
///
///   inline   every evaluation pays the value's arithmetic and its loads again
///   store    one evaluation an element, a write and the reads of it, and a kernel more to launch
///
/// Evaluations are counted on the kernels as they would be after substitution: the product of the sizes of all loops the value would stand
/// in, for each distinct place it is used at.
struct CostModel {
  double per_loaded_byte = 1;  ///< a read that comes from a near cache on average
  double per_stored_byte =
      8;  ///< a write that goes to memory: a vector unit does some 4 operations in the time of a byte, a write moves it twice
  double transcendental = 16;     ///< EXP2, LOG2, SIN, POW, and division-like ops
  double per_kernel = 20000;      ///< launch and scheduling
  double per_call_parallel = 64;  ///< loops of a kernel that are this wide can use the whole machine
};

/// Arithmetic and loaded bytes of one element of `u` if everything below it is computed in place, down to memory and to what `is_stored`
/// says is stored. A node that is reached twice counts once: equal places are shared. Gives up, with a large cost, past a few hundred
/// nodes.
double inline_cost(const UOp& u, const CostModel& model, const std::function<bool(const UOp&)>& is_stored);

}  // namespace tinygrad::schedule
