#pragma once
/// The tensors that layers and optimizers own.

#include <tinygrad/tensor.h>

namespace tinygrad::nn {

/// The value in memory of its own, in which it is put at the first use of it and stays: whoever uses it later, a captured call too, reads
/// that, and an assignment writes there.
inline Tensor state(const Tensor& initial) { return initial.clone(); }

}  // namespace tinygrad::nn
