#pragma once
#include "target/target.h"

namespace tinygrad {

/// True for the products of AMX, whose factors and sums are tile registers.
bool multiplies_tiles(const TensorCore& core);

inline constexpr int tile_registers = 8;
inline constexpr int64_t tile_rows = 16, tile_row_bytes = 64;

}  // namespace tinygrad
