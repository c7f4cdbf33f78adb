#pragma once
/// Kernels of full size made small enough to be interpreted, with the opts that were chosen for the full size.

#include <vector>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::test {

/// Operations on data, each counted once for each iteration of its loops; a multiplication and the addition to a sum are one.
double operations(const UOp& kernel);

/// A kernel that simplified_kernel() gave, with shorter loops and smaller memory. An axis is as long as what the opts take from it, a few
/// times where `most_operations` allows it; where the opts leave the last round incomplete it stays incomplete. So the kernel computes some
/// of the elements that it did, from a part of each sum, and its opts do the same to it.
UOp shrunk(const UOp& kernel, const std::vector<Opt>& opts, const Target& target, double most_operations);

}  // namespace tinygrad::test
