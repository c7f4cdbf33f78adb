#pragma once
/// The device of every node, inferred from its sources.

#include <tinygrad/symbol.h>
#include "uop/uop.h"

namespace tinygrad {

/// The device a value lives on; empty for constants without one, index expressions, kernel-level values and groups of effects. Cached in
/// the node. A sharded value lives on several: their names joined by commas. Throws DeviceError if sources live on different devices.
Symbol device_of(const UOp& u);

/// Number of devices in a name that device_of gives.
size_t device_count(Symbol device);
/// One of them.
Symbol nth_device(Symbol device, size_t n);

}  // namespace tinygrad
