#pragma once
// What rendered HIP uses of clang's builtins for AMD's GPUs, for clang on a CPU: a work-item is a thread. Where a lane holds what of a
// matrix is written as AMD's matrix instruction calculator prints it.
#include "../items.h"

#define __builtin_amdgcn_workgroup_id_x() int(items->group[0])
#define __builtin_amdgcn_workgroup_id_y() int(items->group[1])
#define __builtin_amdgcn_workgroup_id_z() int(items->group[2])
#define __builtin_amdgcn_workitem_id_x() int(items->item[0])
#define __builtin_amdgcn_workitem_id_y() int(items->item[1])
#define __builtin_amdgcn_workitem_id_z() int(items->item[2])
#define amdgpu_flat_work_group_size(...)
#define __builtin_amdgcn_fence(...)
#define __builtin_amdgcn_s_barrier() items->barrier(items->self)

namespace shim {

/// What a lane holds of a and b.
struct Held {
  double a[16], b[16];
};

// Register contents as numbers. Packed bytes are read by a function.

using Bytes = double (*)(unsigned char);
inline double signed_byte(unsigned char x) { return static_cast<signed char>(x); }
inline double unsigned_byte(unsigned char x) { return x; }
inline double small_float(unsigned char x, int mantissa_bits, int bias) {
  const int mantissa = x & ((1 << mantissa_bits) - 1), exponent = (x & 0x7f) >> mantissa_bits;
  const double value = exponent == 0 ? __builtin_ldexp(mantissa, 1 - bias - mantissa_bits)
                                     : __builtin_ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  return x & 0x80 ? -value : value;
}
inline double fp8_fnuz(unsigned char x) { return x == 0x80 ? __builtin_nan("") : small_float(x, 3, 8); }
inline double fp8(unsigned char x) { return (x & 0x7f) == 0x7f ? __builtin_nan("") : small_float(x, 3, 7); }
inline double bf8(unsigned char x) {
  return (x & 0x7f) > 0x7c ? __builtin_nan("") : (x & 0x7f) == 0x7c ? (x & 0x80 ? -1 : 1) * __builtin_inf() : small_float(x, 2, 15);
}

template <class T>
int unpack(const T& x, double* out, Bytes byte) {
  unsigned char bytes[sizeof(T)];
  __builtin_memcpy(bytes, &x, sizeof(T));
  for (unsigned i = 0; i < sizeof(T); ++i) out[i] = byte(bytes[i]);
  return sizeof(T);
}
inline int unpack(float x, double* out, Bytes) { return *out = x, 1; }
inline int unpack(double x, double* out, Bytes) { return *out = x, 1; }
template <class E, int N>
using Vector = E __attribute__((ext_vector_type(N)));
template <int N>
int unpack_halves(const void* x, double* out) {
  _Float16 halves[N];
  __builtin_memcpy(halves, x, sizeof halves);
  for (int i = 0; i < N; ++i) out[i] = double(halves[i]);
  return N;
}
template <int N>
int unpack_bfloats(const void* x, double* out) {
  for (int i = 0; i < N; ++i) {
    const unsigned bits = unsigned(static_cast<const unsigned short*>(x)[i]) << 16;
    out[i] = __builtin_bit_cast(float, bits);
  }
  return N;
}
inline int unpack(const Vector<__fp16, 4>& x, double* out, Bytes) { return unpack_halves<4>(&x, out); }
inline int unpack(const Vector<_Float16, 8>& x, double* out, Bytes) { return unpack_halves<8>(&x, out); }
inline int unpack(const Vector<_Float16, 16>& x, double* out, Bytes) { return unpack_halves<16>(&x, out); }
inline int unpack(const Vector<short, 4>& x, double* out, Bytes) { return unpack_bfloats<4>(&x, out); }
inline int unpack(const Vector<short, 8>& x, double* out, Bytes) { return unpack_bfloats<8>(&x, out); }
inline int unpack(const Vector<short, 16>& x, double* out, Bytes) { return unpack_bfloats<16>(&x, out); }

// Places: the row of a and column of b, the step along k, the row of c.

template <int Size>
struct Mfma {
  static constexpr int lanes = 64, size = Size;
  static int step(int lane, int e, int held) { return held * (lane / Size) + e; }
  static int row(int lane, int e) { return 256 / Size * (e / 4) + 4 * (lane / Size) + e % 4; }
};
struct Mfma64 : Mfma<16> {
  static int row(int lane, int e) { return 4 * e + lane / 16; }
};
struct Wmma11 {
  static constexpr int lanes = 32, size = 16;
  static int step(int, int e, int) { return e; }
  static int row(int lane, int e) { return 2 * e + lane / 16; }
};
struct Wmma12 {
  static constexpr int lanes = 32, size = 16;
  static int step(int lane, int e, int) { return 8 * (e / 4) + 4 * (lane / 16) + e % 4; }
  static int row(int lane, int e) { return 8 * (lane / 16) + e; }
};
struct Wmma12Bytes : Wmma12 {
  static int step(int lane, int e, int) { return 8 * (lane / 16) + e; }
};

template <class Place, class F, class C>
C product(const F& a, const F& b, C c, Bytes byte = signed_byte, Bytes byte_of_b = nullptr) {
  Held mine;
  const int held = unpack(a, mine.a, byte);
  unpack(b, mine.b, byte_of_b ? byte_of_b : byte);
  const Held* all = all_lanes(mine);
  double left[32][32] = {}, right[32][32] = {};
  for (int lane = 0; lane < Place::lanes; ++lane)
    for (int e = 0; e < held; ++e) {
      left[lane % Place::size][Place::step(lane, e, held)] = all[lane].a[e];
      right[Place::step(lane, e, held)][lane % Place::size] = all[lane].b[e];
    }
  const int lane = int(items->lane);
  for (int e = 0; e < int(sizeof(C) / sizeof(c[0])); ++e) {
    double sum = c[e];
    for (int k = 0; k < 32; ++k) sum += left[Place::row(lane, e)][k] * right[k][lane % Place::size];
    c[e] = sum;
  }
  return c;
}

}  // namespace shim

#define __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, c, ...) shim::product<shim::Mfma<32>>(a, b, c)
#define __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, ...) shim::product<shim::Mfma<16>>(a, b, c)
#define __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a, b, c, ...) shim::product<shim::Mfma<32>>(a, b, c)
#define __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, ...) shim::product<shim::Mfma<16>>(a, b, c)
#define __builtin_amdgcn_mfma_f32_32x32x2f32(a, b, c, ...) shim::product<shim::Mfma<32>>(a, b, c)
#define __builtin_amdgcn_mfma_f32_16x16x4f32(a, b, c, ...) shim::product<shim::Mfma<16>>(a, b, c)
#define __builtin_amdgcn_mfma_f64_16x16x4f64(a, b, c, ...) shim::product<shim::Mfma64>(a, b, c)
#define __builtin_amdgcn_mfma_i32_32x32x8i8(a, b, c, ...) shim::product<shim::Mfma<32>>(a, b, c)
#define __builtin_amdgcn_mfma_i32_16x16x16i8(a, b, c, ...) shim::product<shim::Mfma<16>>(a, b, c)
#define __builtin_amdgcn_mfma_i32_32x32x16_i8(a, b, c, ...) shim::product<shim::Mfma<32>>(a, b, c)
#define __builtin_amdgcn_mfma_i32_16x16x32_i8(a, b, c, ...) shim::product<shim::Mfma<16>>(a, b, c)
#define __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(a, b, c, ...) shim::product<shim::Mfma<32>>(a, b, c, shim::fp8_fnuz)
#define __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(a, b, c, ...) shim::product<shim::Mfma<16>>(a, b, c, shim::fp8_fnuz)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c) shim::product<shim::Wmma11>(a, b, c)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c) shim::product<shim::Wmma11>(a, b, c)
#define __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(sa, a, sb, b, c, clamp) \
  shim::product<shim::Wmma11>(a, b, c, sa ? shim::signed_byte : shim::unsigned_byte)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c) shim::product<shim::Wmma12>(a, b, c)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c) shim::product<shim::Wmma12>(a, b, c)
#define __builtin_amdgcn_wmma_f16_16x16x16_f16_w32_gfx12(a, b, c) shim::product<shim::Wmma12>(a, b, c)
#define __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(sa, a, sb, b, c, clamp) \
  shim::product<shim::Wmma12Bytes>(a, b, c, sa ? shim::signed_byte : shim::unsigned_byte)
#define __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(a, b, c) shim::product<shim::Wmma12Bytes>(a, b, c, shim::fp8)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf8_bf8_w32_gfx12(a, b, c) shim::product<shim::Wmma12Bytes>(a, b, c, shim::bf8)
#define __builtin_amdgcn_wmma_f32_16x16x16_fp8_bf8_w32_gfx12(a, b, c) shim::product<shim::Wmma12Bytes>(a, b, c, shim::fp8, shim::bf8)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf8_fp8_w32_gfx12(a, b, c) shim::product<shim::Wmma12Bytes>(a, b, c, shim::bf8, shim::fp8)
