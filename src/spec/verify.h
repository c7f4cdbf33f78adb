#pragma once
/// Verifiers: what a graph may hold at each stage border, as tables of rules. docs/ir.md has the contracts in words.
///
/// A graph that breaks one is our own bug: InternalError naming the border, the rule, the node, what it got and what it expects. Time is
/// linear in the nodes of the graph, without recursion.

#include <functional>
#include <string_view>

#include "uop/uop.h"

namespace tinygrad::spec {

/// What users build: a SINK of effects over BUFFERs, before the scheduler (tensor_rules.cpp).
void verify_tensor_graph(const UOp& sink);

/// One kernel as the scheduler gives it to the code generator: a SINK with a KernelArg (kernel_rules.cpp).
void verify_kernel(const UOp& sink);

/// A LINEAR of instructions as the code generator gives it to renderers (linear_rules.cpp). `supports`, where given, says whether the
/// target has the op, dtype included, of an ALU instruction.
void verify_linear(const UOp& linear, const std::function<bool(const UOp&)>& supports = {});

/// A kernel between two steps of code generation: what holds at every moment (typed_rules.cpp, effect_rules.cpp). `step` names the border.
void verify_between(const UOp& sink, std::string_view step);

/// The LINEAR of a schedule between two of its steps: kernels, copies and loops around them.
void verify_schedule(const UOp& linear, std::string_view step);

}  // namespace tinygrad::spec
