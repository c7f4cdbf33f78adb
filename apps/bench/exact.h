#pragma once
#include <vector>

#include "bench/values.h"
#include "bench/works.h"

namespace tinygrad::apps {

/// Results of a kernel by its definition, in float64: random ones where all would take longer than about a second.
std::vector<ExactValue> exact_values(const BenchCase& c, const Tensors& inputs);

}  // namespace tinygrad::apps
