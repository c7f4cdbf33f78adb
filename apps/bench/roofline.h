#pragma once
/// What the machine can do, measured in this process: arithmetic in registers and memory traffic.

#include <cstddef>

#include <tinygrad/dtype.h>

namespace tinygrad::apps {

struct Roofline {
  double gflops = 0;  ///< multiplications and additions a second of the fastest instruction for the dtype, in 1e9
  double gb_s = 0;    ///< bytes read and written a second, in 1e9: of copying or of reading, whichever is faster
  int threads = 0;

  /// The least seconds that work can take.
  double seconds(double flops, double bytes) const;
};

/// Measured with `threads` threads, each on a CPU of its own, for a fraction of a second each. Traffic is that of buffers of `bytes`
/// together (at most 1 GiB), in the cache that they fit in.
Roofline measure_roofline(DType dtype, double bytes, int threads);

/// The greater figures of two measurements: what disturbed one says nothing about the machine.
Roofline higher(const Roofline& a, const Roofline& b);

/// The threads that the library computes with, by NUM_CPU_THREADS and the CPUs that the process may use.
int compute_threads();

}  // namespace tinygrad::apps
