#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <tinygrad/formats.h>

#include "frontend/file_bytes.h"

namespace tinygrad::frontend {

/// The weights of an ONNX model: the initializers of its graph. `folder` is that of external data; empty where there is none. Throws
/// FormatError.
std::unique_ptr<formats::Reader> open_onnx(const FileBytes& file, const std::string& folder);
/// Whether bytes begin as those of an ONNX model do.
bool is_onnx(std::span<const std::byte> bytes);

}  // namespace tinygrad::frontend
