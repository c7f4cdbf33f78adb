#include <metal_stdlib>
using namespace metal;

static inline float2 simdgroup_8x8x8_f16_f32(half2 a, half2 b, float2 c) {
  simdgroup_matrix<half, 8, 8> p, q;
  simdgroup_matrix<float, 8, 8> sum;
  p.thread_elements()[0] = a[0];
  q.thread_elements()[0] = b[0];
  sum.thread_elements()[0] = c[0];
  p.thread_elements()[1] = a[1];
  q.thread_elements()[1] = b[1];
  sum.thread_elements()[1] = c[1];
  simdgroup_multiply_accumulate(sum, p, q, sum);
  return float2(sum.thread_elements()[0], sum.thread_elements()[1]);
}

[[max_total_threads_per_threadgroup(32)]] kernel void kernel_k(device float* out0 [[buffer(0)]], device const half* in1 [[buffer(1)]], device const half* in2 [[buffer(2)]], uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]], uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]) {
  const int item0 = int(thread_position_in_threadgroup.x);
  int n0 = item0 / 16;
  int n1 = item0 / 8 % 2 * 4;
  int n2 = item0 % 2 * 2;
  int n3 = item0 / 2 % 4;
  int n4 = n0 * 32 + n1 + n2 + n3 * 8;
  int n5 = n0 * 64 + n1 + n2 + n3 * 16;
  int n6 = n4 + 1;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  for (int i = 0; i < 2; i++) {
    int n7 = n5 + i * 8;
    int n8 = n4 + i * 64;
    float2 y0 = simdgroup_8x8x8_f16_f32(half2(in1[n7], in1[n7 + 1]), half2(in2[n8], in2[n8 + 1]), float2(acc0, acc1));
    acc0 = y0[0];
    acc1 = y0[1];
  }
  out0[n4] = acc0;
  out0[n6] = acc1;
}
