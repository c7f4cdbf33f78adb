#pragma once
/// How far a float result may be from the exact one, by running error analysis (Higham, "Accuracy and Stability of Numerical Algorithms",
/// section 3.3): beside each value goes a bound of its error, propagated op by op.

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::test {

struct ErrorBounds {
  UOp sink;                  ///< effects that leave, in the memory below, a bound for each element of the memory of the graph
  NodeMap<UOp> of_memory{};  ///< for each float BUFFER that is stored to: a float64 BUFFER of the same size, which starts as zeros
};

/// The bounds for a graph of effects: a graph to be evaluated together with it, floats exact. An op's own error is counted as one ulp of
/// its dtype (4 for transcendental functions), sums in any order as one ulp of the sum of magnitudes for each element. What is in `exact`
/// has no error. A bound is infinite where the error may be of the size of a denominator.
ErrorBounds error_bounds(const UOp& sink, const NodeSet& exact);

/// The distance of floats of a dtype next to 1.
double ulp_of_one(DType dtype);

}  // namespace tinygrad::test
