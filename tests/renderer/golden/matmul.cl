__kernel __attribute__((reqd_work_group_size(16, 1, 1))) void kernel_k(__global float* out0_buffer, ulong out0_begin, __global const float* in1_buffer, ulong in1_begin, __global const float* in2_buffer, ulong in2_begin) {
  __global float* out0 = out0_buffer + out0_begin;
  __global const float* in1 = in1_buffer + in1_begin;
  __global const float* in2 = in2_buffer + in2_begin;
  const int group1 = get_group_id(1);
  const int group0 = get_group_id(0);
  int n0 = group0 * 16;
  const int item0 = get_local_id(0);
  int n1 = group1 * 64 + n0 + item0;
  int n2 = group1 * 24;
  int n3 = n1 + 32;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  for (int i = 0; i < 12; i++) {
    int n4 = n2 + i;
    float x0 = in2[n0 + i * 32 + item0];
    acc0 += in1[n4] * x0;
    acc1 += in1[n4 + 12] * x0;
  }
  out0[n1] = acc0;
  out0[n3] = acc1;
}
