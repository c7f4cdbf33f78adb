// The elements of blocks whose vectors are those of a codebook.
#include "frontend/quantized/blocks.h"
#include "frontend/quantized/codebooks.h"
#include "ops/movement.h"
#include "ops/rows.h"
#include "shape/device.h"
#include "shape/shape.h"
#include "tensor/handle.h"

namespace tinygrad::frontend {

using ops::Expr;

namespace {

/// Digits of the vectors with these numbers, along the last axis of the grid.
Expr digits(Codebook book, const Expr& number, int64_t count, int width) {
  const Tensor vectors(codebook(book), {.device = std::string(device_of(number).str())});
  return bits(tinygrad::cast(ops::gather_rows(vectors.uop(), 0, number), DType::int32), steps({count}, width), width);
}

/// Of IQ2: the digits are 8, 25 and 43.
Expr iq2_values(Codebook book, const Expr& number) {
  const Expr digit = digits(book, number, 8, 2);
  return as_float(digit * 17 + bits(digit, 1, 1) + 8);
}
/// Of IQ1: -1, 0 and 1, moved by an eighth to one side.
Expr iq1_values(const Expr& number, const Expr& is_down) {
  return as_float(digits(Codebook::iq1, number, 8, 2)) - 0.875 - as_float(is_down) * 0.25;
}

/// -1 where a bit is set, else 1.
Expr sign_of(const Expr& bit) { return as_float(1 - bit * 2); }
/// The signs of eight elements of which seven are given: there is an even number of minuses.
Expr signs_of(const Expr& seven) {
  Expr parity = seven ^ ops::rshift(seven, 4);
  parity = parity ^ ops::rshift(parity, 2);
  return seven + bits(parity ^ ops::rshift(parity, 1), 0, 1) * 128;
}
/// The l-th seven bits of four in a word, by the bytes l - 1 and l of the word, l being the axis that `shape` has.
Expr seven_bits(const Expr& before, const Expr& byte, std::initializer_list<int64_t> shape) {
  return bits(before | ops::lshift(byte, 8), 8 - steps(shape, 1), 7);
}

Expr half_more(const Expr& scale) { return as_float(scale) + 0.5; }

}  // namespace

Expr iq2_xxs(const UOp& blocks) {
  // Of 32 elements each: the numbers of four vectors, and a word of four times seven signs and four bits of a scale.
  const Blocks b(blocks, {8, 4, 8});
  const auto group = [&](int64_t first, int64_t width) { return b.columns(2, 8, 8, first, width, {8, width, 1}); };
  const Expr signs = signs_of(seven_bits(group(3, 4), group(4, 4), {4, 1}));
  return b.half(0) * half_more(bits(group(7, 1), 4, 4)) * 0.25 * iq2_values(Codebook::iq2_xxs, group(0, 4)) *
         sign_of(bits(signs, steps({8}, 1), 1));
}

Expr iq2_xs(const UOp& blocks) {
  const Blocks b(blocks, {8, 2, 2, 8});
  const Expr low = b.columns(2, 32, 2, 0, 1, {8, 2, 2, 1}), high = b.columns(2, 32, 2, 1, 1, {8, 2, 2, 1});
  const Expr scales = bits(b.bytes(66, {8, 1, 1, 1}), steps({2, 1, 1}, 4), 4);
  return b.half(0) * half_more(scales) * 0.25 * iq2_values(Codebook::iq2_xs, low + bits(high, 0, 1) * 256) *
         sign_of(bits(signs_of(bits(high, 1, 7)), steps({8}, 1), 1));
}

Expr iq2_s(const UOp& blocks) {
  const Blocks b(blocks, {8, 2, 2, 8});
  const Expr high = bits(b.bytes(66, {8, 1, 1, 1}), steps({2, 2, 1}, 2), 2),
             scales = bits(b.bytes(74, {8, 1, 1, 1}), steps({2, 1, 1}, 4), 4);
  return b.half(0) * half_more(scales) * 0.25 * iq2_values(Codebook::iq2_s, b.bytes(2, {8, 2, 2, 1}) + high * 256) *
         sign_of(bits(b.bytes(34, {8, 2, 2, 1}), steps({8}, 1), 1));
}

Expr iq3_xxs(const UOp& blocks) {
  const Blocks b(blocks, {8, 4, 2, 4});
  const auto byte_of_word = [&](int64_t at) { return b.columns(at, 8, 4, 0, 4, {8, 4, 1, 1}); };
  const Expr signs = signs_of(seven_bits(byte_of_word(65), byte_of_word(66), {4, 1, 1}));
  const Expr digit = digits(Codebook::iq3_xxs, b.bytes(2, {8, 4, 2, 1}), 4, 3);
  const Expr values = as_float(digit * 8 + bits(digit + 1, 3, 1) * 2 + 4);  // the greatest is 62
  return b.half(0) * half_more(bits(b.columns(66, 8, 4, 3, 1, {8, 1, 1, 1}), 4, 4)) * 0.5 * values *
         sign_of(bits(signs, steps({2, 4}, 1), 1));
}

Expr iq3_s(const UOp& blocks) {
  const Blocks b(blocks, {4, 2, 4, 2, 4});
  const Expr number = b.bytes(2, {4, 2, 4, 2, 1}) + bits(b.bytes(66, {4, 2, 1, 1, 1}), steps({4, 2, 1}, 1), 1) * 256;
  const Expr scales = bits(b.bytes(106, {4, 1, 1, 1, 1}), steps({2, 1, 1, 1}, 4), 4);
  return b.half(0) * as_float(scales * 2 + 1) * as_float(digits(Codebook::iq3_s, number, 4, 3) * 2 + 1) *
         sign_of(bits(b.bytes(74, {4, 2, 4, 1, 1}), steps({2, 4}, 1), 1));
}

Expr iq1_s(const UOp& blocks) {
  const Blocks b(blocks, {8, 4, 8});
  const Expr low = b.columns(34, 8, 2, 0, 1, {8, 1, 1}), high = b.columns(34, 8, 2, 1, 1, {8, 1, 1});
  const Expr number = b.bytes(2, {8, 4, 1}) + bits(low | ops::lshift(high, 8), steps({4, 1}, 3), 3) * 256;
  return b.half(0) * as_float(bits(high, 4, 3) * 2 + 1) * iq1_values(number, bits(high, 7, 1));
}

Expr iq1_m(const UOp& blocks) {
  const Blocks b(blocks, {4, 2, 2, 2, 8});
  // The highest four bits of the four words of scales make a float16.
  const auto highest = [&](int64_t word) { return bits(b.byte(49 + 2 * word), 4, 4); };
  const Expr d = highest(0) | ops::lshift(highest(1), 4) | ops::lshift(highest(2), 8) | ops::lshift(highest(3), 12);
  const Expr word = b.columns(48, 4, 2, 0, 1, {4, 1, 1, 1, 1}) | ops::lshift(b.columns(48, 4, 2, 1, 1, {4, 1, 1, 1, 1}), 8);
  const Expr high = bits(b.bytes(32, {4, 2, 2, 1, 1}), steps({2, 1}, 4), 4);
  return half_of(d) * as_float(bits(word, steps({2, 2, 1, 1}, 3), 3) * 2 + 1) *
         iq1_values(b.bytes(0, {4, 2, 2, 2, 1}) + bits(high, 0, 3) * 256, bits(high, 3, 1));
}

}  // namespace tinygrad::frontend
