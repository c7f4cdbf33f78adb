#pragma once
#include <string>

namespace tinygrad::apps {

struct CompileOptions {
  std::string model, device = "NULL";
  std::string sources = {};  ///< folder for the source of each kernel; empty: none
  bool steps = false, rules = false, json = false;
};

/// tg compile: schedules, lowers and renders a model without running it, and prints how long that took.
void compile(const CompileOptions& options);

}  // namespace tinygrad::apps
