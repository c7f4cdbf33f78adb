#pragma once
/// The bytes that a file format is read from, and tensors over them.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <tinygrad/tensor.h>

namespace tinygrad::frontend {

/// Memory of a file, mapped and copied on write, or of a tensor.
struct FileBytes {
  std::shared_ptr<void> owner;
  std::span<std::byte> bytes;
  std::string name;  ///< for messages

  /// Throws IoError.
  static FileBytes map(const std::string& path);
  /// The bytes of a vector of uint8. Throws ShapeError and DTypeError.
  static FileBytes of(const Tensor& tensor);
};

/// A tensor on the CPU over bytes of `file`, which it keeps alive; over a copy where the place in memory does not suit the dtype.
Tensor tensor_over(const FileBytes& file, std::span<std::byte> bytes, DType dtype, const Sizes& shape);

}  // namespace tinygrad::frontend
