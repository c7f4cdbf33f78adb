typedef _Float16 half;
typedef half half8 __attribute__((ext_vector_type(8), aligned(2)));
typedef short short8 __attribute__((ext_vector_type(8), aligned(2)));
typedef half half4 __attribute__((ext_vector_type(4), aligned(2)));
typedef short short4 __attribute__((ext_vector_type(4), aligned(2)));
typedef half half2 __attribute__((ext_vector_type(2), aligned(2)));
typedef short short2 __attribute__((ext_vector_type(2), aligned(2)));
#define INFINITY __builtin_inff()
#define inlined static inline __attribute__((always_inline, overloadable))
#define signbit __builtin_signbit
inlined half8 maximum(half8 a, half8 b) {  // a NaN wins, and 0 is more than -0
  half8 x = (short8)a ? b : a, y = (short8)a ? a : b;
  return y != y ? y : y > x ? y : x;
}
inlined half4 maximum(half4 a, half4 b) {  // a NaN wins, and 0 is more than -0
  half4 x = (short4)a ? b : a, y = (short4)a ? a : b;
  return y != y ? y : y > x ? y : x;
}
inlined half2 maximum(half2 a, half2 b) {  // a NaN wins, and 0 is more than -0
  half2 x = (short2)a ? b : a, y = (short2)a ? a : b;
  return y != y ? y : y > x ? y : x;
}
inlined half maximum(half a, half b) {  // a NaN wins, and 0 is more than -0
  half x = signbit(a) ? b : a, y = signbit(a) ? a : b;
  return y != y ? y : y > x ? y : x;
}

static inline void run(half* out0, const half* in1) {
  for (int i = 0; i < 4; i++) {
    int n0 = i * 64;
    half8 acc0 = (half8)(-INFINITY);
    for (int j = 0; j < 8; j++) {
      acc0 = maximum(acc0, *(half8*)(in1 + n0 + j * 8));
    }
    half4 y0 = maximum(acc0.lo, acc0.hi);
    half2 y1 = maximum(y0.lo, y0.hi);
    out0[i] = maximum(y1.s0, y1.s1);
  }
}

void kernel_k(void* const* bufs, const long* vars, long begin, long end, void* scratch) {
  run(bufs[0], bufs[1]);
}
