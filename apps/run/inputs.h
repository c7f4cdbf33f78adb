#pragma once
/// What goes into a model: files, numbers, pictures, sounds, or random elements.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "run/prepare.h"
#include "run/program.h"

namespace tinygrad::apps {

struct InputOptions {
  std::vector<std::string> inputs = {};  ///< "NAME=SOURCE", or "SOURCE" for what is left
  std::vector<std::string> sizes = {};   ///< "NAME=NUMBER"
  uint64_t seed = 0;
  PictureOptions picture = {};
};

/// An input, realized.
struct Input {
  std::string name = {};
  Tensor tensor = {};
  std::string origin = {};  ///< "random from 0 to 1, seed 0", "cat.png, 640 x 480"
  std::string values = {};  ///< what was done to what is there; may be empty
};

/// Throws ValueError, naming what there is, for inputs and sizes that there are not, that are given twice or not at all, ShapeError and
/// DTypeError for what does not fit, and what the readers of files throw.
std::vector<Input> make_inputs(const Program& program, const InputOptions& options);

}  // namespace tinygrad::apps
