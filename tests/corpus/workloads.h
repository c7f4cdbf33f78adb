#pragma once
/// What corpora are made of: inference and training of real models in several dtypes, not computed.

#include <functional>
#include <string>
#include <vector>

#include "models/models.h"

namespace tinygrad::test {

struct Corpus {
  std::string name;
  std::string default_float;  ///< for a Context around make()
  /// On the device of the option DEV.
  std::function<apps::Workload()> make;
  bool allow_tf32 = false;  ///< for a Context around what compiles it
};

/// All of them, or a sample (test_scale.h).
const std::vector<Corpus>& corpus();

}  // namespace tinygrad::test
