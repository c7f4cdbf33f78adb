#pragma once
/// One launch, with its counters and its line of the log.

#include <span>

#include "device/launch_log.h"
#include "program/program.h"

namespace tinygrad::engine {

/// Whether each launch is to be made by launch(), alone: DEBUG=2 shows its time, PROFILE records it, VALIDATE_WITH_CPU looks at what it
/// did.
bool times_launches();
/// Adds launches to GlobalCounters and to what their device has run.
void count_launches(const Device& device, uint64_t kernels, uint64_t ops, uint64_t bytes);
void count_launch(const Device& device, const KernelInfo& info, std::span<const int64_t> variables);

/// Launches a program; counts it, logs a line for DEBUG=2, records the time for PROFILE and compares for VALIDATE_WITH_CPU.
void launch(const Program& program, Device& device, std::span<void* const> handles, std::span<const int64_t> variables);

/// The launches of a scope: an error of theirs that only a later wait finds is laid to what they wrote (Buffer::written_by).
class LaunchScope {
 public:
  explicit LaunchScope(Device& device) : log_(device.launches()), number_(log_.begin()) {}
  ~LaunchScope() { log_.end(); }
  LaunchScope(const LaunchScope&) = delete;
  LaunchScope& operator=(const LaunchScope&) = delete;
  uint64_t number() const { return number_; }

 private:
  LaunchLog& log_;
  uint64_t number_;
};

}  // namespace tinygrad::engine
