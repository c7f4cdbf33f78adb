// The elements of blocks, as GGML's dequantize_row_* compute them. But for Q8_1 and Q8_K, every product has at most 24 significant bits, so
// that it is exact in float32 and a fused multiply-add gives what two roundings do.
#include <array>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <tinygrad/errors.h>
#include <tinygrad/formats.h>

#include "frontend/quantized/blocks.h"
#include "ops/movement.h"
#include "shape/shape.h"
#include "tensor/handle.h"
#include "uop/build.h"

namespace tinygrad::frontend {

using formats::BlockFormat;
using ops::Expr;

namespace {

/// Bytes of two elements each: first all of the low halves, then the high ones. A grid of (2, ...).
Expr nibbles(const Expr& bytes, std::initializer_list<int64_t> halves = {2, 1}) { return bits(bytes, steps(halves, 4), 4); }

Expr q4_0(const UOp& blocks) {
  const Blocks b(blocks, {2, 16});
  return (as_float(nibbles(b.bytes(2, {1, 16}))) - 8) * b.half(0);
}
Expr q4_1(const UOp& blocks) {
  const Blocks b(blocks, {2, 16});
  return as_float(nibbles(b.bytes(4, {1, 16}))) * b.half(0) + b.half(2);
}

/// Of Q5: the lower bits at one place, the fifth ones at another. A grid of (2, 2, 8).
Expr five_bits(const Blocks& b, int64_t low, int64_t fifth) {
  return nibbles(b.bytes(low, {1, 2, 8}), {2, 1, 1}) + bits(b.bytes(fifth, {2, 2, 1}), steps({8}, 1), 1) * 16;
}
Expr q5_0(const UOp& blocks) {
  const Blocks b(blocks, {2, 2, 8});
  return (as_float(five_bits(b, 6, 2)) - 16) * b.half(0);
}
Expr q5_1(const UOp& blocks) {
  const Blocks b(blocks, {2, 2, 8});
  return as_float(five_bits(b, 8, 4)) * b.half(0) + b.half(2);
}

Expr q8_0(const UOp& blocks) {
  const Blocks b(blocks, {32});
  return as_float(b.signed_bytes(2, {32})) * b.half(0);
}
Expr q8_1(const UOp& blocks) {
  const Blocks b(blocks, {32});
  return as_float(b.signed_bytes(4, {32})) * b.half(0);
}
Expr q8_k(const UOp& blocks) {
  const Blocks b(blocks, {256});
  return as_float(b.signed_bytes(4, {256})) * b.single(0);
}

Expr q1_0(const UOp& blocks) {
  const Blocks b(blocks, {16, 8});
  return as_float(bits(b.bytes(2, {16, 1}), steps({8}, 1), 1) * 2 - 1) * b.half(0);
}
Expr q2_0(const UOp& blocks) {
  const Blocks b(blocks, {16, 4});
  return (as_float(bits(b.bytes(2, {16, 1}), steps({4}, 2), 2)) - 1) * b.half(0);
}

Expr q2_k(const UOp& blocks) {
  const Blocks b(blocks, {2, 4, 2, 16});
  const Expr scales = b.bytes(0, {2, 4, 2, 1}), q = bits(b.bytes(16, {2, 1, 2, 16}), steps({4, 1, 1}, 2), 2);
  return b.half(80) * as_float(bits(scales, 0, 4)) * as_float(q) - b.half(82) * as_float(bits(scales, 4, 4));
}

Expr q3_k(const UOp& blocks) {
  const Blocks b(blocks, {2, 2, 2, 2, 16});
  const Expr low = bits(b.bytes(32, {2, 1, 1, 2, 16}), steps({2, 2, 1, 1}, 2), 2);
  const Expr q = low + bits(b.bytes(0, {1, 1, 1, 2, 16}), steps({2, 2, 2, 1, 1}, 1), 1) * 4;
  const Expr scales = bits(b.bytes(96, {1, 2, 2, 2, 1}), steps({2, 1, 1, 1, 1}, 4), 4) +
                      bits(b.bytes(104, {1, 1, 2, 2, 1}), steps({2, 2, 1, 1, 1}, 2), 2) * 16;
  return b.half(108) * (as_float(scales) - 32) * (as_float(q) - 4);
}

/// Of Q4_K and Q5_K, on a grid of (2, 2, 2, 32): eight scales and eight minima of 6 bits in 12 bytes. The first four of each have bytes of
/// their own, whose highest bits are those of the others; the lower ones of these are in the last bytes.
Expr scaled(const Blocks& b, const Expr& q) {
  const Expr is_later = ops::ne(steps({2, 1, 1, 1}, 1), 0), last = b.bytes(12, {1, 2, 2, 1});
  const auto six_bits = [&](int64_t at, int half) {
    const Expr own = b.bytes(at, {1, 2, 2, 1});
    return as_float(ops::where(is_later, bits(last, half, 4) + bits(own, 6, 2) * 16, bits(own, 0, 6)));
  };
  return b.half(0) * six_bits(4, 0) * as_float(q) - b.half(2) * six_bits(8, 4);
}
Expr q4_k(const UOp& blocks) {
  const Blocks b(blocks, {2, 2, 2, 32});
  return scaled(b, nibbles(b.bytes(16, {2, 2, 1, 32})));
}
Expr q5_k(const UOp& blocks) {
  const Blocks b(blocks, {2, 2, 2, 32});
  return scaled(b, nibbles(b.bytes(48, {2, 2, 1, 32})) + bits(b.bytes(16, {1, 1, 1, 32}), steps({2, 2, 2, 1}, 1), 1) * 16);
}

Expr q6_k(const UOp& blocks) {
  const Blocks b(blocks, {2, 2, 2, 2, 16});
  const Expr low = nibbles(b.bytes(0, {2, 1, 2, 2, 16}), {2, 1, 1, 1}),
             high = bits(b.bytes(128, {2, 1, 1, 2, 16}), steps({2, 2, 1, 1}, 2), 2);
  return b.half(208) * as_float(b.signed_bytes(192, {2, 2, 2, 2, 1})) * (as_float(low + high * 16) - 32);
}

Expr tq1_0(const UOp& blocks) {
  // Bytes are fractions of 256 in base 3, of five digits; all first digits come first, of 32 bytes, then of 16, then of the last 4.
  const Blocks b(blocks, {8, 2, 4, 4});
  const Expr i = b.everywhere(steps({8, 2, 4, 4}, 1));
  const auto in_part = [&](const Expr& first, const Expr& second, const Expr& third) -> Expr {
    return ops::where(i < 160, first, ops::where(i < 240, second, third));
  };
  const Expr byte = in_part(b.bytes(0, {1, 2, 4, 4}), b.bytes(32, {1, 1, 4, 4}), b.bytes(48, {1, 1, 1, 4}));
  const Expr digit = in_part(bits(i, 5, 3), bits(i, 4, 4) - 10, bits(i, 2, 6) - 60);
  Expr power = ops::where(ops::eq(digit, 0), 1, ops::where(ops::eq(digit, 1), 3, 9));
  power = ops::where(digit > 2, ops::where(ops::eq(digit, 3), 27, 81), power);
  return (as_float(bits(bits(byte * power, 0, 8) * 3, 8, 2)) - 1) * b.half(52);
}
Expr tq2_0(const UOp& blocks) {
  const Blocks b(blocks, {2, 4, 32});
  return (as_float(bits(b.bytes(0, {2, 1, 32}), steps({4, 1}, 2), 2)) - 1) * b.half(64);
}

/// Twice the value of FP4 (E2M1) numbers.
Expr twice_fp4(const Expr& q) {
  const Expr m = bits(q, 0, 3);  // 0, 1, 2, 3, 4, 6, 8, 12
  const Expr magnitude = m + ops::maximum(m - 4, 0) + bits(m + 1, 3, 1) * 2;
  return as_float(ops::where(q > 7, -magnitude, magnitude));
}
Expr float_of(const Expr& bits) { return tinygrad::bitcast(bits, DType::float32); }

Expr mxfp4(const UOp& blocks) {
  // Times 2 to the power e - 128, denormal for the smallest two.
  const Blocks b(blocks, {2, 16});
  const Expr e = b.byte(0);
  const Expr d = float_of(ops::where(e < 2, ops::lshift(ops::add(e, 1), 21), ops::lshift(ops::maximum(e - 1, 0), 23)));
  return twice_fp4(nibbles(b.bytes(1, {1, 16}))) * d;
}
Expr nvfp4(const UOp& blocks) {
  // Times half of an unsigned E4M3, of which 127 is 0; its bit 7 says nothing but that 255 is a number.
  const Blocks b(blocks, {4, 2, 8});
  const Expr byte = b.bytes(0, {4, 1, 1}), e = bits(byte, 3, 4), m = bits(byte, 0, 3);
  const Expr normal = float_of(ops::lshift(ops::add(bits(byte, 0, 7), 119 << 3), 20)), small = as_float(m) * 0x1p-10;
  const Expr d = ops::where(ops::eq(byte, 127), 0.0, ops::where(ops::eq(e, 0), small, normal));
  return twice_fp4(nibbles(b.bytes(4, {4, 1, 8}))) * d;
}

/// The sixteen values of IQ4, by comparing: fewer operations than a load for each element.
Expr iq4_values(const Expr& q) {
  constexpr std::array values{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  std::array<UOp, 16> out;
  for (size_t i = 0; i < 16; ++i) out[i] = constant(Scalar::of(double(values[i]), DType::float32));
  for (size_t bit = 0, left = 8; left > 0; ++bit, left /= 2) {
    const UOp is_set = ops::ne(bits(q, int64_t(bit), 1), 0);
    for (size_t i = 0; i < left; ++i) out[i] = ops::where(is_set, out[2 * i + 1], out[2 * i]);
  }
  return out[0];
}
Expr iq4_nl(const UOp& blocks) {
  const Blocks b(blocks, {2, 16});
  return b.half(0) * iq4_values(nibbles(b.bytes(2, {1, 16})));
}
Expr iq4_xs(const UOp& blocks) {
  const Blocks b(blocks, {2, 2, 2, 2, 16});
  const Expr low = bits(b.bytes(4, {2, 2, 1, 1, 1}), steps({2, 1, 1}, 4), 4),
             high = bits(b.bytes(2, {2, 1, 1, 1, 1}), steps({2, 2, 1, 1}, 2), 2);
  return b.half(0) * (as_float(low + high * 16) - 32) * iq4_values(nibbles(b.bytes(8, {2, 2, 2, 1, 16})));
}

Expr elements_of(BlockFormat format, const UOp& b) {
  switch (format) {
    case BlockFormat::Q4_0: return q4_0(b);
    case BlockFormat::Q4_1: return q4_1(b);
    case BlockFormat::Q5_0: return q5_0(b);
    case BlockFormat::Q5_1: return q5_1(b);
    case BlockFormat::Q8_0: return q8_0(b);
    case BlockFormat::Q8_1: return q8_1(b);
    case BlockFormat::Q2_K: return q2_k(b);
    case BlockFormat::Q3_K: return q3_k(b);
    case BlockFormat::Q4_K: return q4_k(b);
    case BlockFormat::Q5_K: return q5_k(b);
    case BlockFormat::Q6_K: return q6_k(b);
    case BlockFormat::Q8_K: return q8_k(b);
    case BlockFormat::IQ2_XXS: return iq2_xxs(b);
    case BlockFormat::IQ2_XS: return iq2_xs(b);
    case BlockFormat::IQ2_S: return iq2_s(b);
    case BlockFormat::IQ3_XXS: return iq3_xxs(b);
    case BlockFormat::IQ3_S: return iq3_s(b);
    case BlockFormat::IQ1_S: return iq1_s(b);
    case BlockFormat::IQ1_M: return iq1_m(b);
    case BlockFormat::IQ4_NL: return iq4_nl(b);
    case BlockFormat::IQ4_XS: return iq4_xs(b);
    case BlockFormat::TQ1_0: return tq1_0(b);
    case BlockFormat::TQ2_0: return tq2_0(b);
    case BlockFormat::MXFP4: return mxfp4(b);
    case BlockFormat::NVFP4: return nvfp4(b);
    case BlockFormat::Q1_0: return q1_0(b);
    case BlockFormat::Q2_0: return q2_0(b);
  }
  throw InternalError("dequantize: a format that is none");
}

}  // namespace

}  // namespace tinygrad::frontend

namespace tinygrad::formats {

void QuantizedTensor::check(std::string_view operation) const {
  const BlockLayout& layout = layout_of(format);
  Sizes expected = shape;
  if (!expected.empty()) {
    expected.back() /= layout.elements;
    expected.push_back(layout.bytes);
  }
  if (shape.empty() || shape.back() % layout.elements != 0 || blocks.shape() != expected || blocks.dtype() != DType::uint8)
    throw ShapeError(fmt::format("{}: ({}) elements of {} in {}, expects uint8 of ({})", operation, fmt::join(shape, ", "), layout.name,
                                 blocks.to_string(), fmt::join(expected, ", ")));
}

Tensor QuantizedTensor::dequantize(DType to) const {
  check("dequantize");
  const int64_t elements = layout_of(format).elements, bytes = layout_of(format).bytes;
  const int64_t count = blocks.numel() / bytes;
  const UOp on_grid = frontend::elements_of(format, ops::reshape(blocks.uop(), {count, bytes}));
  const UOp by_block = ops::transpose(ops::reshape(on_grid, {elements, count}));
  return tensor::wrap(tinygrad::cast(ops::reshape(by_block, tensor::to_shape(shape)), to));
}

}  // namespace tinygrad::formats
