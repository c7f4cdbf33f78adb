#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(1)]] kernel void kernel_k(device float* out0 [[buffer(0)]], device const float* in1 [[buffer(1)]], constant long* variables [[buffer(2)]], uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]], uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]) {
  const long n_argument = variables[0];
  const int n = (int)n_argument;
  const int group0 = int(threadgroup_position_in_grid.x);
  out0[group0] = in1[group0] * 2.0f;
}
