#pragma once
/// The header of safetensors: 8 bytes with its size, then JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
/// (https://github.com/huggingface/safetensors). The tensors must fill the rest of the file, without gaps or overlaps.

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tinygrad/state.h>

namespace tinygrad::frontend {

/// The name of a dtype in the file; nothing for one that the format lacks.
std::optional<std::string_view> safetensors_name(DType dtype);

/// Where the data begins in a file of `file_bytes` bytes, by its first ones: as many as there are up to 8. Throws FormatError, naming the
/// file.
size_t safetensors_data_start(std::span<const std::byte> first, size_t file_bytes, const std::string& name);
/// The header of a file, from its bytes up to the data at least. Throws FormatError, naming the file.
nn::state::SafeMetadata parse_safetensors_header(std::span<const std::byte> file, size_t file_bytes, const std::string& name);

/// The dtype that a tensor is read as. Throws FormatError where there is none.
DType safetensors_dtype(const nn::state::SafeMetadata::Entry& entry, const std::string& tensor, const std::string& file);

/// Anything but 0 and 1 is no bool, and arithmetic on it means nothing: FormatError.
void check_bools(std::span<const std::byte> bytes, const std::string& tensor, const std::string& file);

/// The first bytes of a file with these tensors. Throws ValueError for text that is not UTF-8.
std::string make_safetensors_header(const nn::state::SafeMetadata& contents);

}  // namespace tinygrad::frontend
