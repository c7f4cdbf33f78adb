typedef unsigned short ushort;
typedef ushort ushort4 __attribute__((ext_vector_type(4), aligned(2)));
typedef float float4 __attribute__((ext_vector_type(4), aligned(4)));
#define inlined static inline __attribute__((device, always_inline))
inlined float4 mfma_f32_16x16x16_bf16(ushort4 a, ushort4 b, float4 c) {
  typedef short held __attribute__((ext_vector_type(4)));
  const held p = __builtin_bit_cast(held, a), q = __builtin_bit_cast(held, b);
  return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(p, q, c, 0, 0, 0);
}

extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void kernel_k(float* out0, const ushort* in1, const ushort* in2) {
  const int item0 = __builtin_amdgcn_workitem_id_x();
  int n0 = item0 / 16;
  int n1 = item0 % 16;
  int n2 = n0 * 64 + n1;
  int n3 = n0 * 4 + n1 * 32;
  int n4 = n2 + 16;
  int n5 = n2 + 32;
  int n6 = n2 + 48;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int i = 0; i < 2; i++) {
    int n7 = n2 + i * 256;
    float4 y0 = mfma_f32_16x16x16_bf16(*(ushort4*)(in1 + n3 + i * 16), (ushort4){in2[n7], in2[n7 + 16], in2[n7 + 32], in2[n7 + 48]}, (float4){acc0, acc1, acc2, acc3});
    acc0 = y0.s0;
    acc1 = y0.s1;
    acc2 = y0.s2;
    acc3 = y0.s3;
  }
  out0[n2] = acc0;
  out0[n4] = acc1;
  out0[n5] = acc2;
  out0[n6] = acc3;
}
