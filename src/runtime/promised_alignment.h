#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/kernel_info.h"

namespace tinygrad::runtime {

/// What a kernel may take for granted of the addresses it is given.
class PromisedAlignment {
 public:
  explicit PromisedAlignment(const KernelInfo& info);
  /// Throws DeviceError for an address that does not keep a promise.
  void check(std::span<void* const> buffers) const {
    for (const auto& [slot, bytes] : aligned_)
      if (reinterpret_cast<uintptr_t>(buffers[slot]) % bytes != 0) refuse(slot, bytes);
  }

 private:
  struct Aligned {
    size_t slot;
    uint16_t bytes;
  };

  [[noreturn]] static void refuse(size_t slot, uint16_t bytes);

  std::vector<Aligned> aligned_;
};

}  // namespace tinygrad::runtime
