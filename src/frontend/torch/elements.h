#pragma once
/// The elements of a checkpoint's storages, as tensors.

#include <map>
#include <mutex>
#include <unordered_map>

#include <tinygrad/formats.h>

#include "base/archive/zip.h"
#include "frontend/file_bytes.h"
#include "frontend/torch/value.h"

namespace tinygrad::frontend::torch {

class Elements {
 public:
  explicit Elements(FileBytes file) : file_(std::move(file)) {}

  /// The bytes of the storage with this key: a part of the file.
  void add(const Text* key, std::span<const std::byte> bytes) { held_[key] = {part_of_file(bytes), {}}; }
  /// The same of a member of an archive.
  void add(const Text* key, const archive::ZipFile& member);

  /// What the file says of a tensor. Throws FormatError for one that is not inside of its storage, and for a storage that is not there, or
  /// is not as large as the pickle says.
  formats::TensorInfo describe(const std::string& name, const TensorRecord& tensor) const;
  /// A tensor that describe() has let through, dequantized if it is quantized. Throws FormatError for one that there is no Tensor for.
  Tensor tensor(const std::string& name, const TensorRecord& tensor) const;

 private:
  struct Held {
    std::span<std::byte> bytes;
    std::optional<archive::ZipFile> packed;  ///< where they have to be unpacked
    uint64_t size() const { return packed ? packed->size : bytes.size(); }
  };

  std::span<std::byte> part_of_file(std::span<const std::byte> bytes) const;
  void check(const std::string& name, const TensorRecord& tensor) const;
  /// All elements of a storage as a vector, the same one each time.
  Tensor vector_of(const Storage& storage, const ScalarType& type) const;
  Tensor values(const TensorRecord& tensor) const;
  Tensor dequantized(const TensorRecord& tensor) const;

  const FileBytes file_;
  std::unordered_map<const Text*, Held> held_;
  mutable std::mutex mutex_;  ///< of vectors_, which remembers what vector_of() gave
  mutable std::map<std::pair<const Text*, const ScalarType*>, Tensor> vectors_;
};

}  // namespace tinygrad::frontend::torch
