#pragma once
#include "target/target.h"

namespace tinygrad {

/// Asks the system for the tile registers of AMX (Linux saves them only for processes that have asked), for all threads of this process,
/// once. False if it refuses, or has none.
bool request_tiles();

/// Leaves a CPU's target those tensor cores with tile registers (AMX) that the host has and that the system lets this process use.
void keep_usable_tiles(Target& target);

}  // namespace tinygrad
