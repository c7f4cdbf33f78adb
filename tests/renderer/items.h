#pragma once
/// Kernels of work-groups on a CPU, a thread for each item: what such a thread knows, and what it does together with others. The rest of it
/// is in tests/program/cpu_items.h.

/// Passed by the tests; the same there.
struct Items {
  void* self;
  unsigned group[3], item[3];
  unsigned lane;  ///< in the wave
  void (*barrier)(void* self);
  /// What each lane of the wave gives, one after the other, until the lane's next call.
  const void* (*all_lanes)(void* self, const void* mine, unsigned long bytes);
};

inline thread_local const Items* items = nullptr;

template <class Held>
const Held* all_lanes(const Held& mine) {
  return static_cast<const Held*>(items->all_lanes(items->self, &mine, sizeof mine));
}

/// An argument of a kernel, of any type that points to memory.
struct AnyPointer {
  const void* address;
  template <class T>
  operator T*() const {
    return static_cast<T*>(const_cast<void*>(address));
  }
};
