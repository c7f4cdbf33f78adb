#pragma once
/// What results look like to people.

#include <string>
#include <utility>
#include <vector>

#include "run/program.h"

namespace tinygrad::apps {

/// Lines of a file. Throws IoError.
std::vector<std::string> read_labels(const std::string& path);

/// A class and how much speaks for it.
struct Ranked {
  int64_t place = 0;
  std::string label = {};
  double score = 0;
};
/// The classes with the greatest scores, where a result has a score for each: as probabilities, which softmax makes of what is none.
/// Empty for other results. Throws ValueError where there are not as many labels.
std::vector<Ranked> ranked(const Result& result, const std::vector<std::string>& labels, int64_t top);

/// "float32 (1, 1000)", and below it the classes, or the first values where there are none.
void print_result(const Result& result, const std::vector<Ranked>& classes);

}  // namespace tinygrad::apps
