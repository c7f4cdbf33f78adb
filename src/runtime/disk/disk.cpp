#include "runtime/disk/disk.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <filesystem>
#include <string_view>

#include "runtime/disk/file_memory.h"
#include "runtime/storage_device.h"

namespace tinygrad::runtime {
namespace {

constexpr std::string_view kDevice = "DISK:", kSharedMemory = "shm:";

/// Shared memory is a file to the system too.
std::string file_of(std::string_view path) {
  if (!path.starts_with(kSharedMemory)) return std::string(path);
  std::string_view name = path.substr(kSharedMemory.size());
  if (name.starts_with('/')) name.remove_prefix(1);
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos)
    throw DeviceError(fmt::format("DISK:{}: shared memory is named DISK:shm:NAME, with a name without '/'", path));
  return fmt::format("/dev/shm/{}", name);
}

}  // namespace

std::string disk_unavailable() { return {}; }

std::unique_ptr<Device> open_disk(const DeviceChoice& choice) {
  if (choice.path.empty()) throw DeviceError(fmt::format("{}: a file is named DISK:PATH: DISK:/tmp/weights.bin", choice.canonical()));
  return std::make_unique<StorageDevice>(choice.canonical(), "DISK",
                                         std::make_unique<FileMemory>(choice.canonical(), file_of(choice.path)));
}

bool is_same_file(Symbol a, Symbol b) {
  if (a == b) return true;
  if (!a.str().starts_with(kDevice) || !b.str().starts_with(kDevice)) return false;
  std::error_code not_there;
  return std::filesystem::equivalent(file_of(a.str().substr(kDevice.size())), file_of(b.str().substr(kDevice.size())), not_there);
}

}  // namespace tinygrad::runtime
