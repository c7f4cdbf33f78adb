#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tinygrad {

/// Counts the kernels of a device, and numbers what is launched on one whose launches return early, so that an error which comes up at a
/// wait is laid to everything that may have run since the wait before: buffers keep the number of the launch that last wrote them.
class LaunchLog {
 public:
  /// The number of a launch that is about to be made, from 1. Until end() nothing says that it has finished.
  uint64_t begin() {
    running_.fetch_add(1);
    return last_.fetch_add(1) + 1;
  }
  void end() noexcept { running_.fetch_sub(1); }

  /// What a wait may say about, taken before it.
  uint64_t mark() const {
    const uint64_t last = last_.load();
    return running_.load() == 0 ? last : good_.load();
  }
  /// A wait since mark() has found no error.
  void passed(uint64_t mark);
  /// A wait has found one: what no earlier wait has passed is lost.
  void failed(std::string why);

  /// Why the launch of a number is lost, or empty.
  std::string why_lost(uint64_t number) const;

  void add_kernels(uint64_t count) { kernels_.fetch_add(count, std::memory_order_relaxed); }
  void add_wait() { waits_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }
  uint64_t kernels() const { return kernels_.load(std::memory_order_relaxed); }

 private:
  struct Loss {
    uint64_t after, last;
    std::string why;
  };
  std::atomic<uint64_t> running_{0}, last_{0}, good_{0}, kernels_{0}, waits_{0};
  std::atomic<bool> has_losses_{false};
  mutable std::mutex mutex_;
  std::vector<Loss> losses_;
};

}  // namespace tinygrad
