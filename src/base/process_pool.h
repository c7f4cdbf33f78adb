#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>

namespace tinygrad::detail {

/// The pool of a kind that the whole process shares: made at the first use, never destroyed. Threads do not follow a process through
/// fork(), and locks may be held at that moment, so a child makes a pool of its own and leaves its parent's alone.
template <class Pool>
class ProcessPool {
 public:
  static Pool& get(size_t (*threads)()) {
    if (Pool* pool = pool_.load(std::memory_order_acquire)) return *pool;
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] { pool_.store(nullptr); });
    auto made = std::make_unique<Pool>(threads());
    Pool* first = nullptr;
    return pool_.compare_exchange_strong(first, made.get()) ? *made.release() : *first;
  }

 private:
  static inline std::atomic<Pool*> pool_{nullptr};
};

}  // namespace tinygrad::detail
