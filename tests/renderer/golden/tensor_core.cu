typedef unsigned short ushort;
struct ushort_8 { ushort at[8]; };  // aligned to 2
#define ushort8 ushort_8
struct ushort_4 { ushort at[4]; };  // aligned to 2
#define ushort4 ushort_4
struct float_4 { float at[4]; };  // aligned to 4
#define float4 float_4
#define inlined static __device__ __forceinline__
inlined float4 mma_m16n8k16_bf16_f32(ushort8 x, ushort4 y, float4 z) {
  float c[4];
  memcpy(c, &z, sizeof z);
  unsigned int a[4], b[2];
  memcpy(a, &x, sizeof x);
  memcpy(b, &y, sizeof y);
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  memcpy(&z, c, sizeof z);
  return z;
}

extern "C" __global__ void __launch_bounds__(32) kernel_k(float* out0, const ushort* in1, const ushort* in2) {
  const int item0 = (int)threadIdx.x;
  int n0 = item0 / 4;
  int n1 = item0 % 4;
  int n2 = n1 * 2;
  const int group1 = (int)blockIdx.y;
  const int group0 = (int)blockIdx.x;
  int n3 = group0 * 8;
  int n4 = n0 * 16 + n2 + group1 * 256 + n3;
  int n5 = n0 * 32 + n2 + group1 * 512;
  int n6 = n0 + n1 * 32 + n3;
  int n7 = n4 + 1;
  int n8 = n4 + 128;
  int n9 = n4 + 129;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int i = 0; i < 2; i++) {
    int n10 = n5 + i * 16;
    ushort8 n11 = ushort8{in1[n10], in1[n10 + 1], in1[n10 + 256], in1[n10 + 257], in1[n10 + 8], in1[n10 + 9], in1[n10 + 264], in1[n10 + 265]};
    int n12 = n6 + i * 256;
    float4 y0 = mma_m16n8k16_bf16_f32(n11, ushort4{in2[n12], in2[n12 + 16], in2[n12 + 128], in2[n12 + 144]}, float4{acc0, acc1, acc2, acc3});
    acc0 = y0.at[0];
    acc1 = y0.at[1];
    acc2 = y0.at[2];
    acc3 = y0.at[3];
  }
  out0[n4] = acc0;
  out0[n7] = acc1;
  out0[n8] = acc2;
  out0[n9] = acc3;
}
