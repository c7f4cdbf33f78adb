#pragma once
#include "device/device.h"

namespace tinygrad {

/// A kernel whose launches any threads of the host may run in pieces.
class HostKernel : public Kernel {
 public:
  /// Runs the chunks from `begin` to `end` of a launch (LaunchDims::chunks) in the calling thread.
  virtual void run_piece(std::span<void* const> buffers, std::span<const int64_t> variables, size_t begin, size_t end) = 0;
};

/// A device that is the host itself: its kernels are HostKernels, and its memory is the host's.
class HostDevice : public Device {
 public:
  /// Until all that was given to it has run; throws what wait() throws. It does not count as a wait unless it does.
  virtual void drain() {}

 protected:
  using Device::Device;
};

}  // namespace tinygrad
