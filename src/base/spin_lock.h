#pragma once

#include <atomic>
#include <thread>

namespace tinygrad {

/// A lock for critical sections of a few dozen instructions: a mutex costs more than what it would guard. Waiters give up their turn
/// after a while, so an owner that was put to sleep gets to run.
class SpinLock {
 public:
  void lock() noexcept {
    for (int spins = 0; held_.exchange(true, std::memory_order_acquire);) {
      while (held_.load(std::memory_order_relaxed))
        if (++spins > 64) std::this_thread::yield();
    }
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace tinygrad
