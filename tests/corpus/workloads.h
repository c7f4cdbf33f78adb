#pragma once
/// What corpora are made of: inference and training of real models in several dtypes, not computed.

#include <functional>
#include <string>
#include <vector>

namespace tinygrad::test {

struct Corpus {
  std::string name;
  std::string default_float;  ///< for a Context around sources()
  /// Sources of the kernels, for the device of the option DEV.
  std::function<std::vector<std::string>()> sources;
};

const std::vector<Corpus>& corpus();

}  // namespace tinygrad::test
