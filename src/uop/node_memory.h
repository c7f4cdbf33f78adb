#pragma once
/// Memory of nodes and their facts: a compiler makes and drops millions of them.

#include <cstddef>

namespace tinygrad::detail {

/// Small pieces come from lists of this thread; what one thread takes and another gives back goes round in batches. Memory stays with the
/// process, for the next nodes.
void* allocate_node(size_t size);
void free_node(void* memory, size_t size) noexcept;

}  // namespace tinygrad::detail
