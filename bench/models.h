#pragma once
#include "serve.h"

namespace bench {

/// Whole networks and training steps of bench/kernels, and the replay of many small kernels. Throws for a name it does not know.
Prepared prepare_model(const Json& c);

/// Seconds of a first training step of the MNIST network, from building it to its loss.
double first_step();

}  // namespace bench
