#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "run/inputs.h"

namespace tinygrad::apps {

struct RunOptions {
  std::string model = {};
  InputOptions inputs = {};
  std::string output = {}, save_inputs = {};  ///< .npz files; empty: none
  std::string labels = {};                    ///< a file with a line for each class
  std::optional<int64_t> repeat = {};         ///< how often steady calls are measured; by default up to 10 times in 2 seconds
  bool profile = false;
  std::string device = {};  ///< empty: the default one
  int64_t top = 5;
  bool json = false;
};

/// tg run MODEL: runs the graph of a model file, and prints what went in and came out and how long it took. Throws what
/// open_program() and make_inputs() throw, and IoError.
void run_model(const RunOptions& options);

}  // namespace tinygrad::apps
