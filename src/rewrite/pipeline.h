#pragma once
/// A graph on its way through named steps.

#include <functional>

#include "base/profile.h"
#include "uop/uop.h"

namespace tinygrad::rewrite {

/// Takes the time of each step, shows the observer what it changed, and has it checked; a step is a place at which the process can be
/// interrupted.
class Pipeline {
 public:
  using Check = std::function<void(const char* step, const UOp& graph)>;

  /// `category` is what profiles call the pipeline. `check`, if it is given, sees the graph after each step.
  Pipeline(const char* category, UOp graph, Check check = {})
      : category_(category), graph_(std::move(graph)), check_(std::move(check)), clock_(category) {}

  /// `name` must outlive the process (a literal).
  void step(const char* name, UOp result);
  const UOp& graph() const { return graph_; }

 private:
  const char* category_;
  UOp graph_;
  Check check_;
  ProfileSteps clock_;
};

}  // namespace tinygrad::rewrite
