#include "runtime/interp/tile_sum.h"

#include <cfloat>
#include <cmath>
#include <cstdint>

namespace tinygrad::runtime::interp {

namespace {

/// A denormal is taken as a zero of its sign.
float flushed(float x) { return std::fabs(x) < FLT_MIN ? std::copysign(0.0F, x) : x; }

/// The even and the odd terms have sums of their own, which are fused multiply-adds. Of bfloat16, denormal factors are zeros; those of
/// float16 are normal as float32.
double sum_of_floats(const TensorCore& core, const double* a, const double* b, size_t step, double c) {
  float sums[2] = {0, 0};
  for (size_t k = 0; k < size_t(core.k); ++k) {
    float& sum = sums[k % 2];
    sum = flushed(std::fma(flushed(float(a[k])), flushed(float(b[k * step])), sum));
  }
  return double(flushed(flushed(float(c)) + flushed(sums[0] + sums[1])));
}

/// Overflow wraps around.
double sum_of_integers(const TensorCore& core, const double* a, const double* b, size_t step, double c) {
  auto sum = int64_t(c);
  for (size_t k = 0; k < size_t(core.k); ++k) sum += int64_t(a[k]) * int64_t(b[k * step]);
  return double(int32_t(uint32_t(uint64_t(sum))));
}

}  // namespace

double tile_sum(const TensorCore& core, const double* a, const double* b, size_t step, double c) {
  return is_float(core.out) ? sum_of_floats(core, a, b, step, c) : sum_of_integers(core, a, b, step, c);
}

}  // namespace tinygrad::runtime::interp
