#pragma once
#include <optional>
#include <vector>

#include "codegen/codegen.h"

namespace tinygrad::codegen {

/// An argument in another order.
struct PackedArgument {
  UOp pack;  ///< the kernel that makes the copy. Argument 0: the copy, 1: what it is of
  int32_t slot = 0;
  int64_t size = 0;  ///< elements of the copy
};

/// A kernel some of whose arguments are copies that lie as it needs them.
struct PackedKernel {
  UOp sink;
  std::vector<PackedArgument> arguments;
};

/// The kernel with those arguments packed by which the heuristics expect it to gain: for arguments that seldom change, such as weights.
/// `slots`, as bits, are those that it may be; no value if there is little to gain.
std::optional<PackedKernel> pack_constants(const UOp& sink, const Target& target, const CodegenOptions& options, uint64_t slots);

}  // namespace tinygrad::codegen
