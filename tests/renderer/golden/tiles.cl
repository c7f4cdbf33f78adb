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
  int n2 = item1 * 32;
  const int item0 = get_local_id(0);
  int n3 = n0 + n1 + n2 + item0;
  int n4 = n2 + item0 * 4;
  int n5 = item1 * 256;
  int n6 = item0 * 32;
  float4 y0 = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
  bool c0 = item1 < 1;
  int n7 = item1 * 4;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int i = 0; i < 8; i++) {
    float4 x0 = c0 ? vload4(0, in1 + n0 + i * 4 + n5 + n6) : y0;
    int n8 = n1 + i * 128 + item0;
    float x1 = in2[n8];
    float x2 = in2[n8 + 32];
    float x3 = in2[n8 + 64];
    float x4 = in2[n8 + 96];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (c0) vstore4(x0, 0, tile0 + n4);
    barrier(CLK_LOCAL_MEM_FENCE);
    float4 x5 = vload4(0, tile0 + n7);
    acc0 += x5.s0 * x1;
    acc1 += x5.s1 * x2;
    acc2 += x5.s2 * x3;
    acc3 += x5.s3 * x4;
  }
  out0[n3] = acc0 + acc1 + (acc2 + acc3);
}
