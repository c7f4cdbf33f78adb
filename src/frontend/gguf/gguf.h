#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <tinygrad/formats.h>

#include "frontend/file_bytes.h"
#include "frontend/outgoing.h"

namespace tinygrad::frontend {

/// A GGUF file of version 2 or 3, or the first of several that belong together (NAME-00001-of-00003.gguf), with which the others are
/// opened. Throws IoError and FormatError.
std::unique_ptr<formats::Reader> open_gguf(const std::string& path);
/// One file.
std::unique_ptr<formats::Reader> open_gguf(const FileBytes& file);
/// Whether bytes begin as those of a GGUF file do.
bool is_gguf(std::span<const std::byte> bytes);

/// Writes a file of these tensors. Throws as formats::gguf_save() does.
void write_gguf(std::span<const OutgoingTensor> tensors, const std::string& path, const formats::Metadata& metadata,
                const TensorAt& memory);

}  // namespace tinygrad::frontend
