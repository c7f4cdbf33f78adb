#pragma once
/// Gradients of operators that the library differentiates itself.

#include <functional>
#include <span>
#include <vector>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

/// The gradients of f(at) with respect to each of `at`, which count as independent, where `grad` is that of its result.
std::vector<Tensor> gradients(const Call& c, const std::function<Tensor(std::span<const Tensor>)>& f, const std::vector<Tensor>& at,
                              const Tensor& grad);

}  // namespace tinygrad::aten
