#include "runtime/disk/disk.h"

#include "runtime/disk/file_memory.h"
#include "runtime/storage_device.h"

namespace tinygrad::runtime {

std::string disk_unavailable() { return {}; }

std::unique_ptr<Device> open_disk(const DeviceChoice& choice) {
  if (choice.path.empty())
    throw DeviceError(
        fmt::format("{}: a file is named DISK:PATH, with a path that begins with '/' or '.': DISK:/tmp/weights.bin", choice.canonical()));
  return std::make_unique<StorageDevice>(choice.canonical(), "DISK", std::make_unique<FileMemory>(choice.canonical(), choice.path));
}

}  // namespace tinygrad::runtime
