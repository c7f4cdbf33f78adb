#pragma once
/// SPEC=3: the evaluator runs a kernel after each step of code generation and says which step changed what it computes.

#include <string>
#include <string_view>

#include "spec/evaluate.h"

namespace tinygrad::spec {

/// A kernel's memory on seeded inputs, compared from step to step. Integers must stay as they are, floats to within what another order of
/// sums and other polynomials may change in the coarsest float of the kernel. Kernels that are too large to evaluate, and steps whose form
/// the evaluator does not run, are passed over with a log line (DEBUG=2).
class MeaningCheck {
 public:
  explicit MeaningCheck(const UOp& sink);

  /// InternalError naming the step if `graph` leaves other values than the form before it.
  void after(std::string_view step, const UOp& graph);

 private:
  bool run(std::string_view step, const UOp& graph, EvalInputs& memory) const;

  EvalInputs inputs_;
  EvalInputs before_;
  std::string kernel_;
  int mantissa_bits_;
  bool active_ = false;
};

}  // namespace tinygrad::spec
