#pragma once
/// What the fuzzers of formats have in common: a file is read, or is a FormatError; every other exception ends the fuzzer.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tinygrad/errors.h>
#include <tinygrad/formats.h>

#include "frontend/file_bytes.h"

namespace tinygrad::fuzz {

/// In memory of their own, of which the sanitizers know the end.
inline frontend::FileBytes file_of(std::span<const uint8_t> bytes) {
  const auto begin = reinterpret_cast<const std::byte*>(bytes.data());
  const auto owner = std::make_shared<std::vector<std::byte>>(begin, begin + bytes.size());
  return {owner, *owner, "f"};
}

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Looks at everything that a reader gives. Tensors that there is no dtype of are errors of their own.
inline void look_at(const formats::Reader& reader, size_t file_bytes) {
  for (const formats::MetadataEntry& entry : reader.metadata()) formats::to_json(entry.second);
  for (size_t i = 0; i < reader.tensors().size(); ++i) {
    const formats::TensorInfo& info = reader.tensors()[i];
    require(info.offset < 0 || (info.bytes >= 0 && uint64_t(info.offset) + uint64_t(info.bytes) <= file_bytes));
    try {
      require(reader.tensor(i).shape() == info.shape);
      if (const auto blocks = reader.quantized(i)) blocks->check("fuzz");
    } catch (const FormatError&) {}
  }
}

/// Opens and reads; returns what libFuzzer expects.
template <class Open>
int read(size_t file_bytes, const Open& open) {
  try {
    look_at(*open(), file_bytes);
  } catch (const FormatError&) {}
  return 0;
}

}  // namespace tinygrad::fuzz

// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
