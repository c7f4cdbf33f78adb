#pragma once
/// Ranks: processes that run the same program, started by `mpirun` or `srun`. The device `CPU@1` is the CPU of rank 1; a name without a
/// rank is that device of each of them, on which all compute the same. docs/sharding.md shows how.

#include <tinygrad/export.h>

namespace tinygrad {

/// The number of this process among those that were started together, from 0; 0 if it was started alone. Throws CommError where others were
/// started but cannot be reached.
TINYGRAD_EXPORT int rank();
/// How many there are, at least 1. Throws what rank() throws.
TINYGRAD_EXPORT int world_size();

}  // namespace tinygrad
