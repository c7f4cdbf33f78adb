#pragma once

namespace tinygrad {

/// For loops that wait for another thread: lets the processor's other thread run, and saves power.
inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace tinygrad
