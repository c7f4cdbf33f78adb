#include "engine/launch.h"

#include <fmt/core.h>

#include <tinygrad/counters.h>

#include "base/log.h"

namespace tinygrad::engine {

namespace {

void log_launch(const KernelInfo& info, Symbol device, std::span<const int64_t> variables, double seconds) {
  const double flops = double(info.flops.evaluate(variables)), bytes = double(info.bytes.evaluate(variables));
  log_line(fmt::format("{:<8} {:<32} {:>9.1f} us {:>9.2f} GFLOPS {:>8.2f} GB/s", device.str(), info.name, seconds * 1e6,
                       flops / seconds * 1e-9, bytes / seconds * 1e-9));
}

}  // namespace

void launch(const Program& program, Symbol device, std::span<void* const> handles, std::span<const int64_t> variables) {
  const KernelInfo& info = program.info;
  const bool timed = log_enabled(2);
  const auto seconds = program.kernel->launch(handles, variables, info.launch_dims(variables), timed);
  GlobalCounters::global_ops += uint64_t(info.flops.evaluate(variables));
  GlobalCounters::global_mem += uint64_t(info.bytes.evaluate(variables));
  GlobalCounters::kernel_count += 1;
  if (seconds) GlobalCounters::time_sum_s += *seconds;
  if (timed && seconds) log_launch(info, device, variables, *seconds);
}

}  // namespace tinygrad::engine
