#pragma once
/// The tile registers of AMX in C, for processors without them: kernels that were rendered for them run anywhere.

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tinygrad::test {

/// What takes the place of the definitions of instructions. The kernel's function has the registers as a variable. Rounding is that of
/// Intel's manual: the even and the odd terms have sums of their own, which are fused multiply-adds, and denormals are zeros.
inline constexpr std::string_view emulated_tiles = R"(
typedef unsigned char tile_register[16][64];
static inline float tile_flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }
static inline float tile_bfloat16(const void* from) {
  unsigned short bits;
  __builtin_memcpy(&bits, from, 2);
  const unsigned wide = (unsigned)bits << 16;
  float x;
  __builtin_memcpy(&x, &wide, 4);
  return tile_flushed(x);
}
static inline float tile_float16(const void* from) {
  _Float16 x;
  __builtin_memcpy(&x, from, 2);
  return (float)x;
}
#define TILE_FLOATS(name, read) \
  static __attribute__((noinline)) void name##_emulated(unsigned char (*c)[64], unsigned char (*a)[64], unsigned char (*b)[64]) { \
    for (int i = 0; i < 16; ++i) \
      for (int j = 0; j < 16; ++j) { \
        float even = 0, odd = 0, sum; \
        for (int k = 0; k < 16; ++k) { \
          even = tile_flushed(__builtin_fmaf(read(&a[i][4 * k]), read(&b[k][4 * j]), even)); \
          odd = tile_flushed(__builtin_fmaf(read(&a[i][4 * k + 2]), read(&b[k][4 * j + 2]), odd)); \
        } \
        __builtin_memcpy(&sum, &c[i][4 * j], 4); \
        sum = tile_flushed(tile_flushed(sum) + tile_flushed(even + odd)); \
        __builtin_memcpy(&c[i][4 * j], &sum, 4); \
      } \
  }
#define TILE_BYTES(name, of_a, of_b) \
  static __attribute__((noinline)) void name##_emulated(unsigned char (*c)[64], unsigned char (*a)[64], unsigned char (*b)[64]) { \
    for (int i = 0; i < 16; ++i) \
      for (int j = 0; j < 16; ++j) { \
        int sum; \
        __builtin_memcpy(&sum, &c[i][4 * j], 4); \
        for (int k = 0; k < 64; ++k) sum += (of_a)a[i][k] * (of_b)b[k / 4][4 * j + k % 4]; \
        __builtin_memcpy(&c[i][4 * j], &sum, 4); \
      } \
  }
static inline int tile_configuration_is_right(const void* from) {
  const unsigned char* p = (const unsigned char*)from;
  int right = p[0] == 1 && p[1] == 0;
  for (int i = 2; i < 16; ++i) right &= p[i] == 0;
  for (int i = 16; i < 32; i += 2) right &= p[i] == 64 && p[i + 1] == 0;
  for (int i = 32; i < 48; ++i) right &= p[i] == 0;
  for (int i = 48; i < 56; ++i) right &= p[i] == 16;
  for (int i = 56; i < 64; ++i) right &= p[i] == 0;
  return right;
}
static inline void tile_copied(void* to, const void* from) {
  for (int i = 0; i < 16; ++i) __builtin_memcpy((char*)to + 64 * i, (const char*)from + 64 * i, 64);
}
static inline void tile_cleared(void* to) {
  for (int i = 0; i < 16; ++i) __builtin_memset((char*)to + 64 * i, 0, 64);
}
#define begin_tiles(configuration) \
  tile_register tiles[8]; \
  if (!tile_configuration_is_right(configuration)) __builtin_trap(); \
  for (int t = 0; t < 8; ++t) tile_cleared(tiles[t])
#define end_tiles() (void)0
#define clear_tile(t) tile_cleared(tiles[t])
#define load_tile(t, from) tile_copied(tiles[t], from)
#define store_tile(t, to) tile_copied(to, tiles[t])
#define tdpbf16ps(c, a, b) tdpbf16ps_emulated(tiles[c], tiles[a], tiles[b])
#define tdpfp16ps(c, a, b) tdpfp16ps_emulated(tiles[c], tiles[a], tiles[b])
#define tdpbssd(c, a, b) tdpbssd_emulated(tiles[c], tiles[a], tiles[b])
#define tdpbsud(c, a, b) tdpbsud_emulated(tiles[c], tiles[a], tiles[b])
#define tdpbusd(c, a, b) tdpbusd_emulated(tiles[c], tiles[a], tiles[b])
#define tdpbuud(c, a, b) tdpbuud_emulated(tiles[c], tiles[a], tiles[b])
)";

/// The instructions themselves.
inline constexpr std::string_view emulated_products[][2] = {
    {"tdpbf16ps", "TILE_FLOATS(tdpbf16ps, tile_bfloat16)\n"},         {"tdpfp16ps", "TILE_FLOATS(tdpfp16ps, tile_float16)\n"},
    {"tdpbssd", "TILE_BYTES(tdpbssd, signed char, signed char)\n"},   {"tdpbsud", "TILE_BYTES(tdpbsud, signed char, unsigned char)\n"},
    {"tdpbusd", "TILE_BYTES(tdpbusd, unsigned char, signed char)\n"}, {"tdpbuud", "TILE_BYTES(tdpbuud, unsigned char, unsigned char)\n"},
};

/// The text of a kernel in C with these definitions instead of its own.
inline std::string with_emulated_tiles(const std::string& text) {
  std::string out(emulated_tiles);
  for (const auto& [name, definition] : emulated_products)
    if (text.find(name) != std::string::npos) out += definition;
  bool had_tiles = false;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    const bool is_instruction = line.starts_with("#define ") && line.find("__builtin_ia32_t") != std::string::npos;
    had_tiles |= is_instruction;
    if (!is_instruction) out += line;
    begin = end;
  }
  if (!had_tiles) throw std::runtime_error("the kernel has no tiles: " + text);
  return out;
}

}  // namespace tinygrad::test
