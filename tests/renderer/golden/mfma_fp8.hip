typedef unsigned char uchar;
typedef uchar uchar8 __attribute__((ext_vector_type(8), aligned(1)));
typedef float float4 __attribute__((ext_vector_type(4), aligned(4)));
typedef unsigned long ulong;
#define inlined static inline __attribute__((device, always_inline))
inlined long to_fnuz(long x) {
  const ulong bits = x & 0x7f7f7f7f7f7f7f7ful, top = 0x8080808080808080ul;
  const ulong nonzero = (bits + 0x7f7f7f7f7f7f7f7ful) & top, nan = (bits + 0x0101010101010101ul) & top;
  return ((bits | (x & nonzero)) & ~((nan >> 7) * 0xff)) | nan;
}
inlined float4 mfma_f32_16x16x32_fp8(uchar8 a, uchar8 b, float4 c) {
  typedef long held;
  const held p = __builtin_bit_cast(held, a), q = __builtin_bit_cast(held, b);
  return c + 4.0f * __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(to_fnuz(p), to_fnuz(q), float4(0.0f), 0, 0, 0);
}

extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void kernel_k(float* out0, const uchar* in1, const uchar* in2) {
  const int item0 = __builtin_amdgcn_workitem_id_x();
  int n0 = item0 / 16;
  int n1 = item0 % 16;
  int n2 = n0 * 64 + n1;
  int n3 = n0 * 8 + n1 * 64;
  int n4 = n0 * 128 + n1;
  int n5 = n2 + 16;
  int n6 = n2 + 32;
  int n7 = n2 + 48;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int i = 0; i < 2; i++) {
    int n8 = n4 + i * 512;
    float4 y0 = mfma_f32_16x16x32_fp8(*(uchar8*)(in1 + n3 + i * 32), (uchar8){in2[n8], in2[n8 + 16], in2[n8 + 32], in2[n8 + 48], in2[n8 + 64], in2[n8 + 80], in2[n8 + 96], in2[n8 + 112]}, (float4){acc0, acc1, acc2, acc3});
    acc0 = y0.s0;
    acc1 = y0.s1;
    acc2 = y0.s2;
    acc3 = y0.s3;
  }
  out0[n2] = acc0;
  out0[n5] = acc1;
  out0[n6] = acc2;
  out0[n7] = acc3;
}
