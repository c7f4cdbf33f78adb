__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void kernel_k(__global float* out0_buffer, ulong out0_begin, __global const float* in1_buffer, ulong in1_begin, __global const float* in2_buffer, ulong in2_begin) {
  __global float* out0 = out0_buffer + out0_begin;
  __global const float* in1 = in1_buffer + in1_begin;
  __global const float* in2 = in2_buffer + in2_begin;
  const int group0 = get_group_id(0);
  int n0 = group0 * 4;
  float4 x0 = vload4(0, in1 + n0);
  float4 x1 = vload4(0, in2 + n0);
  vstore4((float4)(x0.s0 * x1.s0 + 1.0f, x0.s1 * x1.s1 + 1.0f, x0.s2 * x1.s2 + 1.0f, x0.s3 * x1.s3 + 1.0f), 0, out0 + n0);
}
