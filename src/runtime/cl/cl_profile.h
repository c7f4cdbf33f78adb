#pragma once
/// Events of OpenCL commands, and when the commands ran.

#include <memory>
#include <optional>

#include "device/profile_log.h"
#include "runtime/cl/cl_api.h"

namespace tinygrad::runtime::cl {

struct ReleaseEvent {
  void operator()(EventTag* e) const noexcept { api().ReleaseEvent(e); }
};
using EventPtr = std::unique_ptr<EventTag, ReleaseEvent>;

/// The times of a command by the device's clock; nothing for a command that has not ended, or failed.
std::optional<DeviceSpan> span_of(const EventPtr& event);

using ClProfile = ProfileLog<EventPtr>;

/// Does what enqueues a command: given where its event goes, or null where nobody wants one. With PROFILE on, the next wait records it.
template <class Enqueue>
void timed(ClProfile& profile, std::string_view name, std::string_view category, Enqueue&& enqueue) {
  if (!is_profiling()) return enqueue(nullptr);
  profile.launch(name, category, [&] {
    EventTag* event = nullptr;
    enqueue(&event);
    return EventPtr(event);
  });
}

}  // namespace tinygrad::runtime::cl
