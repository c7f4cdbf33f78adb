#pragma once
/// What PTX says of tensor cores; CUDA C has the same instructions as assembly.

#include <cstdint>
#include <string>
#include <string_view>

#include "target/target.h"

namespace tinygrad::renderer {

/// What instructions call the elements of a matrix: "bf16", "tf32".
std::string_view element_name(DType d, bool is_factor);

/// The descriptor of a factor in shared memory, 0 or 1, but for the address / 16, which is to be added (PTX ISA, 9.7.15.5.1.2.2).
uint64_t matrix_descriptor(const TensorCore& core, int factor);

/// `wgmma.mma_async D, A, B, ...;`: adds the product to D where the predicate `adds` holds. A and B are descriptors, or registers in braces
/// of what items hold.
std::string wgmma_instruction(const TensorCore& core, std::string_view d, std::string_view a, std::string_view b, std::string_view adds);

}  // namespace tinygrad::renderer
