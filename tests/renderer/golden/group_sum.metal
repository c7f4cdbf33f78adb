#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(64)]] kernel void kernel_k(device float* out0 [[buffer(0)]], device const float* in1 [[buffer(1)]], uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]], uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]) {
  alignas(16) threadgroup float tile0[64];
  const int group0 = int(threadgroup_position_in_grid.x);
  const int item0 = int(thread_position_in_threadgroup.x);
  int n0 = group0 * 256;
  bool c0 = item0 == 0;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  for (int i = 0; i < 4; i++) {
    acc1 += in1[n0 + i * 64 + item0];
  }
  tile0[item0] = acc1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = 0; i < 64; i++) {
    acc0 += tile0[i];
  }
  if (c0) out0[group0] = acc0;
}
