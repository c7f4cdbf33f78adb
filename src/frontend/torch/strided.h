#pragma once
/// Tensors of elements at strides.

#include <optional>

#include <tinygrad/tensor.h>

namespace tinygrad::frontend::torch {

/// The elements at offset + the sum of index times stride of a vector: a view of it where slices, reshapes, permutes and expands give them,
/// which they do unless an axis steps within what another one spans; else a lazy copy. All of them must be in the vector.
Tensor strided(const Tensor& vector, int64_t offset, const Sizes& sizes, const Sizes& strides);

/// One more than the greatest offset among these elements; nothing where that is more than 63 bits. 0 if there are none.
std::optional<int64_t> strided_end(int64_t offset, const Sizes& sizes, const Sizes& strides);

}  // namespace tinygrad::frontend::torch
