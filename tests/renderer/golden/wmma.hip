typedef _Float16 half;
typedef half half16 __attribute__((ext_vector_type(16), aligned(2)));
typedef float float8 __attribute__((ext_vector_type(8), aligned(4)));
#define inlined static inline __attribute__((device, always_inline))
inlined float8 wmma_f32_16x16x16_f16(half16 a, half16 b, float8 c) {
  typedef half held __attribute__((ext_vector_type(16)));
  const held p = __builtin_bit_cast(held, a), q = __builtin_bit_cast(held, b);
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(p, q, c);
}

extern "C" __attribute__((global, amdgpu_flat_work_group_size(32, 32))) void kernel_k(float* out0, const half* in1, const half* in2) {
  const int item0 = __builtin_amdgcn_workitem_id_x();
  int n0 = item0 % 16;
  int n1 = n0 * 32;
  int n2 = item0 + 32;
  int n3 = item0 + 64;
  int n4 = item0 + 96;
  int n5 = item0 + 128;
  int n6 = item0 + 160;
  int n7 = item0 + 192;
  int n8 = item0 + 224;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  float acc4 = 0.0f;
  float acc5 = 0.0f;
  float acc6 = 0.0f;
  float acc7 = 0.0f;
  for (int i = 0; i < 2; i++) {
    int n9 = n1 + i * 16;
    half16 y0 = (half16){in1[n9], in1[n9 + 1], in1[n9 + 2], in1[n9 + 3], in1[n9 + 4], in1[n9 + 5], in1[n9 + 6], in1[n9 + 7], in1[n9 + 8], in1[n9 + 9], in1[n9 + 10], in1[n9 + 11], in1[n9 + 12], in1[n9 + 13], in1[n9 + 14], in1[n9 + 15]};
    int n10 = n0 + i * 256;
    half16 y1 = (half16){in2[n10], in2[n10 + 16], in2[n10 + 32], in2[n10 + 48], in2[n10 + 64], in2[n10 + 80], in2[n10 + 96], in2[n10 + 112], in2[n10 + 128], in2[n10 + 144], in2[n10 + 160], in2[n10 + 176], in2[n10 + 192], in2[n10 + 208], in2[n10 + 224], in2[n10 + 240]};
    float8 y2 = wmma_f32_16x16x16_f16(y0, y1, (float8){acc0, acc1, acc2, acc3, acc4, acc5, acc6, acc7});
    acc0 = y2.s0;
    acc1 = y2.s1;
    acc2 = y2.s2;
    acc3 = y2.s3;
    acc4 = y2.s4;
    acc5 = y2.s5;
    acc6 = y2.s6;
    acc7 = y2.s7;
  }
  out0[item0] = acc0;
  out0[n2] = acc1;
  out0[n3] = acc2;
  out0[n4] = acc3;
  out0[n5] = acc4;
  out0[n6] = acc5;
  out0[n7] = acc6;
  out0[n8] = acc7;
}
