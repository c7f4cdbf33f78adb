#pragma once
/// Reverse-mode differentiation of graphs.

#include <span>
#include <vector>

#include "uop/arg.h"
#include "uop/uop.h"

namespace tinygrad::ops {

/// The gradient of `root` with respect to each target, given that of `root` itself (same shape and dtype): sum over its elements of
/// root_grad * d root / d target. A null UOp where root does not depend on the target, or only through what has no gradient (integers,
/// comparisons, DETACH). Only nodes on a path from root to a target are visited.
///
/// At points without a derivative: equal operands of MAX get half each; elements that tie for the maximum of a REDUCE share equally;
/// TRUNC has gradient 0.
///
/// Throws ValueError for an op that has a derivative but no rule here.
std::vector<UOp> gradient(const UOp& root, const UOp& root_grad, std::span<const UOp> targets);

/// True for nodes through which no gradient passes: what they give changes in steps, or they say so.
bool stops_gradient(const UOp& u);
/// Every node that gradients of `root` can reach, those that stop them included, sources before users.
std::vector<UOp> gradient_nodes(const UOp& root);

/// What the gradient of a FUNCTION is, where it is not that of its body.
class GradientRule : public Resource {
 public:
  GradientRule();
  /// The gradients of a CALL's arguments, given those of its values: one for each argument, null where there is none.
  virtual std::vector<UOp> gradients(const UOp& call, std::span<const UOp> given) const = 0;
  const uint64_t id;
};

/// A PARAM that stands for a value in the body of a FUNCTION.
UOp param_like(const UOp& value, int32_t slot);
/// CALL(FUNCTION(body), arg...) with this gradient.
UOp call_function(const UOp& body, std::span<const UOp> args, Symbol name, const IntrusivePtr<GradientRule>& rule = {});

}  // namespace tinygrad::ops
