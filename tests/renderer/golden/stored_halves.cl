static float half_to_float(ushort x) { return vload_half(0, (const __private half*)&x); }
static ushort float_to_half(float x) { ushort y; vstore_half_rte(x, 0, (__private half*)&y); return y; }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void kernel_k(__global ushort* out0_buffer, ulong out0_begin, __global const ushort* in1_buffer, ulong in1_begin, __global const ushort* in2_buffer, ulong in2_begin) {
  __global ushort* out0 = out0_buffer + out0_begin;
  __global const ushort* in1 = in1_buffer + in1_begin;
  __global const ushort* in2 = in2_buffer + in2_begin;
  const int group0 = get_group_id(0);
  ushort y0 = float_to_half(half_to_float(float_to_half(half_to_float((ushort)(in1[group0])) * half_to_float((ushort)(in2[group0])))) + 1.0f);
  out0[group0] = (ushort)(y0);
}
