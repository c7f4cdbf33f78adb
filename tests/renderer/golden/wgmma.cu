typedef unsigned short ushort;
struct __align__(16) float_32 { float at[32]; };
#define float32 float_32
typedef unsigned long ulong;
struct __align__(8) float_2 { float at[2]; };
#define float2 float_2
#define inlined static __device__ __forceinline__
inlined void fetch16(void* to, const void* from, bool valid) {
  asm volatile("{\n.reg .u64 near, far;\ncvta.to.shared.u64 near, %0;\ncvta.to.global.u64 far, %1;\n"
               "cp.async.cg.shared.global [near], [far], 16, %2;\n}"
               : : "l"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
inlined ulong matrix(const void* p) { ulong x; asm("cvta.to.shared.u64 %0, %1;" : "=l"(x) : "l"(p)); return x >> 4; }
inlined void wgmma_m64n64k16_kn_bf16_f32(float32& z, ulong x, ulong y) {
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, adds, 1, 1, 0, 1;\n}"
               : "+f"(z.at[0]), "+f"(z.at[1]), "+f"(z.at[2]), "+f"(z.at[3]), "+f"(z.at[4]), "+f"(z.at[5]), "+f"(z.at[6]), "+f"(z.at[7]), "+f"(z.at[8]), "+f"(z.at[9]), "+f"(z.at[10]), "+f"(z.at[11]), "+f"(z.at[12]), "+f"(z.at[13]), "+f"(z.at[14]), "+f"(z.at[15]), "+f"(z.at[16]), "+f"(z.at[17]), "+f"(z.at[18]), "+f"(z.at[19]), "+f"(z.at[20]), "+f"(z.at[21]), "+f"(z.at[22]), "+f"(z.at[23]), "+f"(z.at[24]), "+f"(z.at[25]), "+f"(z.at[26]), "+f"(z.at[27]), "+f"(z.at[28]), "+f"(z.at[29]), "+f"(z.at[30]), "+f"(z.at[31]) : "l"(x + 13835058124001705984ul), "l"(y + 4611686293305360384ul) : "memory");
}
inlined void pin(float32& z) { asm volatile("" : "+f"(z.at[0]), "+f"(z.at[1]), "+f"(z.at[2]), "+f"(z.at[3]), "+f"(z.at[4]), "+f"(z.at[5]), "+f"(z.at[6]), "+f"(z.at[7]), "+f"(z.at[8]), "+f"(z.at[9]), "+f"(z.at[10]), "+f"(z.at[11]), "+f"(z.at[12]), "+f"(z.at[13]), "+f"(z.at[14]), "+f"(z.at[15]), "+f"(z.at[16]), "+f"(z.at[17]), "+f"(z.at[18]), "+f"(z.at[19]), "+f"(z.at[20]), "+f"(z.at[21]), "+f"(z.at[22]), "+f"(z.at[23]), "+f"(z.at[24]), "+f"(z.at[25]), "+f"(z.at[26]), "+f"(z.at[27]), "+f"(z.at[28]), "+f"(z.at[29]), "+f"(z.at[30]), "+f"(z.at[31]) : : "memory"); }

extern "C" __global__ void __launch_bounds__(128) kernel_k(float* out0, const ushort* in1, const ushort* in2) {
  __shared__ __align__(1024) ushort tile0[2048];
  __shared__ __align__(1024) ushort tile1[2048];
  const int item0 = (int)threadIdx.x;
  int n0 = item0 / 32;
  int n1 = item0 / 4;
  int n2 = n0 * 1024 + item0 % 4 * 2 + n1 % 8 * 64;
  int n3 = item0 / 16;
  int n4 = item0 / 2;
  int n5 = n1 * 16 + (n3 + item0) % 2 * 8 + n4 % 2 * 1024;
  int n6 = item0 * 8;
  for (int i = 0; i < 2; i++) {
    fetch16((tile0 + n5 + i * 512), (in1 + n6 + i * 1024), true);
  }
  asm volatile("cp.async.commit_group;" : : : "memory");
  int n7 = (n1 + n0) % 2 * 32 + (n4 + n3) % 2 * 16 + (item0 / 8 + item0) % 2 * 8 + item0 % 8 * -8 + n6;
  for (int i = 0; i < 2; i++) {
    int n8 = i * 1024;
    fetch16((tile1 + n7 + n8), (in2 + n6 + n8), true);
  }
  asm volatile("cp.async.commit_group;" : : : "memory");
  float32 y0 = float32{0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
  int n9 = n2 + 512;
  int n10 = n2 + 8;
  int n11 = n2 + 520;
  int n12 = n2 + 16;
  int n13 = n2 + 528;
  int n14 = n2 + 24;
  int n15 = n2 + 536;
  int n16 = n2 + 32;
  int n17 = n2 + 544;
  int n18 = n2 + 40;
  int n19 = n2 + 552;
  int n20 = n2 + 48;
  int n21 = n2 + 560;
  int n22 = n2 + 56;
  int n23 = n2 + 568;
  asm volatile("cp.async.wait_group 0;" : : : "memory");
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
  __syncthreads();
  asm volatile("cp.async.wait_group 0;" : : : "memory");
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
  __syncthreads();
  float32 y1 = y0;
  pin(y1); asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); wgmma_m64n64k16_kn_bf16_f32(y1, matrix(tile0), matrix(tile1));
  wgmma_m64n64k16_kn_bf16_f32(y1, matrix((tile0 + 1024)), matrix((tile1 + 1024)));
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" : : : "memory"); pin(y1);
  *(float2*)(out0 + n2) = float2{y1.at[0], y1.at[1]};
  *(float2*)(out0 + n9) = float2{y1.at[2], y1.at[3]};
  *(float2*)(out0 + n10) = float2{y1.at[4], y1.at[5]};
  *(float2*)(out0 + n11) = float2{y1.at[6], y1.at[7]};
  *(float2*)(out0 + n12) = float2{y1.at[8], y1.at[9]};
  *(float2*)(out0 + n13) = float2{y1.at[10], y1.at[11]};
  *(float2*)(out0 + n14) = float2{y1.at[12], y1.at[13]};
  *(float2*)(out0 + n15) = float2{y1.at[14], y1.at[15]};
  *(float2*)(out0 + n16) = float2{y1.at[16], y1.at[17]};
  *(float2*)(out0 + n17) = float2{y1.at[18], y1.at[19]};
  *(float2*)(out0 + n18) = float2{y1.at[20], y1.at[21]};
  *(float2*)(out0 + n19) = float2{y1.at[22], y1.at[23]};
  *(float2*)(out0 + n20) = float2{y1.at[24], y1.at[25]};
  *(float2*)(out0 + n21) = float2{y1.at[26], y1.at[27]};
  *(float2*)(out0 + n22) = float2{y1.at[28], y1.at[29]};
  *(float2*)(out0 + n23) = float2{y1.at[30], y1.at[31]};
}
