#include "runtime/npy/npy.h"

#include "runtime/cpu/host_allocator.h"
#include "runtime/storage_device.h"

namespace tinygrad::runtime {

std::string npy_unavailable() { return {}; }

std::unique_ptr<Device> open_npy(const DeviceChoice& choice) {
  return std::make_unique<StorageDevice>(choice.canonical(), "NPY", std::make_unique<HostAllocator>(choice.canonical()));
}

}  // namespace tinygrad::runtime
