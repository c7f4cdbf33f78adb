#pragma once
/// Calls of jitted functions.

#include <cstdint>

#include <tinygrad/counters.h>
#include <tinygrad/tinygrad.h>

namespace tinygrad::test {

/// Calls it until it is captured and has been replayed.
template <class F>
void capture(const F& f, const Tensor& x) {
  for (int i = 0; i < 3; ++i) f(x).realize();
}

/// The kernels that a call runs.
template <class F>
uint64_t kernels_of_call(const F& f, const Tensor& x) {
  GlobalCounters::reset();
  f(x).realize();
  return GlobalCounters::kernel_count;
}

}  // namespace tinygrad::test
