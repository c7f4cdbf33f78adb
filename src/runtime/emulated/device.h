#pragma once
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "runtime/emulated/runner.h"

namespace tinygrad::runtime {

/// A device whose kernels are for another processor than the host's and run in a process that qemu emulates. The binary of a kernel is its
/// object, as for a device of that kind that is there.
class EmulatedDevice final : private SharedHeap, public Device {
 public:
  /// Throws DeviceError where there is no emulator.
  EmulatedDevice(const DeviceChoice& choice, const Target& target, const CodePath& code);

  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp& linear, const std::string& binary) override;

 private:
  SharedHeap& heap() { return *this; }

  Runner runner_;
};

/// Why nothing can be emulated for a target; empty if it can.
std::string emulator_missing(const Target& target);

}  // namespace tinygrad::runtime
