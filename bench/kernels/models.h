#pragma once
#include "serve.h"

namespace bench {

/// Whole networks and training steps of bench/kernels, and the replay of many small kernels. Throws for a name it does not know. Weights,
/// inputs and float64 results are written to the safetensors file `share`, if the case has it.
Prepared prepare_model(const Json& c);

/// A first training step of the MNIST network, from building it to its loss: its seconds, those that a step takes by itself (own_seconds),
/// and the loss' error.
Json first_step();

/// A search (BEAM=2) for the opts of a matrix product of 1024 with its first three calls: its seconds, and the product's error.
Json first_search();

}  // namespace bench
