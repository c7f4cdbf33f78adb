#include "runtime/driver/driver.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad::runtime::driver {

void Driver::check(Result result, std::string_view what) const {
  if (result == kSuccess) return;
  if (result == kOutOfMemory) {
    throw OutOfMemoryError(
        fmt::format("{}: out of memory while {}: {}; free tensors or work on less at a time", name(), what, describe(result)));
  }
  throw DeviceError(fmt::format("{}: {} failed: {}", name(), what, describe(result)));
}

}  // namespace tinygrad::runtime::driver
