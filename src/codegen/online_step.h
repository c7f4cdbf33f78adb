#pragma once
/// Several steps of a joined maximum and sum at once, as softmax and attention have them.

#include <optional>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// The step of a general REDUCE that carries a maximum m and a sum s measured from it:
///   m' = max(m, x),  s' = s * scale + term
/// where `grows` says that x is the larger; one of the factors that scale and term hold is 1 then, and else the other.
struct OnlineStep {
  UOp grows, scale, term;  ///< over the function's parameters: m, s, x, ...
};

/// No value for a REDUCE of another form.
std::optional<OnlineStep> online_step(const UOp& reduce);

/// The same REDUCE where an iteration takes the values of `steps` iterations one behind the other: the maximum of all is found first, so
/// that the carried values are scaled once. The REDUCE takes the values of the first iteration, then those of the second, ...
UOp take_together(const UOp& reduce, const OnlineStep& step, const std::vector<UOps>& steps);

/// The same REDUCE where iterations with a false `valid` change nothing.
UOp mask_online(const UOp& reduce, const OnlineStep& step, const UOp& valid);

}  // namespace tinygrad::codegen
