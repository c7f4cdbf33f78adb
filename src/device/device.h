#pragma once
#include <tinygrad/device.h>

#include "kernel/kernel_info.h"
#include "target/target.h"

namespace tinygrad {

/// Copies between memory of two devices, or of one, by their queues, behind all that both were given so far: what is given to them from
/// now on runs behind it. False, and nothing has happened, where their queues have no such way.
bool copy_by_queues(Device& target, void* to, Device& source, void* from, size_t bytes);

}  // namespace tinygrad
