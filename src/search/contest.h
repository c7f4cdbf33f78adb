#pragma once
/// Kernels that compute the same, timed against each other.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"
#include "device/device.h"
#include "search/accuracy.h"
#include "search/search_record.h"
#include "search/trials.h"
#include "uop/uop.h"

namespace tinygrad::search {

/// The heuristics' kernel and what others are measured by: its time, its results and how exact they are.
class Contest {
 public:
  /// `worker` is the program.
  Contest(const UOp& sink, Device& device, const Options& options, std::string worker);

  /// Runs the heuristics' kernel. False where there is nothing to search for: it takes less than `too_short_s`, or too much memory.
  /// DeviceError if it does not run.
  bool begin(const TrialKernel& heuristic, double too_short_s);
  /// Its time.
  double baseline_s() const { return baseline_; }

  /// Times a kernel and checks its results. One slower than `hopeless_s` is not looked at for long. No verdict where it did not end
  /// in `time_left_s`, but might have in the time that it deserves.
  std::optional<Verdict> time(const TrialKernel& kernel, double hopeless_s, double time_left_s);

  /// Seconds of the heuristics' kernel and of another, run in turns, since machines change their speed. None if the other fails;
  /// DeviceError if the first does.
  std::optional<std::pair<double, double>> compare(const TrialKernel& heuristic, const TrialKernel& other);

 private:
  void choose_variables();
  WorkerSetup setup(const TrialMemory& memory) const;
  std::unique_ptr<TrialMemory> exact_results(const KernelInfo& info) const;
  double limit_s() const;

  const UOp sink_;
  Device& device_;
  const Options& options_;
  const std::string worker_;
  VariableValues largest_, representative_;  ///< of variables: memory is for the one, kernels run with the other
  std::unique_ptr<TrialMemory> memory_;
  std::unique_ptr<Trials> trials_;
  std::unique_ptr<Accuracy> accuracy_;
  uint64_t bytes_ = 0;  ///< of the kernel's buffers
  double baseline_ = 0;
};

}  // namespace tinygrad::search
