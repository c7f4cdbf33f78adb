#pragma once
/// Outputs belong to the caller, who may write into them.

#include <span>

#include "frontend/onnx/walk.h"

namespace tinygrad::onnx {

/// Lazy results, of which those are copies that the model keeps for other calls.
Results owned(const Results& results);
/// Realized results, of which those are copied that are memory of the model, of the arguments or of another result.
Results owned_memory(const Results& results, std::span<const Value> arguments);

}  // namespace tinygrad::onnx
