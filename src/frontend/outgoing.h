#pragma once
/// What writers of all formats have in common.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <tinygrad/formats.h>

#include "base/file.h"

namespace tinygrad::frontend {

/// How the elements of a tensor lie in a file.
using ElementType = std::variant<DType, formats::BlockFormat>;

/// A tensor that is to be written.
struct OutgoingTensor {
  std::string name;
  ElementType type = DType::float32;
  Sizes shape = {};

  /// Of its values, or of its blocks.
  int64_t bytes() const;
};

/// Gives the values or the blocks of the tensor at a place, when its turn has come.
using TensorAt = std::function<Tensor(size_t place)>;

/// Tensors that are realized together when the first is asked for.
TensorAt realized_together(std::vector<Tensor> tensors);

/// Appends bytes in pieces, so that an interrupt is noticed.
void write_in_pieces(AtomicFile& file, std::span<const std::byte> bytes);

/// The elements of a tensor in the memory of the host, row-major.
struct HostElements {
  explicit HostElements(const Tensor& tensor);

  std::shared_ptr<std::byte> memory;
  std::span<const std::byte> bytes;
};

}  // namespace tinygrad::frontend
