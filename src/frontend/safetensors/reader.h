#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include <tinygrad/formats.h>

#include "frontend/file_bytes.h"

namespace tinygrad::frontend {

/// Whether bytes begin as those of a file of safetensors do.
bool is_safetensors(std::span<const std::byte> bytes);
/// Whether they begin as a JSON object does.
bool is_json_object(std::span<const std::byte> bytes);

/// One file of safetensors. Throws FormatError.
std::unique_ptr<formats::Reader> open_safetensors(const FileBytes& file);
/// The files that an index lists, as large models are saved: a JSON object whose "weight_map" has the file of each tensor, by its name, in
/// the index's folder. Throws FormatError, also for a file name with a folder, and for a tensor that its file lacks.
std::unique_ptr<formats::Reader> open_safetensors_index(const FileBytes& index);

}  // namespace tinygrad::frontend
