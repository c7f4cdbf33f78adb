#pragma once
#include <map>
#include <span>
#include <string>

#include "frontend/outgoing.h"

namespace tinygrad::frontend {

/// Writes a file of these tensors, of which none is in blocks, and whose dtypes the format has. Throws as nn::state::safe_save() does.
void write_safetensors(std::span<const OutgoingTensor> tensors, const std::string& path, const std::map<std::string, std::string>& metadata,
                       const TensorAt& values);

}  // namespace tinygrad::frontend
