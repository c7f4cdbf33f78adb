#pragma once

#include <atomic>
#include <cstdint>

#include <tinygrad/export.h>

namespace tinygrad {

/// What the whole process has run since the start or the last reset(). Any thread may add to and read them.
struct TINYGRAD_EXPORT GlobalCounters {
  static std::atomic<uint64_t> global_ops;    ///< arithmetic operations of all kernels
  static std::atomic<uint64_t> global_mem;    ///< bytes that all kernels loaded and stored
  static std::atomic<double> time_sum_s;      ///< seconds of device time, where it was measured
  static std::atomic<uint64_t> kernel_count;  ///< kernels that ran
  static std::atomic<int64_t> mem_used;       ///< bytes in buffers now; not reset

  /// Sets all but mem_used to zero.
  static void reset() noexcept;
};

}  // namespace tinygrad
