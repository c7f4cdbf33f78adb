#include "runtime/cuda/driver.h"

#include <map>
#include <mutex>
#include <type_traits>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/dylib.h"
#include "base/log.h"
#include "base/options.h"

namespace tinygrad::runtime::cuda {
namespace {

struct OpenDrivers {
  std::mutex mutex;
  std::map<std::string, Driver> by_path;
};

// Never destroyed: devices are not, either.
OpenDrivers& drivers() {
  static OpenDrivers& d = *new OpenDrivers;
  return d;
}

Driver open_driver(const std::string& path) {
  std::string why;
  auto library = DynamicLibrary::try_open({path.empty() ? "libcuda.so.1" : path}, &why);
  if (!library)
    throw DeviceError(
        fmt::format("CUDA: no driver: {}. Install NVIDIA's driver of version 525 or newer, or set CUDA_DRIVER_PATH to its libcuda", why));
  const DynamicLibrary& kept = keep_open(std::move(*library));  // the driver has threads of its own
  Driver d;
  d.library = kept.name();
  // What older drivers lack is told by their version, so that comes first.
  d.driver_version = kept.symbol<std::remove_pointer_t<decltype(d.driver_version)>>("cuDriverGetVersion");
  if (d.driver_version(&d.version) != kSuccess) throw DeviceError(fmt::format("CUDA: {} does not tell its version", d.library));
  if (d.version < kOldestVersion) {
    throw DeviceError(fmt::format("CUDA: the driver {} has version {}.{}, expected {}.{} or newer; install a newer one", d.library,
                                  d.version / 1000, d.version % 1000 / 10, kOldestVersion / 1000, kOldestVersion % 1000 / 10));
  }
#define X(function, symbol_name, arguments) d.function = kept.symbol<std::remove_pointer_t<decltype(d.function)>>(#symbol_name);
  TG_CUDA_FUNCTIONS(X)
#undef X
  d.check(d.init(0), "starting the driver");
  int devices = 0;
  d.check(d.device_count(&devices), "counting devices");
  if (devices == 0) throw DeviceError(fmt::format("CUDA: the driver {} finds no device", d.library));
  if (log_enabled(1)) log_line(fmt::format("opened {}, version {}", d.library, d.version));
  return d;
}

}  // namespace

std::string Driver::describe(Result result) const {
  const char *symbol = nullptr, *text = nullptr;
  if (error_name(result, &symbol) != kSuccess || !symbol) return fmt::format("error {}", result);
  return error_string(result, &text) == kSuccess && text ? fmt::format("{}: {}", symbol, text) : symbol;
}

void Driver::check(Result result, std::string_view what) const {
  if (result == kSuccess) return;
  if (result == kOutOfMemory) {
    throw OutOfMemoryError(
        fmt::format("{}: out of memory while {}: {}; free tensors or work on less at a time", name, what, describe(result)));
  }
  throw DeviceError(fmt::format("{}: {} failed: {}", name, what, describe(result)));
}

const Driver& driver() {
  const std::string& path = current_options().cuda_driver_path;
  std::lock_guard lock(drivers().mutex);
  auto found = drivers().by_path.find(path);
  if (found == drivers().by_path.end()) found = drivers().by_path.emplace(path, open_driver(path)).first;
  return found->second;
}

}  // namespace tinygrad::runtime::cuda
