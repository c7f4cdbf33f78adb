#pragma once
#include <atomic>
#include <stop_token>

namespace tinygrad {

struct ThreadInterrupts;

/// While it lives, check_interrupt() does nothing in its thread: what was begun cannot be undone, so it is brought to its end.
class Uninterruptible {
 public:
  Uninterruptible() noexcept;
  ~Uninterruptible();
  Uninterruptible(const Uninterruptible&) = delete;
  Uninterruptible& operator=(const Uninterruptible&) = delete;
};

/// check_interrupt() for a loop of one thread in one Context: what belongs to the thread is looked up once.
class InterruptCheck {
 public:
  InterruptCheck() noexcept;
  void operator()() const;

 private:
  const ThreadInterrupts& mine_;
  const std::stop_token cancel_;  // of its own: a check of the process may run code that changes the options
};

/// Ends threads that work for one computation when one of them is cancelled. It must outlive them.
class SharedStop {
 public:
  /// For work that may be a part of other work that has a SharedStop.
  SharedStop() noexcept;
  void request() noexcept { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const noexcept { return requested_.load(std::memory_order_relaxed) || (outer_ && outer_->requested()); }

  /// While it lives, check_interrupt() in its thread asks a stop too.
  class Scope {
   public:
    explicit Scope(const SharedStop& stop) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const SharedStop* const previous_;
  };

 private:
  std::atomic<bool> requested_{false};
  const SharedStop* const outer_;
};

}  // namespace tinygrad
