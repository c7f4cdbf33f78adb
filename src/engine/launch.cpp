#include "engine/launch.h"

#include <optional>

#include <fmt/core.h>

#include <tinygrad/counters.h>

#include "base/log.h"
#include "base/options.h"
#include "base/profile.h"
#include "engine/validation.h"

namespace tinygrad::engine {

namespace {

void log_launch(const KernelInfo& info, const Device& device, std::span<const int64_t> variables, double seconds) {
  const double flops = double(info.flops.evaluate(variables)), bytes = double(info.bytes.evaluate(variables));
  log_line(fmt::format("{:<8} {:<32} {:>9.1f} us {:>9.2f} GFLOPS {:>8.2f} GB/s", device.name().str(), info.name, seconds * 1e6,
                       flops / seconds * 1e-9, bytes / seconds * 1e-9));
}

/// Of a device that records launches when it is waited for: what it keeps for that must not become too much.
constexpr uint64_t kMostUnrecorded = 4096;

/// NULL runs nothing that could be compared.
bool is_validated(const Program& program, const Device& device) {
  return current_options().validate_with_cpu && program.sink && device.name() != Symbol("NULL");
}

bool is_profiled(const Device& device) { return current_options().profile && !device.records_profile(); }

}  // namespace

bool times_launches() { return log_enabled(2) || current_options().profile || current_options().validate_with_cpu; }

void count_launches(const Device& device, uint64_t kernels, uint64_t ops, uint64_t bytes) {
  GlobalCounters::global_ops += ops;
  GlobalCounters::global_mem += bytes;
  GlobalCounters::kernel_count += kernels;
  device.launches().add_kernels(kernels);
}

void count_launch(const Device& device, const KernelInfo& info, std::span<const int64_t> variables) {
  count_launches(device, 1, uint64_t(info.flops.evaluate(variables)), uint64_t(info.bytes.evaluate(variables)));
}

void launch(const Program& program, Device& device, std::span<void* const> handles, std::span<const int64_t> variables) {
  const KernelInfo& info = program.info;
  const bool timed = log_enabled(2) || is_profiled(device);
  std::optional<Validation> validation;
  if (is_validated(program, device)) validation.emplace(program, device, handles, variables);
  const auto seconds = program.kernel->launch(handles, variables, info.launch_dims(variables), timed);
  count_launch(device, info, variables);
  if (validation) validation->compare();
  if (current_options().profile && device.records_profile() && device.launches().kernels() % kMostUnrecorded == 0) device.wait();
  if (!seconds) return;
  GlobalCounters::time_sum_s += *seconds;
  if (log_enabled(2)) log_launch(info, device, variables, *seconds);
  if (!is_profiled(device)) return;
  const auto duration = static_cast<int64_t>(*seconds * 1e9);
  profile_record({.name = Symbol(info.name),
                  .category = "kernel",
                  .track = device.name(),
                  .start_ns = profile_now_ns() - duration,
                  .duration_ns = duration});
}

}  // namespace tinygrad::engine
