#pragma once
// As much of CUDA C as rendered kernels use, but for instructions in assembly, for clang on a CPU: they run with their meaning, an item in
// a thread.
#include "../items.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __align__(n) __attribute__((aligned(n)))
// Memory of a group is shared by all threads.
#define __shared__ static

struct Dimensions {
  const unsigned (Items::*of)[3];
  struct Axis {
    const unsigned (Items::*of)[3];
    int axis;
    operator unsigned() const { return (items->*of)[axis]; }
  } x{of, 0}, y{of, 1}, z{of, 2};
};
#define blockIdx (Dimensions{&Items::group})
#define threadIdx (Dimensions{&Items::item})
inline void __syncthreads() { items->barrier(items->self); }

#define memcpy __builtin_memcpy
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline float fabs(float x) { return __builtin_fabsf(x); }
inline double fabs(double x) { return __builtin_fabs(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }
inline float trunc(float x) { return __builtin_truncf(x); }
inline double trunc(double x) { return __builtin_trunc(x); }
template <class T>
bool signbit(T x) {
  return __builtin_signbit(double(x));
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}
