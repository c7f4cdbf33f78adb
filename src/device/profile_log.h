#pragma once
/// When a device with a clock of its own ran what was launched on it. Nobody waits for that: what was launched is kept until somebody waits
/// for the device anyway.

#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/profile.h"

namespace tinygrad {

/// Whether the calling thread's launches and copies are recorded.
bool is_profiling();

/// From when to when the device was at it, in nanoseconds.
struct DeviceSpan {
  int64_t begin_ns = 0, end_ns = 0;
};
/// Something that a device has run.
struct DeviceWork {
  Symbol name, category;
  int64_t launched_ns = 0;  ///< of profile_now_ns()
  DeviceSpan span;          ///< by the device's clock
};
/// Records what has run. A moment of the device's clock was `host_ns` of profile_now_ns() at the latest, and everything had ended by then.
/// Clocks do not run alike, so what would begin before it was launched is moved to behind that.
void record_device_work(Symbol device, std::span<const DeviceWork> works, int64_t device_ns, int64_t host_ns);

/// What was launched and not waited for. `Timer` is what a device tells times by, such as its events. Safe for several threads.
template <class Timer>
class ProfileLog {
 public:
  struct Launched {
    DeviceWork work;
    Timer timer;
  };
  using List = std::vector<Launched>;

  explicit ProfileLog(std::string_view device) : device_(device) {}

  /// Launches something, which gives its timer.
  template <class Launch>
  void launch(std::string_view name, std::string_view category, Launch&& launch) {
    const int64_t now = profile_now_ns();
    Timer timer = launch();
    const std::lock_guard lock(mutex_);
    list_.push_back({{.name = Symbol(name), .category = Symbol(category), .launched_ns = now, .span = {}}, std::move(timer)});
  }

  /// What was launched so far, for one who is about to wait for it. If that fails it has no times.
  List take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(list_, {});
  }

  /// What was taken has ended: `span_of` gives the times of a timer, or nothing for one that has none. See record_device_work() for the
  /// rest.
  template <class SpanOf>
  void record(const List& taken, int64_t device_ns, int64_t host_ns, SpanOf&& span_of) const {
    std::vector<DeviceWork> works;
    for (const Launched& l : taken) {
      const std::optional<DeviceSpan> span = span_of(l.timer);
      if (!span) continue;
      works.push_back(l.work);
      works.back().span = *span;
    }
    record_device_work(device_, works, device_ns, host_ns);
  }

 private:
  const Symbol device_;
  std::mutex mutex_;
  List list_;
};

}  // namespace tinygrad
