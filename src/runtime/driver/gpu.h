#pragma once
/// A GPU as its parts see it.

#include <memory>
#include <optional>
#include <string_view>

#include "device/profile_log.h"
#include "runtime/driver/driver.h"

namespace tinygrad::runtime::driver {

struct Interval;

/// The primary context of a GPU and the one stream that everything on it goes through, in order. Never destroyed, as devices are not.
class Gpu {
 public:
  /// Throws DeviceError for a number that the driver does not know.
  Gpu(const Driver& driver, int number);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  const Driver& api() const { return api_; }
  Stream stream() const { return stream_; }
  Context context() const { return opened_.context; }
  DeviceNumber number() const { return opened_.device; }
  /// Makes it the one that the calling thread's calls go to.
  void enter() const { api_.check(api_.enter(context()), "entering a device"); }
  void wait() const;
  /// Does what puts something on the stream; with PROFILE on, the next wait records when that ran.
  template <class Enqueue>
  void timed(std::string_view name, std::string_view category, Enqueue&& enqueue) const;

 private:
  const Driver& api_;
  mutable ProfileLog<std::unique_ptr<Interval>> profile_;
  Driver::Opened opened_;
  Stream stream_ = nullptr;
};

/// A moment on a stream.
class Moment {
 public:
  /// One without `timed` costs less.
  explicit Moment(const Gpu& gpu, bool timed = false);
  ~Moment();
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  void record() const { gpu_.api().check(gpu_.api().event_record(event_, gpu_.stream()), "recording an event"); }
  void wait() const { gpu_.api().check(gpu_.api().event_wait(event_), "waiting for a device"); }
  double seconds_since(const Moment& begin) const;
  Event event() const { return event_; }

 private:
  const Gpu& gpu_;
  Event event_ = nullptr;
};

/// Two moments with something between them.
struct Interval {
  explicit Interval(const Gpu& gpu) : begin(gpu, true), end(gpu, true) {}
  Moment begin, end;
};

/// Does what puts something on the stream; with `wait`, waits for it and gives the seconds that it ran.
template <class Start>
std::optional<double> seconds_of(const Gpu& gpu, bool wait, Start&& start) {
  if (!wait) {
    start();
    return std::nullopt;
  }
  const Moment begin(gpu, true), end(gpu, true);
  begin.record();
  start();
  end.record();
  end.wait();
  return end.seconds_since(begin);
}

template <class Enqueue>
void Gpu::timed(std::string_view name, std::string_view category, Enqueue&& enqueue) const {
  if (!is_profiling()) return enqueue();
  profile_.launch(name, category, [&] {
    auto interval = std::make_unique<Interval>(*this);
    interval->begin.record();
    enqueue();
    interval->end.record();
    return interval;
  });
}

}  // namespace tinygrad::runtime::driver
