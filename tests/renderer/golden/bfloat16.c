typedef unsigned int uint;
typedef uint uint8 __attribute__((ext_vector_type(8), aligned(4)));
typedef float float8 __attribute__((ext_vector_type(8), aligned(4)));
typedef unsigned short ushort;
typedef ushort ushort8 __attribute__((ext_vector_type(8), aligned(2)));
typedef int int8 __attribute__((ext_vector_type(8), aligned(4)));
#define convert __builtin_convertvector

static inline void run(ushort* out0, const ushort* in1, const ushort* in2) {
  for (int i = 0; i < 8; i++) {
    int n0 = i * 8;
    uint8 n1 = (uint8)((float8)(convert(*(ushort8*)(in1 + n0), uint8) << 16) * (float8)(convert(*(ushort8*)(in2 + n0), uint8) << 16));
    uint8 n2 = n1 & 0x7fffffffu;
    float8 y0 = (float8)(((0x7f800000u < n2 ? 0x7fc0u : (n2 + 0x7fffu + ((n2 >> 16) & 1u)) >> 16) | ((n1 & 0x80000000u) >> 16)) << 16) + 1.0f;
    uint8 n3 = (uint8)y0;
    uint8 n4 = n3 & 0x7fffffffu;
    *(ushort8*)(out0 + n0) = convert((0x7f800000u < n4 ? 0x7fc0u : (n4 + 0x7fffu + ((n4 >> 16) & 1u)) >> 16) | ((n3 & 0x80000000u) >> 16), ushort8);
  }
}

void kernel_k(void* const* bufs, const long* vars, long begin, long end, void* scratch) {
  run(bufs[0], bufs[1], bufs[2]);
}
