#pragma once
#include "target/target.h"

namespace tinygrad {

/// What an adapter allows, in the terms of WebGPU's limits; the defaults are those that every adapter has.
struct WebGpuLimits {
  int64_t invocations = 256;              ///< maxComputeInvocationsPerWorkgroup
  int64_t groups_per_dimension = 65535;   ///< maxComputeWorkgroupsPerDimension
  int64_t group_memory_bytes = 16 << 10;  ///< maxComputeWorkgroupStorageSize
  int max_buffers = 8;                    ///< maxStorageBuffersPerShaderStage
  bool is_software = false;               ///< a processor is the adapter
  bool has_float16 = false;               ///< the feature shader-f16
};

/// WGSL: float32, int32, uint32, bool and, where there are, halves. Narrower integers are only in memory (see widen_integers()).
Target webgpu_target(const WebGpuLimits& limits);

}  // namespace tinygrad
