static inline __attribute__((device, always_inline)) void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void kernel_k(float* out0, const float* in1) {
  __attribute__((shared, aligned(16))) float tile0[64];
  const int group0 = __builtin_amdgcn_workgroup_id_x();
  const int item0 = __builtin_amdgcn_workitem_id_x();
  int n0 = group0 * 256;
  bool c0 = item0 == 0;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  for (int i = 0; i < 4; i++) {
    acc1 += in1[n0 + i * 64 + item0];
  }
  tile0[item0] = acc1;
  barrier();
  for (int i = 0; i < 64; i++) {
    acc0 += tile0[i];
  }
  if (c0) out0[group0] = acc0;
}
