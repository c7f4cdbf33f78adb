#pragma once
#include <cstdint>
#include <vector>

#include "target/target.h"

namespace tinygrad {

/// What a product by a CPU's tensor core takes.
struct CoreCosts {
  int temporaries = 0;  ///< registers besides its operands and its sum
  double steps = 2;     ///< instructions of vectors: where two start in a cycle, two take a cycle
  /// More of them where a factor is shifted: what shifts a, and a part of the sum that takes it back, which all rows of a tile share.
  double shift_steps = 0.5;
};
CoreCosts costs_of(const TensorCore& core);

/// Whether the core takes a factor a of integers of the other sign, too, as it is less (or more) half of its numbers: a second sum takes
/// that back. That is exact, as integers wrap around. It is worth it where the machine has no core for these signs.
bool shifts_a(const TensorCore& core);

/// Where a CPU's instruction has the elements of a factor: their places in a vector of those of all items, one item behind another, in
/// which copies are left out.
std::vector<int64_t> distinct_elements(const TensorCore& core, const TensorCore::Layout& factor);

/// Whether a CPU computes with vectors of halves (AVX512-FP16, FEAT_FP16). Others convert them to float32 for each operation, which gives
/// the same, as sums, products, quotients and roots are rounded once.
bool computes_halves(const Target& target);

}  // namespace tinygrad
