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
  int n2 = (int)((uint)as_int(y2 + 12582912.0f) + 0xb4c00000u);
  float y3 = y2 - (float)n2 + 0.0f;
  float y4 = y3 * (((((y3 * 0.00015453163f + 0.0013390863f) * y3 + 0.009618083f) * y3 + 0.05550357f) * y3 + 0.2402265f) * y3 + 0.6931472f);
  int n3 = n2 >> 1;
  float y5 = (y4 + 1.0f) * as_float((n3 + 127) << 23) * as_float((int)((uint)(int)((uint)n2 - (uint)n3) + 127u) << 23);
  float acc1 = 0.0f;
  for (int i = 0; i < 32; i++) {
    float y6 = in1[i + n0] - acc0;
    float y7 = 129.0f < y6 ? 129.0f : y6;
    float y8 = y7 < -152.0f ? -152.0f : y7;
    int n4 = (int)((uint)as_int(y8 + 12582912.0f) + 0xb4c00000u);
    float y9 = y8 - (float)n4 + 0.0f;
    float y10 = y9 * (((((y9 * 0.00015453163f + 0.0013390863f) * y9 + 0.009618083f) * y9 + 0.05550357f) * y9 + 0.2402265f) * y9 + 0.6931472f);
    int n5 = n4 >> 1;
    acc1 += (y10 + 1.0f) * as_float((n5 + 127) << 23) * as_float((int)((uint)(int)((uint)n4 - (uint)n5) + 127u) << 23);
  }
  out0[n1] = y5 / acc1;
}
