#include "device/profile_log.h"

#include <algorithm>

#include "base/options.h"

namespace tinygrad {

bool is_profiling() { return current_options().profile; }

void record_device_work(Symbol device, std::span<const DeviceWork> works, int64_t device_ns, int64_t host_ns) {
  const int64_t offset = host_ns - device_ns;
  for (const DeviceWork& w : works) {
    const int64_t begin = std::clamp(w.span.begin_ns + offset, w.launched_ns, std::max(w.launched_ns, host_ns));
    const int64_t duration = std::clamp<int64_t>(w.span.end_ns - w.span.begin_ns, 0, std::max<int64_t>(host_ns - begin, 0));
    profile_record({.name = w.name, .category = w.category, .track = device, .start_ns = begin, .duration_ns = duration});
  }
}

}  // namespace tinygrad
