#pragma once
/// Kernels of models made small, with the opts of their full size: what they compute, beside the same loops without opts.

#include <functional>
#include <string>
#include <vector>

#include "kernel/kernel_info.h"
#include "search/trial_memory.h"
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::test {

/// The different kernels that the models are made of on a device. What TF32 rounds is compared in tests/runtime/backend/ptx_test.cpp.
std::vector<UOp> scheduled_corpus(const std::string& device);

/// No small kernel has more.
inline constexpr double most_operations = 1 << 20;

/// A kernel made small, without opts and with those that the heuristics choose for it at full size, but for the items of groups whose
/// tile is too large as it is.
struct SmallKernel {
  std::vector<Opt> opts;
  UOp plain, optimized;

  /// Of `usual_operations` where its opts allow it; one round of what they take may be more.
  SmallKernel(const UOp& kernel, const Target& target, double usual_operations);
  /// The same for kernels that differ in their numbers alone.
  std::string structure() const;
};

struct LinearProgram {
  KernelInfo info;
  UOp linear;

  LinearProgram(const UOp& kernel, const Target& target);
};

/// Runs a program on a copy of the memory's contents, its results.
using Run = std::function<void(const LinearProgram& program, const search::TrialMemory& memory)>;
void interpret(const LinearProgram& program, const search::TrialMemory& memory);

/// What is wrong with a kernel `optimized` for the target as `run` runs it; empty if nothing is.
std::string complaint(const SmallKernel& kernel, const LinearProgram& optimized, const Target& target, const Run& run = interpret);

}  // namespace tinygrad::test
