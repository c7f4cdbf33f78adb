#pragma once
/// Whether results are views of arguments, as PyTorch decides it.

#include <cstdint>
#include <vector>

#include "frontend/aten/aten.h"
#include "frontend/torch_export/schema.h"

namespace tinygrad::torch_export {

enum class Sharing : uint8_t {
  none,
  same,    ///< the result is the first argument
  view,    ///< of the first argument
  unknown  ///< the graph does not say enough
};

/// Of what a call of the node's operator gave for these arguments; `first` says how the first of them lies in memory, null where nothing
/// does.
Sharing sharing_of(const Node& node, const aten::Arguments& arguments, const std::vector<aten::Value>& results, const TensorMeta* first);

}  // namespace tinygrad::torch_export
