typedef unsigned short ushort;
struct __align__(4) ushort_2 { ushort at[2]; };
#define ushort2 ushort_2
struct __align__(16) ushort_8 { ushort at[8]; };
#define ushort8 ushort_8
struct __align__(8) ushort_4 { ushort at[4]; };
#define ushort4 ushort_4
struct __align__(16) float_4 { float at[4]; };
#define float4 float_4
struct __align__(8) float_2 { float at[2]; };
#define float2 float_2
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
  int n7 = n4 + 128;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int i = 0; i < 2; i++) {
    int n8 = n5 + i * 16;
    ushort2 x0 = *(ushort2*)(in1 + n8);
    ushort2 x1 = *(ushort2*)(in1 + n8 + 256);
    ushort2 x2 = *(ushort2*)(in1 + n8 + 8);
    ushort2 x3 = *(ushort2*)(in1 + n8 + 264);
    int n9 = n6 + i * 256;
    float4 y0 = mma_m16n8k16_bf16_f32(ushort8{x0.at[0], x0.at[1], x1.at[0], x1.at[1], x2.at[0], x2.at[1], x3.at[0], x3.at[1]}, ushort4{in2[n9], in2[n9 + 16], in2[n9 + 128], in2[n9 + 144]}, float4{acc0, acc1, acc2, acc3});
    acc0 = y0.at[0];
    acc1 = y0.at[1];
    acc2 = y0.at[2];
    acc3 = y0.at[3];
  }
  *(float2*)(out0 + n4) = float2{acc0, acc1};
  *(float2*)(out0 + n7) = float2{acc2, acc3};
}
