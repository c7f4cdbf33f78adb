__kernel __attribute__((reqd_work_group_size(16, 1, 1))) void kernel_k(__global float* out0_buffer, ulong out0_begin, __global const float* in1_buffer, ulong in1_begin) {
  __global float* out0 = out0_buffer + out0_begin;
  __global const float* in1 = in1_buffer + in1_begin;
  __local float tile0[16] __attribute__((aligned(16)));
  const int group0 = get_group_id(0);
  const int item0 = get_local_id(0);
  int n0 = group0 * 256;
  bool c0 = item0 == 0;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  for (int i = 0; i < 16; i++) {
    acc1 += in1[n0 + i * 16 + item0];
  }
  tile0[item0] = acc1;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < 16; i++) {
    acc0 += tile0[i];
  }
  if (c0) out0[group0] = acc0;
}
