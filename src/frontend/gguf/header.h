#pragma once
/// What stands before the data of a GGUF file (docs/gguf.md of ggml): the version, the metadata, and for each tensor its name, sizes, type
/// and place.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/formats.h>

#include "frontend/outgoing.h"

namespace tinygrad::frontend {

struct GgufHeader {
  formats::Metadata metadata = {};
  std::vector<formats::TensorInfo> tensors = {};  ///< that lie within the file, where none overlaps another; sizes outermost first
  std::vector<ElementType> types = {};            ///< of the tensors
};

/// The header of a file, from all of its bytes. Throws FormatError, naming the file, the field and its byte.
GgufHeader parse_gguf_header(std::span<const std::byte> file, const std::string& name);

struct GgufBeginning {
  std::string bytes;                   ///< up to the data
  std::vector<uint64_t> offsets = {};  ///< of the tensors in the data
  uint64_t data_bytes = 0;             ///< with what fills up to the alignment
};
/// The first bytes of a file with these tensors. Throws ValueError for names and metadata that the format does not hold, DTypeError for
/// dtypes that it lacks, ShapeError for more than four axes.
GgufBeginning make_gguf_header(const formats::Metadata& metadata, std::span<const OutgoingTensor> tensors);

/// The metadata of that name; null if there is none.
const formats::MetadataValue* find_metadata(const formats::Metadata& metadata, std::string_view key);

}  // namespace tinygrad::frontend
