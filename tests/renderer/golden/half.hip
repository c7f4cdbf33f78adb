typedef _Float16 half;
typedef half half8 __attribute__((ext_vector_type(8), aligned(2)));

extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 1))) void kernel_k(half* out0, const half* in1, const half* in2) {
  const int group0 = __builtin_amdgcn_workgroup_id_x();
  int n0 = group0 * 8;
  half8 x0 = *(half8*)(in1 + n0);
  half8 x1 = *(half8*)(in2 + n0);
  half8 y0 = (half8){x0.s0 * x1.s0 + 1.0f16, x0.s1 * x1.s1 + 1.0f16, x0.s2 * x1.s2 + 1.0f16, x0.s3 * x1.s3 + 1.0f16, x0.s4 * x1.s4 + 1.0f16, x0.s5 * x1.s5 + 1.0f16, x0.s6 * x1.s6 + 1.0f16, x0.s7 * x1.s7 + 1.0f16};
  *(half8*)(out0 + n0) = y0;
}
