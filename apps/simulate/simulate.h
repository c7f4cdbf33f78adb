#pragma once
/// `tg simulate`: a model on many ranks that are not there.

#include <string>

namespace tinygrad::apps {

struct SimulateArgs {
  std::string model;
  int ranks = 1;
  std::string network = {};  ///< a JSON file; empty: what the help text says
  bool fully_sharded = false;
  bool measure = false;  ///< run it instead, on as many ranks
  bool json = false;
};

void simulate_model(const SimulateArgs& args);

}  // namespace tinygrad::apps
