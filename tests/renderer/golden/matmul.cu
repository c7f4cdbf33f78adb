extern "C" __global__ void __launch_bounds__(16) kernel_k(float* out0, const float* in1, const float* in2) {
  const int group1 = (int)blockIdx.y;
  const int group0 = (int)blockIdx.x;
  int n0 = group0 * 16;
  const int item0 = (int)threadIdx.x;
  int n1 = group1 * 64 + n0 + item0;
  int n2 = group1 * 24;
  int n3 = n1 + 32;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  for (int i = 0; i < 12; i++) {
    int n4 = n2 + i;
    float x0 = in2[n0 + i * 32 + item0];
    acc0 += in1[n4] * x0;
    acc1 += in1[n4 + 12] * x0;
  }
  out0[n1] = acc0;
  out0[n3] = acc1;
}
