#include "runtime/driver/gpu.h"

#include <optional>

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad::runtime::driver {

namespace {

constexpr unsigned kStreamNonBlocking = 1, kEventWithoutTime = 2;

std::string device_name(const Driver& driver, int number) {
  return number == 0 ? driver.name() : fmt::format("{}:{}", driver.name(), number);
}

}  // namespace

Gpu::Gpu(const Driver& driver, int number) : api_(driver), profile_(device_name(driver, number)) {
  int count = 0;
  api_.check(api_.device_count(&count), "counting devices");
  if (number >= count)
    throw DeviceError(
        fmt::format("{}:{}: there {} {} device{}", api_.name(), number, count == 1 ? "is" : "are", count, count == 1 ? "" : "s"));
  opened_ = api_.open(number);
  try {
    enter();
    api_.check(api_.stream_create(&stream_, kStreamNonBlocking), "making a stream");
  } catch (...) {
    api_.close(opened_.device);
    throw;
  }
}

Gpu::~Gpu() {
  api_.enter(context());
  profile_.take();
  api_.stream_destroy(stream_);
  api_.close(opened_.device);
}

void Gpu::wait() const {
  enter();
  const auto launched = profile_.take();
  std::optional<Moment> last;
  if (!launched.empty()) last.emplace(*this, true).record();
  api_.check(api_.stream_wait(stream_), "a kernel or copy");
  if (!last) return;
  // The driver's times are differences, of numbers that are the more exact the smaller they are.
  const auto before_last = [&](const Moment& m) -> std::optional<int64_t> {
    float ms = 0;
    if (api_.event_elapsed_ms(&ms, m.event(), last->event()) != kSuccess) return std::nullopt;
    return -static_cast<int64_t>(static_cast<double>(ms) * 1e6);
  };
  profile_.record(launched, 0, profile_now_ns(), [&](const std::unique_ptr<Interval>& i) -> std::optional<DeviceSpan> {
    const auto begin = before_last(i->begin), end = before_last(i->end);
    return begin && end ? std::optional(DeviceSpan{*begin, *end}) : std::nullopt;
  });
}

Moment::Moment(const Gpu& gpu, bool timed) : gpu_(gpu) {
  gpu.api().check(gpu.api().event_create(&event_, timed ? 0 : kEventWithoutTime), "making an event");
}

Moment::~Moment() { gpu_.api().event_destroy(event_); }

double Moment::seconds_since(const Moment& begin) const {
  float ms = 0;
  gpu_.api().check(gpu_.api().event_elapsed_ms(&ms, begin.event_, event_), "timing a kernel");
  return static_cast<double>(ms) * 1e-3;
}

}  // namespace tinygrad::runtime::driver
