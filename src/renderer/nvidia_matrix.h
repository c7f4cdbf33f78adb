#pragma once
/// What PTX says of tensor cores; CUDA C has the same instructions as assembly.

#include <cstdint>
#include <string>
#include <string_view>

#include <tinygrad/kernel_info.h>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::renderer {

/// What instructions call the elements of a matrix: "bf16", "tf32".
std::string_view element_name(DType d, bool is_factor);

/// The descriptor of a factor in shared memory, 0 or 1, but for the address / 16, which is to be added (PTX ISA, 9.7.15.5.1.2.2 and, of
/// cores with tensor memory, 9.7.16.4.1).
uint64_t matrix_descriptor(const TensorCore& core, int factor);

/// True if the sums that a product is to add to are all 0.
bool is_zero(const UOp& sums);

/// `wgmma.mma_async D, A, B, ...;`: adds the product to D where the predicate `adds` holds. A and B are descriptors, or registers in braces
/// of what items hold.
std::string wgmma_instruction(const TensorCore& core, std::string_view d, std::string_view a, std::string_view b, std::string_view adds);

/// `tcgen05.mma.cta_group::1...`, and the number that it wants besides to know types and sizes (9.7.16.4.2). `d` is the register with the
/// place of the sums.
std::string tcgen05_instruction(const TensorCore& core, std::string_view d, std::string_view a, std::string_view b,
                                std::string_view description, std::string_view adds);
uint32_t tcgen05_description(const TensorCore& core);
/// Columns of the cores' memory that a group takes, where 128 items have so many: a power of two. CompileError if there are no more so
/// many.
int32_t tensor_memory_columns(const KernelInfo& info, int32_t used);
/// Of 128 work-items in a group, each with their own part.
int32_t tensor_memory_parts(const KernelInfo& info);

}  // namespace tinygrad::renderer
