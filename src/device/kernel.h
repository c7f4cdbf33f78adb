#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "renderer/kernel_info.h"

namespace tinygrad {

/// A kernel loaded on a device. Safe to launch from several threads at once.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Runs the kernel once. `buffers` are device handles (Buffer::handle) by slot, `variables` the values in the order of
  /// KernelInfo::variables. With `wait`, returns after the kernel has finished and gives the seconds that it ran.
  virtual std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                                       bool wait = false) = 0;
};

}  // namespace tinygrad
