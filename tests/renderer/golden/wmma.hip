typedef _Float16 half;
typedef half half8 __attribute__((ext_vector_type(8), aligned(2)));
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
    half8 x0 = *(half8*)(in1 + n9);
    half8 x1 = *(half8*)(in1 + n9 + 8);
    int n10 = n0 + i * 256;
    half16 y0 = (half16){in2[n10], in2[n10 + 16], in2[n10 + 32], in2[n10 + 48], in2[n10 + 64], in2[n10 + 80], in2[n10 + 96], in2[n10 + 112], in2[n10 + 128], in2[n10 + 144], in2[n10 + 160], in2[n10 + 176], in2[n10 + 192], in2[n10 + 208], in2[n10 + 224], in2[n10 + 240]};
    float8 y1 = wmma_f32_16x16x16_f16((half16){x0.s0, x0.s1, x0.s2, x0.s3, x0.s4, x0.s5, x0.s6, x0.s7, x1.s0, x1.s1, x1.s2, x1.s3, x1.s4, x1.s5, x1.s6, x1.s7}, y0, (float8){acc0, acc1, acc2, acc3, acc4, acc5, acc6, acc7});
    acc0 = y1.s0;
    acc1 = y1.s1;
    acc2 = y1.s2;
    acc3 = y1.s3;
    acc4 = y1.s4;
    acc5 = y1.s5;
    acc6 = y1.s6;
    acc7 = y1.s7;
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
