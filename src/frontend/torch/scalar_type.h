#pragma once
/// The element types of PyTorch.

#include <optional>
#include <span>
#include <string_view>

#include <tinygrad/dtype.h>

namespace tinygrad::frontend::torch {

struct ScalarType {
  std::string_view name;        ///< "float32", as in "torch.float32"
  std::string_view storage;     ///< "FloatStorage"; empty for what is kept in an UntypedStorage
  int bytes = 0;                ///< of an element
  std::optional<DType> dtype;   ///< that its elements are read as; nothing where there is none
  bool is_quantized = false;    ///< the elements are integers that a scale belongs to
  bool has_cuda_class = false;  ///< there is a torch.cuda.FloatStorage, too
};

std::span<const ScalarType> scalar_types();
/// The one of this name, which must be there.
const ScalarType& scalar_type(std::string_view name);

}  // namespace tinygrad::frontend::torch
