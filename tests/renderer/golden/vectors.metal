#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(1)]] kernel void kernel_k(device float* out0 [[buffer(0)]], device const float* in1 [[buffer(1)]], device const float* in2 [[buffer(2)]], uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]], uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]) {
  const int group0 = int(threadgroup_position_in_grid.x);
  int n0 = group0 * 4;
  int n1 = n0 + 1;
  float x0 = in1[n1];
  float x1 = in2[n1];
  int n2 = n0 + 2;
  float x2 = in1[n2];
  float x3 = in2[n2];
  int n3 = n0 + 3;
  float x4 = in1[n3];
  float x5 = in2[n3];
  out0[n0] = in1[n0] * in2[n0] + 1.0f;
  out0[n1] = x0 * x1 + 1.0f;
  out0[n2] = x2 * x3 + 1.0f;
  out0[n3] = x4 * x5 + 1.0f;
}
