#pragma once
/// The process's sequence of random words.

#include <array>
#include <cstdint>

namespace tinygrad::tensor {

/// Where a draw begins, as kernels read it: seed, then position, low words first.
using DrawState = std::array<uint32_t, 4>;

/// Takes the next `words` words.
DrawState next_draw(int64_t words);

}  // namespace tinygrad::tensor
