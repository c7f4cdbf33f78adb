#pragma once
/// The elements of blocks one by one, straight from the layouts (ggml-common.h): what graphs of them are compared with.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/formats.h>

#include "frontend/quantized/codebooks.h"

namespace tinygrad::test {

namespace block_elements {

using formats::BlockFormat;
using frontend::Codebook;

struct Block {
  const uint8_t* bytes;

  int operator[](int i) const { return bytes[i]; }
  int signed_byte(int i) const { return int8_t(bytes[i]); }
  uint32_t word(int at) const { return uint32_t(bytes[at]) | uint32_t(bytes[at + 1]) << 8; }
  uint32_t long_word(int at) const { return word(at) | word(at + 2) << 16; }
  float half(int at) const { return float(float16::from_bits(uint16_t(word(at)))); }
  int bit(int at, int i) const { return (bytes[at + i / 8] >> (i % 8)) & 1; }
  /// Element i of `count` nibbles, the low halves first.
  int nibble(int at, int i, int count) const { return i < count / 2 ? bytes[at + i] & 15 : bytes[at + i - count / 2] >> 4; }
  /// Two bits of 256 elements, 128 in 32 bytes.
  int quarter(int at, int i) const { return (bytes[at + i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32))) & 3; }
};

inline int digit(Codebook book, uint32_t number, int i, int width) {
  return (frontend::codebook(book)[number] >> (width * i)) & ((1 << width) - 1);
}
inline float iq2(Codebook book, uint32_t number, int i) {
  return std::array{8.0f, 25.0f, 43.0f, 0.0f}[size_t(digit(book, number, i % 8, 2))];
}
inline float iq3_xxs(uint32_t number, int i) {
  return std::array{4.0f, 12.0f, 20.0f, 28.0f, 36.0f, 44.0f, 52.0f, 62.0f}[size_t(digit(Codebook::iq3_xxs, number, i % 4, 3))];
}
/// Seven bits of signs and their parity.
inline bool is_minus(uint32_t seven, int i) { return i < 7 ? (seven >> i) & 1 : std::popcount(seven) % 2 == 1; }
inline int fp4(int q) { return std::array{0, 1, 2, 3, 4, 6, 8, 12}[size_t(q & 7)] * (q > 7 ? -1 : 1); }
inline int iq4(int q) { return std::array{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}[size_t(q)]; }
inline float ternary(int byte, int place, float d) {
  for (; place > 0; --place) byte = byte * 3 % 256;
  const int digit = byte * 3 / 256;
  return float(digit - 1) * d;
}
/// Scale and minimum of group j in the 12 bytes of Q4_K and Q5_K.
inline std::pair<int, int> scale_and_minimum(const Block& b, int at, int j) {
  if (j < 4) return {b[at + j] & 63, b[at + j + 4] & 63};
  return {(b[at + j + 4] & 15) | (b[at + j - 4] >> 6 << 4), (b[at + j + 4] >> 4) | (b[at + j] >> 6 << 4)};
}

inline float element(BlockFormat format, const Block& b, int i) {
  const auto signed_by = [](bool minus, float v) { return minus ? -v : v; };
  switch (format) {
    case BlockFormat::Q4_0: return float(b.nibble(2, i, 32) - 8) * b.half(0);
    case BlockFormat::Q4_1: return float(b.nibble(4, i, 32)) * b.half(0) + b.half(2);
    case BlockFormat::Q5_0: return float((b.nibble(6, i, 32) | b.bit(2, i) << 4) - 16) * b.half(0);
    case BlockFormat::Q5_1: return float(b.nibble(8, i, 32) | b.bit(4, i) << 4) * b.half(0) + b.half(2);
    case BlockFormat::Q8_0: return float(b.signed_byte(2 + i)) * b.half(0);
    case BlockFormat::Q8_1: return float(b.signed_byte(4 + i)) * b.half(0);
    case BlockFormat::Q2_K: return b.half(80) * float(b[i / 16] & 15) * float(b.quarter(16, i)) - b.half(82) * float(b[i / 16] >> 4);
    case BlockFormat::Q3_K: {
      const int k = i / 16, low = (b[96 + k % 8] >> (k < 8 ? 0 : 4)) & 15, high = (b[104 + k % 4] >> (2 * (k / 4))) & 3;
      const int q = b.quarter(32, i) | ((b[i % 32] >> (i / 32)) & 1) << 2;
      return b.half(108) * float((low | high << 4) - 32) * float(q - 4);
    }
    case BlockFormat::Q4_K: {
      const auto [scale, minimum] = scale_and_minimum(b, 4, i / 32);
      return b.half(0) * float(scale) * float(b.nibble(16 + i / 64 * 32, i % 64, 64)) - b.half(2) * float(minimum);
    }
    case BlockFormat::Q5_K: {
      const auto [scale, minimum] = scale_and_minimum(b, 4, i / 32);
      const int q = b.nibble(48 + i / 64 * 32, i % 64, 64) | ((b[16 + i % 32] >> (i / 32)) & 1) << 4;
      return b.half(0) * float(scale) * float(q) - b.half(2) * float(minimum);
    }
    case BlockFormat::Q6_K: {
      const int q = b.nibble(i / 128 * 64, i % 128, 128) | b.quarter(128, i) << 4;
      return b.half(208) * float(b.signed_byte(192 + i / 16)) * float(q - 32);
    }
    case BlockFormat::Q8_K: return std::bit_cast<float>(b.long_word(0)) * float(b.signed_byte(4 + i));
    case BlockFormat::IQ2_XXS: {
      const int group = 2 + i / 32 * 8, l = i % 32 / 8;
      const uint32_t word = b.long_word(group + 4);
      const float d = b.half(0) * (0.5f + float(word >> 28)) * 0.25f;
      return signed_by(is_minus((word >> (7 * l)) & 127, i % 8), d * iq2(Codebook::iq2_xxs, uint32_t(b[group + l]), i));
    }
    case BlockFormat::IQ2_XS: {
      const uint32_t word = b.word(2 + i / 8 * 2);
      const float d = b.half(0) * (0.5f + float((b[66 + i / 32] >> (4 * (i % 32 / 16))) & 15)) * 0.25f;
      return signed_by(is_minus(word >> 9, i % 8), d * iq2(Codebook::iq2_xs, word & 511, i));
    }
    case BlockFormat::IQ2_S: {
      const uint32_t number = uint32_t(b[2 + i / 8]) | ((uint32_t(b[66 + i / 32]) >> (2 * (i % 32 / 8))) & 3) << 8;
      const float d = b.half(0) * (0.5f + float((b[74 + i / 32] >> (4 * (i % 32 / 16))) & 15)) * 0.25f;
      return signed_by(b.bit(34, i), d * iq2(Codebook::iq2_s, number, i));
    }
    case BlockFormat::IQ3_XXS: {
      const uint32_t word = b.long_word(66 + i / 32 * 4);
      const float d = b.half(0) * (0.5f + float(word >> 28)) * 0.5f;
      return signed_by(is_minus((word >> (7 * (i % 32 / 8))) & 127, i % 8), d * iq3_xxs(uint32_t(b[2 + i / 4]), i));
    }
    case BlockFormat::IQ3_S: {
      const uint32_t number = uint32_t(b[2 + i / 4]) | uint32_t(b.bit(66, i / 4)) << 8;
      const float d = b.half(0) * float(1 + 2 * ((b[106 + i / 64] >> (4 * (i / 32 % 2))) & 15));
      return signed_by(b.bit(74, i), d * float(2 * digit(Codebook::iq3_s, number, i % 4, 3) + 1));
    }
    case BlockFormat::IQ1_S: {
      const uint32_t word = b.word(34 + i / 32 * 2), number = uint32_t(b[2 + i / 8]) | ((word >> (3 * (i % 32 / 8))) & 7) << 8;
      const float delta = word >> 15 ? -0.125f : 0.125f;
      return b.half(0) * float(2 * ((word >> 12) & 7) + 1) * (float(digit(Codebook::iq1, number, i % 8, 2) - 1) + delta);
    }
    case BlockFormat::IQ1_M: {
      const auto scales = [&](int k) { return b.word(48 + 2 * k); };
      const uint32_t d = scales(0) >> 12 | scales(1) >> 12 << 4 | scales(2) >> 12 << 8 | scales(3) >> 12 << 12;
      const uint32_t high = (uint32_t(b[32 + i / 16]) >> (4 * (i % 16 / 8))) & 15, number = uint32_t(b[i / 8]) | (high & 7) << 8;
      const uint32_t scale = (scales(i / 64) >> (3 * (i % 64 / 16))) & 7;
      const float delta = high & 8 ? -0.125f : 0.125f;
      return float(float16::from_bits(uint16_t(d))) * float(2 * scale + 1) * (float(digit(Codebook::iq1, number, i % 8, 2) - 1) + delta);
    }
    case BlockFormat::IQ4_NL: return b.half(0) * float(iq4(b.nibble(2, i, 32)));
    case BlockFormat::IQ4_XS: {
      const int j = i / 32, low = (b[4 + j / 2] >> (4 * (j % 2))) & 15, high = (b[2 + j / 4] >> (2 * (j % 4))) & 3;
      return b.half(0) * float((low | high << 4) - 32) * float(iq4(b.nibble(8 + 16 * j, i % 32, 32)));
    }
    case BlockFormat::TQ1_0:
      if (i < 160) return ternary(b[i % 32], i / 32, b.half(52));
      if (i < 240) return ternary(b[32 + (i - 160) % 16], (i - 160) / 16, b.half(52));
      return ternary(b[48 + (i - 240) % 4], (i - 240) / 4, b.half(52));
    case BlockFormat::TQ2_0: return float(b.quarter(0, i) - 1) * b.half(64);
    case BlockFormat::MXFP4: return std::ldexp(float(fp4(b.nibble(1, i, 32))), b[0] - 128);
    case BlockFormat::NVFP4: {
      const int byte = b[i / 16], e = byte >> 3 & 15, m = byte & 7;
      const float d = byte == 127 ? 0 : e == 0 ? std::ldexp(float(m), -10) : std::ldexp(float(8 + m), e - 11);
      return float(fp4(b.nibble(4 + i / 16 * 8, i % 16, 16))) * d;
    }
    case BlockFormat::Q1_0: return b.bit(2, i) ? b.half(0) : -b.half(0);
    case BlockFormat::Q2_0: return float(((b[2 + i / 4] >> (2 * (i % 4))) & 3) - 1) * b.half(0);
  }
  return NAN;
}

}  // namespace block_elements

inline std::vector<formats::BlockFormat> every_block_format() {
  std::vector<formats::BlockFormat> out;
  for (int f = 0; f <= int(formats::BlockFormat::Q2_0); ++f) out.push_back(formats::BlockFormat(f));
  return out;
}

/// The elements of blocks that follow one another.
inline std::vector<float> elements_of(formats::BlockFormat format, const std::vector<uint8_t>& blocks) {
  const formats::BlockLayout& layout = formats::layout_of(format);
  std::vector<float> out;
  for (size_t at = 0; at < blocks.size(); at += size_t(layout.bytes))
    for (int i = 0; i < layout.elements; ++i) out.push_back(block_elements::element(format, {blocks.data() + at}, i));
  return out;
}

/// Where a block has its float16 numbers.
inline std::vector<size_t> halves_of(formats::BlockFormat format) {
  using formats::BlockFormat;
  switch (format) {
    case BlockFormat::Q4_1:
    case BlockFormat::Q5_1:
    case BlockFormat::Q8_1:
    case BlockFormat::Q4_K:
    case BlockFormat::Q5_K: return {0, 2};
    case BlockFormat::Q2_K: return {80, 82};
    case BlockFormat::Q3_K: return {108};
    case BlockFormat::Q6_K: return {208};
    case BlockFormat::TQ1_0: return {52};
    case BlockFormat::TQ2_0: return {64};
    case BlockFormat::IQ1_M:
    case BlockFormat::Q8_K:
    case BlockFormat::MXFP4:
    case BlockFormat::NVFP4: return {};
    default: return {0};
  }
}

/// Random blocks whose scales are numbers such as those of models: neither denormal nor close to overflow.
inline std::vector<uint8_t> random_blocks(formats::BlockFormat format, int count, std::mt19937_64& random) {
  using formats::BlockFormat;
  const formats::BlockLayout& layout = formats::layout_of(format);
  std::vector<uint8_t> out(size_t(count) * size_t(layout.bytes));
  for (uint8_t& b : out) b = uint8_t(random());
  for (size_t at = 0; at < out.size(); at += size_t(layout.bytes)) {
    const auto with_exponent = [&](size_t high_byte) {
      out[at + high_byte] = uint8_t((out[at + high_byte] & 0x83) | (6 + random() % 8) << 2);
    };
    for (const size_t half : halves_of(format)) with_exponent(half + 1);
    if (format == BlockFormat::IQ1_M) out[at + 55] = uint8_t((out[at + 55] & 0x8f) | 0x20);
    if (format == BlockFormat::MXFP4) out[at] = uint8_t(110 + random() % 20);
    const float d = std::ldexp(float(random() % 1000) - 500, -12);
    if (format == BlockFormat::Q8_K) std::memcpy(out.data() + at, &d, sizeof(d));
  }
  return out;
}

}  // namespace tinygrad::test
