#include "runtime/check_groups.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad::runtime {

void check_groups(std::string_view device, const KernelInfo& info, const LaunchDims& dims, std::span<const int64_t, 3> most) {
  for (size_t i = 0; i < 3; ++i) {
    if (dims.global[i] > most[i] || dims.global[i] < 0) {
      throw DeviceError(fmt::format("{}: kernel {} needs {} work-groups along dimension {}, the device takes {}", device, info.name,
                                    dims.global[i], i, most[i]));
    }
  }
}

}  // namespace tinygrad::runtime
