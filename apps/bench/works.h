#pragma once
/// A kernel of `tg bench` as a graph of tensors, and some of its results in float64.

#include <functional>
#include <vector>

#include <tinygrad/tensor.h>

#include "bench/cases.h"

namespace tinygrad::apps {

using Tensors = std::vector<Tensor>;

/// A result computed from the inputs in float64.
struct ExactValue {
  size_t output = 0;
  int64_t index = 0;  ///< row-major
  double value = 0;
};

struct BenchWork {
  Tensors inputs = {};                                      ///< realized, random
  std::function<Tensors(const Tensors& inputs)> step = {};  ///< lazily
  std::function<std::vector<ExactValue>()> exact = {};      ///< all results, or as many random ones as take about a second
};

BenchWork make_work(const BenchCase& c);

/// The largest difference of a result from its exact value, divided by this or by the root mean square of all, whichever is greater.
struct Accuracy {
  double error = 0;
  double tolerance = 0;  ///< of a correct kernel that adds up in float32
  size_t values = 0;     ///< compared
};
Accuracy check_accuracy(const BenchCase& c, const BenchWork& work, const Tensors& results);

}  // namespace tinygrad::apps
