#pragma once

#include <cstddef>
#include <exception>
#include <mutex>
#include <utility>

namespace tinygrad {

/// Keeps the exception with the lowest index out of those that several threads throw, so that which one the user sees does
/// not depend on timing.
class FirstError {
 public:
  /// Calls f and keeps what it throws.
  template <class F>
  void guard(size_t index, F&& f) noexcept {
    try {
      f();
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_ || index < index_) error_ = std::current_exception(), index_ = index;
    }
  }
  void reset() {
    std::lock_guard lock(mutex_);
    error_ = nullptr;
  }
  /// Throws the kept exception, if any, and forgets it.
  void rethrow() {
    std::unique_lock lock(mutex_);
    if (!error_) return;
    std::exception_ptr error = std::exchange(error_, nullptr);
    lock.unlock();
    std::rethrow_exception(std::move(error));
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  size_t index_ = 0;
};

}  // namespace tinygrad
