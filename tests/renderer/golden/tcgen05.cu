typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned short ushort;
struct __align__(16) float_64 { float at[64]; };
#define float64 float_64
struct __align__(16) float_4 { float at[4]; };
#define float4 float_4
struct Sums { unsigned int place, lane, phase; unsigned long done; bool starts; };
#define inlined static __device__ __forceinline__
inlined void meet() {
  asm volatile("fence.proxy.async.shared::cta;\ntcgen05.fence::before_thread_sync;" : : : "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}
inlined void fetch16(void* to, const void* from, bool valid) {
  asm volatile("{\n.reg .u64 near, far;\ncvta.to.shared.u64 near, %0;\ncvta.to.global.u64 far, %1;\n"
               "cp.async.cg.shared.global [near], [far], 16, %2;\n}"
               : : "l"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
inlined ulong matrix(const void* p) { ulong x; asm("cvta.to.shared.u64 %0, %1;" : "=l"(x) : "l"(p)); return x >> 4; }
inlined void tcgen05_m128n64k16_kn_bf16_f32(const Sums& s, int tile, ulong x, ulong y, bool& adds) {
  if (s.starts)
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, adds;\n}"
                 : : "r"(s.place + tile), "l"(x + 70403112370176ul), "l"(y + 70441759145984ul), "r"(135333008u), "r"((int)adds) : "memory");
  adds = true;
}
inlined void wait_for_sums(Sums& s) {
  if (s.starts)
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" : : "l"(s.done) : "memory");
  uint is_done;
  do asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}"
                  : "=r"(is_done) : "l"(s.done), "r"(s.phase) : "memory");
  while (!is_done);
  s.phase ^= 1;
  asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}
inlined void read(const Sums& s, int tile, bool adds, float64& z) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x64.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, [%64];\ntcgen05.wait::ld.sync.aligned;"
               : "=f"(z.at[0]), "=f"(z.at[1]), "=f"(z.at[2]), "=f"(z.at[3]), "=f"(z.at[4]), "=f"(z.at[5]), "=f"(z.at[6]), "=f"(z.at[7]), "=f"(z.at[8]), "=f"(z.at[9]), "=f"(z.at[10]), "=f"(z.at[11]), "=f"(z.at[12]), "=f"(z.at[13]), "=f"(z.at[14]), "=f"(z.at[15]), "=f"(z.at[16]), "=f"(z.at[17]), "=f"(z.at[18]), "=f"(z.at[19]), "=f"(z.at[20]), "=f"(z.at[21]), "=f"(z.at[22]), "=f"(z.at[23]), "=f"(z.at[24]), "=f"(z.at[25]), "=f"(z.at[26]), "=f"(z.at[27]), "=f"(z.at[28]), "=f"(z.at[29]), "=f"(z.at[30]), "=f"(z.at[31]), "=f"(z.at[32]), "=f"(z.at[33]), "=f"(z.at[34]), "=f"(z.at[35]), "=f"(z.at[36]), "=f"(z.at[37]), "=f"(z.at[38]), "=f"(z.at[39]), "=f"(z.at[40]), "=f"(z.at[41]), "=f"(z.at[42]), "=f"(z.at[43]), "=f"(z.at[44]), "=f"(z.at[45]), "=f"(z.at[46]), "=f"(z.at[47]), "=f"(z.at[48]), "=f"(z.at[49]), "=f"(z.at[50]), "=f"(z.at[51]), "=f"(z.at[52]), "=f"(z.at[53]), "=f"(z.at[54]), "=f"(z.at[55]), "=f"(z.at[56]), "=f"(z.at[57]), "=f"(z.at[58]), "=f"(z.at[59]), "=f"(z.at[60]), "=f"(z.at[61]), "=f"(z.at[62]), "=f"(z.at[63]) : "r"(s.place + s.lane + tile) : "memory");
  if (!adds) z = float64{};
}
inlined Sums take(void* shared, int item, int own, int all) {
  ulong near;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(near) : "l"(shared));
  if (item < 32)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;\n"
                 "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" : : "l"(near), "r"(all) : "memory");
  if (item == 0) {
    for (int i = 1; i <= 8; i++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "l"(near + 8 * i) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
  }
  meet();
  return Sums{*(volatile uint*)shared + item / 128 * own, (uint)(item & 96) << 16, 0, near + 8 + item / 128 * 8, item % 128 == 0};
}
inlined void give_back(const Sums& s, int item, int all) {
  asm volatile("tcgen05.fence::before_thread_sync;" : : : "memory");
  __syncthreads();
  if (item < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" : : "r"(s.place), "r"(all) : "memory");
}

extern "C" __global__ void __launch_bounds__(128) kernel_k(float* out0, const ushort* in1, const ushort* in2) {
  __shared__ __align__(16) ushort tile0[4128];
  __shared__ __align__(16) ushort tile1[2176];
  __shared__ __align__(16) unsigned long own[10];
  const int item = (int)threadIdx.x;
  Sums sums = take(own, item, 64, 64);
  bool adds0 = false;
  float64 sums0;
  const int item0 = (int)threadIdx.x;
  int n0 = item0 * 64;
  int n1 = item0 / 4;
  int n2 = item0 % 4;
  int n3 = n1 * 8 + n2 * 1032;
  int n4 = n1 * 64 + n2 * 8;
  int n5 = item0 / 8 * 8 + item0 % 8 * 136;
  int n6 = item0 * 8;
  int n7 = n0 + 4;
  int n8 = n0 + 8;
  int n9 = n0 + 12;
  int n10 = n0 + 16;
  int n11 = n0 + 20;
  int n12 = n0 + 24;
  int n13 = n0 + 28;
  int n14 = n0 + 32;
  int n15 = n0 + 36;
  int n16 = n0 + 40;
  int n17 = n0 + 44;
  int n18 = n0 + 48;
  int n19 = n0 + 52;
  int n20 = n0 + 56;
  int n21 = n0 + 60;
  adds0 = false;
  for (int i = 0; i < 2; i++) {
    int n22 = n4 + i * 32;
    int n23 = i * 2048 + n6;
    meet();
    for (int j = 0; j < 4; j++) {
      fetch16((tile0 + n3 + j * 256), (in1 + n22 + j * 2048), true);
    }
    asm volatile("cp.async.commit_group;" : : : "memory");
    for (int j = 0; j < 2; j++) {
      fetch16((tile1 + n5 + j * 1088), (in2 + n23 + j * 1024), true);
    }
    asm volatile("cp.async.commit_group;" : : : "memory");
    asm volatile("cp.async.wait_group 0;" : : : "memory");
    meet();
    asm volatile("cp.async.wait_group 0;" : : : "memory");
    meet();
    tcgen05_m128n64k16_kn_bf16_f32(sums, 0, matrix(tile0), matrix(tile1), adds0);
    tcgen05_m128n64k16_kn_bf16_f32(sums, 0, matrix((tile0 + 2064)), matrix((tile1 + 1088)), adds0);
    wait_for_sums(sums);
  }
  read(sums, 0, adds0, sums0);
  *(float4*)(out0 + n0) = float4{sums0.at[0], sums0.at[1], sums0.at[2], sums0.at[3]};
  *(float4*)(out0 + n7) = float4{sums0.at[4], sums0.at[5], sums0.at[6], sums0.at[7]};
  *(float4*)(out0 + n8) = float4{sums0.at[8], sums0.at[9], sums0.at[10], sums0.at[11]};
  *(float4*)(out0 + n9) = float4{sums0.at[12], sums0.at[13], sums0.at[14], sums0.at[15]};
  *(float4*)(out0 + n10) = float4{sums0.at[16], sums0.at[17], sums0.at[18], sums0.at[19]};
  *(float4*)(out0 + n11) = float4{sums0.at[20], sums0.at[21], sums0.at[22], sums0.at[23]};
  *(float4*)(out0 + n12) = float4{sums0.at[24], sums0.at[25], sums0.at[26], sums0.at[27]};
  *(float4*)(out0 + n13) = float4{sums0.at[28], sums0.at[29], sums0.at[30], sums0.at[31]};
  *(float4*)(out0 + n14) = float4{sums0.at[32], sums0.at[33], sums0.at[34], sums0.at[35]};
  *(float4*)(out0 + n15) = float4{sums0.at[36], sums0.at[37], sums0.at[38], sums0.at[39]};
  *(float4*)(out0 + n16) = float4{sums0.at[40], sums0.at[41], sums0.at[42], sums0.at[43]};
  *(float4*)(out0 + n17) = float4{sums0.at[44], sums0.at[45], sums0.at[46], sums0.at[47]};
  *(float4*)(out0 + n18) = float4{sums0.at[48], sums0.at[49], sums0.at[50], sums0.at[51]};
  *(float4*)(out0 + n19) = float4{sums0.at[52], sums0.at[53], sums0.at[54], sums0.at[55]};
  *(float4*)(out0 + n20) = float4{sums0.at[56], sums0.at[57], sums0.at[58], sums0.at[59]};
  *(float4*)(out0 + n21) = float4{sums0.at[60], sums0.at[61], sums0.at[62], sums0.at[63]};
  give_back(sums, item, 64);
}
