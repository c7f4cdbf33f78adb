#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>

namespace tinygrad::detail {

/// What the whole process shares of a kind: made at the first use, never destroyed. Threads do not follow a process through fork(), and
/// locks may be held at that moment, so a child makes one of its own and leaves its parent's alone.
template <class T>
class PerProcess {
 public:
  /// Made of what each argument returns.
  template <class... Argument>
  static T& get(Argument... argument) {
    if (T* known = known_.load(std::memory_order_acquire)) return *known;
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] { known_.store(nullptr); });
    auto made = std::make_unique<T>(argument()...);
    T* first = nullptr;
    return known_.compare_exchange_strong(first, made.get()) ? *made.release() : *first;
  }

 private:
  static inline std::atomic<T*> known_{nullptr};
};

}  // namespace tinygrad::detail
