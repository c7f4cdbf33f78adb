#include "run/measure.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include <tinygrad/counters.h>
#include <tinygrad/device.h>
#include <tinygrad/helpers.h>

namespace tinygrad::apps {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double peak_mb_of_process() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) * 1024 / 1e6;
}

std::vector<Result> copied(std::vector<Result> results) {
  for (Result& r : results)
    if (r.tensor) r.tensor = r.tensor->clone().realize();
  return results;
}

}  // namespace

std::optional<double> Measured::median_ms() const {
  if (steady_ms.empty()) return {};
  const size_t middle = steady_ms.size() / 2;
  return steady_ms.size() % 2 == 1 ? steady_ms[middle] : (steady_ms[middle - 1] + steady_ms[middle]) / 2;
}

std::optional<double> Measured::gflops() const {
  const std::optional<double> ms = median_ms();
  return ms && *ms > 0 ? std::optional(double(flops) / (*ms * 1e6)) : std::nullopt;
}

Measured measure(Program& program, const std::map<std::string, Tensor>& inputs, std::optional<int64_t> repeat, bool profile) {
  constexpr int64_t usual_repeats = 10;
  constexpr double usual_seconds = 2;
  Measured out;
  const std::string device = default_device();
  const auto call = [&] {
    const uint64_t kernels = GlobalCounters::kernel_count, flops = GlobalCounters::global_ops;
    const Clock::time_point start = Clock::now();
    out.results = program.run(inputs);
    synchronize(device);
    const double seconds = seconds_since(start);
    out.kernels = GlobalCounters::kernel_count - kernels;
    out.flops = GlobalCounters::global_ops - flops;
    return seconds;
  };
  out.first_call_s = call();
  // Programs may write what they are given and what they keep, so that later calls have other results, and these may be views of that.
  const std::vector<Result> first = copied(out.results);
  if (repeat != 0) {
    call();
    call();
  }
  const Clock::time_point start = Clock::now();
  const auto goes_on = [&](int64_t done) {
    if (repeat) return done < *repeat;
    return done == 0 || (done < usual_repeats && seconds_since(start) < usual_seconds);
  };
  {
    const Profiling profiling({.enabled = profile});
    for (int64_t i = 0; goes_on(i); ++i) out.steady_ms.push_back(call() * 1e3);
  }
  out.results = first;
  std::ranges::sort(out.steady_ms);
  out.is_of_process = device.starts_with("CPU");
  out.peak_mb = out.is_of_process ? peak_mb_of_process() : double(device_statistics(device).peak) / 1e6;
  return out;
}

}  // namespace tinygrad::apps
