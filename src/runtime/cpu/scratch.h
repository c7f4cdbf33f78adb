#pragma once
#include <cstddef>

namespace tinygrad::runtime {

/// The calling thread's memory for what kernels keep of their own (KernelInfo::scratch_bytes): at least `bytes`, aligned for any vector,
/// and the same from call to call, so that its pages are the thread's. Of unspecified content. Throws OutOfMemoryError.
void* thread_scratch(size_t bytes);

}  // namespace tinygrad::runtime
