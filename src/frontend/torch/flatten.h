#pragma once
/// The tensors of an object by their paths in it, and its plain values.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tinygrad/formats.h>

#include "frontend/torch/value.h"

namespace tinygrad::frontend::torch {

struct Flattened {
  std::vector<std::pair<std::string, const TensorRecord*>> tensors;  ///< "model.layer.weight", "optimizer.state.0.exp_avg"
  /// Everything else, in the same containers. A list has None where a tensor was, and what holds nothing but tensors is left out.
  formats::Metadata metadata;
};

/// An object that is itself a tensor is named "tensor", a plain value "value"; storages are vectors. Throws FormatError for what holds
/// itself or is more than 100 deep, and where names and values, shared ones as often as they are there, take more than 64 times
/// `pickle_bytes` and 16 MiB.
Flattened flatten(const Value& root, uint64_t pickle_bytes, Heap& heap, std::string_view file);

}  // namespace tinygrad::frontend::torch
