#include "runtime/cuda/gpu.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad::runtime::cuda {

namespace {

constexpr unsigned kStreamNonBlocking = 1, kEventWithoutTime = 2;

}  // namespace

Gpu::Gpu(const Driver& driver, int number) : api_(driver) {
  int count = 0;
  api_.check(api_.device_count(&count), "counting devices");
  if (number >= count)
    throw DeviceError(
        fmt::format("{}:{}: there {} {} device{}", api_.name, number, count == 1 ? "is" : "are", count, count == 1 ? "" : "s"));
  api_.check(api_.device_get(&device_, number), "opening a device");
  api_.check(api_.context_retain(&context_, device_), "opening a device");
  try {
    enter();
    api_.check(api_.stream_create(&stream_, kStreamNonBlocking), "making a stream");
  } catch (...) {
    api_.context_release(device_);
    throw;
  }
}

Gpu::~Gpu() {
  api_.context_set(context_);
  api_.stream_destroy(stream_);
  api_.context_release(device_);
}

int Gpu::attribute(int which) const {
  int value = 0;
  api_.check(api_.device_attribute(&value, which, device_), "asking for an attribute");
  return value;
}

void Gpu::wait() const {
  enter();
  api_.check(api_.stream_wait(stream_), "a kernel or copy");
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

}  // namespace tinygrad::runtime::cuda
