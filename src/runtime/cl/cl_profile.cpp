#include "runtime/cl/cl_profile.h"

namespace tinygrad::runtime::cl {

std::optional<DeviceSpan> span_of(const EventPtr& event) {
  const auto time = [&](uint32_t what) -> std::optional<int64_t> {
    uint64_t ns = 0;
    if (!event || api().GetEventProfilingInfo(event.get(), what, sizeof(ns), &ns, nullptr) != success) return std::nullopt;
    return static_cast<int64_t>(ns);
  };
  const auto begin = time(profiling_command_start), end = time(profiling_command_end);
  return begin && end ? std::optional(DeviceSpan{*begin, *end}) : std::nullopt;
}

}  // namespace tinygrad::runtime::cl
