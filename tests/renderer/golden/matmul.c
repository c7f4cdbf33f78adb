typedef float float16 __attribute__((ext_vector_type(16), aligned(4)));

static inline void run(float* out0, const float* in1, const float* in2, int begin, int end) {
  for (int chunk = begin; chunk < end; chunk++) {
    int n0 = chunk * 128;
    int n1 = chunk * 40;
    for (int i = 0; i < 2; i++) {
      int n2 = i * 64;
      int n3 = i * 20;
      for (int j = 0; j < 2; j++) {
        int n4 = j * 16;
        int n5 = n2 + n4 + n0;
        int n6 = n5 + 32;
        float16 acc0 = (float16)0.0f;
        float16 acc1 = (float16)0.0f;
        for (int k = 0; k < 10; k++) {
          int n7 = n3 + k + n1;
          float16 x0 = *(float16*)(in2 + n4 + k * 32);
          acc0 += in1[n7] * x0;
          acc1 += in1[n7 + 10] * x0;
        }
        *(float16*)(out0 + n5) = acc0;
        *(float16*)(out0 + n6) = acc1;
      }
    }
  }
}

void kernel_k(void* const* bufs, const long* vars, long begin, long end, void* scratch) {
  run(bufs[0], bufs[1], bufs[2], begin, end);
}
