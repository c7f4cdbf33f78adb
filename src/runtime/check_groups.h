#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/kernel_info.h"

namespace tinygrad::runtime {

/// Throws DeviceError for a launch of more work-groups than a device takes in a dimension, or fewer than none.
void check_groups(std::string_view device, const KernelInfo& info, const LaunchDims& dims, std::span<const int64_t, 3> most);

}  // namespace tinygrad::runtime
