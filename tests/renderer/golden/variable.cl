__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void kernel_k(__global float* out0_buffer, ulong out0_begin, __global const float* in1_buffer, ulong in1_begin, long n_argument) {
  __global float* out0 = out0_buffer + out0_begin;
  __global const float* in1 = in1_buffer + in1_begin;
  const int n = (int)n_argument;
  const int group0 = get_group_id(0);
  out0[group0] = in1[group0] * 2.0f;
}
