__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void kernel_k(__global float* out0_buffer, ulong out0_begin, __global const float* in1_buffer, ulong in1_begin, __global const float* in2_buffer, ulong in2_begin) {
  __global float* out0 = out0_buffer + out0_begin;
  __global const float* in1 = in1_buffer + in1_begin;
  __global const float* in2 = in2_buffer + in2_begin;
  __local float tile0[32] __attribute__((aligned(16)));
  const int group1 = get_group_id(1);
  int n0 = group1 * 256;
  const int group0 = get_group_id(0);
  int n1 = group0 * 8;
  const int item1 = get_local_id(1);
  const int item0 = get_local_id(0);
  int n2 = n0 + n1 + item1 * 32 + item0;
  int n3 = item1 * 8 + item0;
  int n4 = n3 / 4;
  int n5 = n3 % 4;
  int n6 = n4 * 4 + n5;
  bool c0 = n3 < 32;
  int n7 = n4 * 32;
  int n8 = item1 * 4;
  int n9 = n8 + 1;
  int n10 = n8 + 2;
  int n11 = n8 + 3;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int i = 0; i < 8; i++) {
    float y0 = c0 ? in1[c0 ? n0 + i * 4 + n7 + n5 : 0] : 0.0f;
    int n12 = n1 + i * 128 + item0;
    float x0 = in2[n12];
    float x1 = in2[n12 + 32];
    float x2 = in2[n12 + 64];
    float x3 = in2[n12 + 96];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (c0) tile0[n6] = y0;
    barrier(CLK_LOCAL_MEM_FENCE);
    acc0 += tile0[n8] * x0;
    acc1 += tile0[n9] * x1;
    acc2 += tile0[n10] * x2;
    acc3 += tile0[n11] * x3;
  }
  out0[n2] = acc0 + acc1 + (acc2 + acc3);
}
