static float maximum_float(float a, float b) {  // a NaN wins, and 0 is more than -0
  float x = signbit(a) ? b : a, y = signbit(a) ? a : b;
  return y != y ? y : y > x ? y : x;
}

__kernel __attribute__((reqd_work_group_size(4, 1, 1))) void kernel_k(__global float* out0_buffer, ulong out0_begin, __global const float* in1_buffer, ulong in1_begin) {
  __global float* out0 = out0_buffer + out0_begin;
  __global const float* in1 = in1_buffer + in1_begin;
  const int group0 = get_group_id(0);
  const int item0 = get_local_id(0);
  int n0 = item0 * 32;
  int n1 = group0 + n0;
  float x0 = in1[n1];
  float acc0 = -INFINITY;
  for (int i = 0; i < 32; i++) {
    acc0 = maximum_float(acc0, in1[i + n0]);
  }
  float y0 = x0 - acc0;
  float y1 = 129.0f < y0 ? 129.0f : y0;
  float y2 = y1 < -152.0f ? -152.0f : y1;
  float y3 = y2 + 12583166.0f;
  float y4 = y2 - (float)(int)((uint)as_int(y3) + 0xb4bfff02u) + 0.0f;
  float y5 = y4 * (((((y4 * 0.00015453163f + 0.0013390863f) * y4 + 0.009618083f) * y4 + 0.05550357f) * y4 + 0.2402265f) * y4 + 0.6931472f);
  uint n2 = as_uint(y3);
  uint n3 = n2 >> 1;
  float y6 = (y5 + 1.0f) * as_float(n3 << 23) * as_float((n2 - n3) << 23);
  float acc1 = 0.0f;
  for (int i = 0; i < 32; i++) {
    float y7 = in1[i + n0] - acc0;
    float y8 = 129.0f < y7 ? 129.0f : y7;
    float y9 = y8 < -152.0f ? -152.0f : y8;
    float y10 = y9 + 12583166.0f;
    float y11 = y9 - (float)(int)((uint)as_int(y10) + 0xb4bfff02u) + 0.0f;
    float y12 = ((((y11 * 0.00015453163f + 0.0013390863f) * y11 + 0.009618083f) * y11 + 0.05550357f) * y11 + 0.2402265f) * y11 + 0.6931472f;
    uint n4 = as_uint(y10);
    uint n5 = n4 >> 1;
    acc1 += (y11 * y12 + 1.0f) * as_float(n5 << 23) * as_float((n4 - n5) << 23);
  }
  out0[n1] = y6 / acc1;
}
