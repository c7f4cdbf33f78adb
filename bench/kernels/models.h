#pragma once
#include "serve.h"

namespace bench {

/// Whole networks and training steps of bench/kernels, and the replay of many small kernels. Throws for a name it does not know.
Prepared prepare_model(const Json& c);

/// A first training step of the MNIST network, from building it to its loss: its seconds, and the loss' error.
Json first_step();

/// A search (BEAM=2) for the opts of a matrix product of 1024 with its first three calls: its seconds, and the product's error.
Json first_search();

}  // namespace bench
