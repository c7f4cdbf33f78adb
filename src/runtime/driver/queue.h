#pragma once
#include <memory>
#include <mutex>
#include <set>

#include <tinygrad/device.h>

#include "runtime/driver/gpu.h"

namespace tinygrad::runtime::driver {

/// The stream of a GPU. It waits for streams of the same driver, and copies from memory of GPUs that it reaches.
class StreamQueue final : public Queue {
 public:
  explicit StreamQueue(std::shared_ptr<const Gpu> gpu) : gpu_(std::move(gpu)) {}

  void submit(std::span<const Command> commands) override;
  SignalPtr make_signal() override;
  bool can_wait_for(const Queue& other) const override;
  bool can_copy_from(Device& source) override;

 private:
  void run(const LaunchCommand& command) const;
  void run(const CopyCommand& command) const;
  void run(const WaitCommand& command) const;
  void run(const RaiseCommand& command) const;
  /// Whether the GPU can reach memory of the other one.
  bool reaches(const Gpu& other);

  const std::shared_ptr<const Gpu> gpu_;
  std::mutex mutex_;
  std::set<const Gpu*> reached_;
};

}  // namespace tinygrad::runtime::driver
