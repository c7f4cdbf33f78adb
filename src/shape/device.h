#pragma once
/// The devices of every node, inferred from its sources.

#include "uop/devices.h"
#include "uop/uop.h"

namespace tinygrad {

/// The devices a value lives on; empty for constants without one, index expressions, kernel-level values and groups of effects. Cached in
/// the node. What is on several devices may be computed with what is on one of them. Throws DeviceError if sources live on other devices.
///
/// In tensor graphs each shard of what is on several devices is a part; in schedules shards that are known to be equal are one.
Devices devices_of(const UOp& u);
/// The only one of them. Throws DeviceError for a sharded value, too.
Symbol device_of(const UOp& u);

}  // namespace tinygrad
