#pragma once
/// Kernels run in a worker that is replaced when one of them breaks it.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernel_info.h"
#include "search/trial_memory.h"
#include "search/worker.h"

namespace tinygrad::search {

/// A kernel as a worker takes it.
struct TrialKernel {
  KernelInfo info;
  std::string object;
};

/// Values of variables, by name.
using VariableValues = std::vector<std::pair<Symbol, int64_t>>;
/// The values of a kernel's variables, in the kernel's order.
std::vector<int64_t> values_of(const KernelInfo& info, const VariableValues& values);

/// How long to look at it.
struct TrialLimits {
  uint32_t repetitions = 12;
  double enough_s = 0.05;
  double hopeless_s = 1e9;
  double limit_s = 60;
};

class Trials {
 public:
  /// Kernels run with these values of the variables that they have.
  Trials(std::string program, const TrialMemory& memory, WorkerSetup setup, VariableValues variables);

  /// Throws DeviceError where no worker can be started.
  WorkerResult run(const TrialKernel& kernel, const TrialLimits& limits);

 private:
  const std::string program_;
  const TrialMemory& memory_;
  const WorkerSetup setup_;
  const VariableValues variables_;
  std::optional<Worker> worker_;
};

/// The median of the runs after the first, or that one's time where there are no others.
double median_seconds(const std::vector<double>& runs);

}  // namespace tinygrad::search
