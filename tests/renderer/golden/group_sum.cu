extern "C" __global__ void __launch_bounds__(16) kernel_k(float* out0, const float* in1) {
  __shared__ __align__(16) float tile0[16];
  const int group0 = (int)blockIdx.x;
  const int item0 = (int)threadIdx.x;
  int n0 = group0 * 256;
  bool c0 = item0 == 0;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  for (int i = 0; i < 16; i++) {
    acc1 += in1[n0 + i * 16 + item0];
  }
  tile0[item0] = acc1;
  __syncthreads();
  for (int i = 0; i < 16; i++) {
    acc0 += tile0[i];
  }
  if (c0) out0[group0] = acc0;
}
