#pragma once
/// The memory that a thread works with while it does not hold the lock of the states.

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/function_ref.h"
#include "base/small_vector.h"
#include "device/buffer.h"

namespace tinygrad::tensor {

/// Memory that a realize or a replay reads and writes: many may read one, and only one may write it. All of it is claimed at once or none,
/// and nobody waits while they have some, so that no two wait for each other. The buffers must outlive it.
class Claims {
 public:
  Claims() = default;
  Claims(Claims&& other) noexcept;
  Claims& operator=(Claims&&) = delete;
  ~Claims() { release(); }

  /// What shares memory with the buffer is the same to all of these.
  void add(Buffer& buffer, bool writes);
  void add(const Claims& others);
  /// Forgets all; nothing may be held.
  void clear();
  bool contains(const Buffer& buffer) const { return find(buffer) != nullptr; }
  bool writes(const Buffer& buffer) const;
  bool writes_any() const { return writes_any_; }
  /// Whether some graph reads, or changes, the memory of one of them.
  bool has_users() const;
  /// Calls f with all that are written.
  void for_each_written(FunctionRef<void(Buffer&)> f) const;

  /// False, having claimed nothing, where somebody is in the way.
  bool try_acquire() noexcept;
  /// Waits until nobody is. Throws what check_interrupt() does.
  void acquire();
  void release() noexcept;

 private:
  struct Claim {
    Buffer* memory = nullptr;
    bool writes = false;
  };
  const Claim* find(const Buffer& buffer) const;
  void sort() const;

  mutable SmallVector<Claim, 4> claims_;  // each once, in the order of their addresses, where it is sorted
  mutable bool is_sorted_ = true;
  bool writes_any_ = false, is_held_ = false;
};

/// Tries until it succeeds, and waits in between until somebody has released claims. Throws what check_interrupt() does.
void wait_for_claims(FunctionRef<bool()> succeeds);

/// How long threads have waited, all together, for claims and for the lock of the states.
struct WaitTimes {
  std::chrono::nanoseconds claims{0}, states{0};
};
WaitTimes wait_times();
/// Adds to what is waited for the lock of the states.
void note_wait_for_states(std::chrono::nanoseconds waited);

}  // namespace tinygrad::tensor
