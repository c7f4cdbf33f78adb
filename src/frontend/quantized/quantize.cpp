// Values in blocks, as GGML's ggml_quantize_chunk makes them without an importance matrix: rounding for rounding, so that files are the
// same. CMake compiles this file without fused multiply-adds, which would round less often.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include <fmt/core.h>

#include <tinygrad/errors.h>
#include <tinygrad/formats.h>
#include <tinygrad/helpers.h>

namespace tinygrad::frontend {

using formats::BlockFormat;

namespace {

using Values = std::span<const float>;
using Bytes = std::span<uint8_t>;

/// A scale. Throws ValueError for one that is infinite as a float16, as all elements of its block would be.
void put_half(Bytes at, float value) {
  if (!std::isfinite(float(float16(value))))
    throw ValueError(
        fmt::format("quantize: a block's elements need a scale of {}, and blocks have scales up to 65504; scale the values down", value));
  const uint16_t bits = float16(value).bits;
  std::memcpy(at.data(), &bits, sizeof(bits));
}
float get_half(Bytes at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at.data(), sizeof(bits));
  return float(float16::from_bits(bits));
}

/// To even where two are as near, up to 2^22.
int nearest(float x) { return int(std::bit_cast<uint32_t>(x + 0x1.8p23f) & 0x7fffff) - (1 << 22); }

/// 0 for what has no finite inverse.
float inverse(float d) {
  const float id = d != 0 ? 1 / d : 0;
  return std::isfinite(id) ? id : 0;
}

/// The value of the largest magnitude, with its sign: the first of them.
float extreme(Values x) {
  float out = 0, most = 0;
  for (const float v : x)
    if (std::fabs(v) > most) {
      most = std::fabs(v);
      out = v;
    }
  return out;
}

/// Halves of bytes: first all of the low ones.
template <class Number>
void put_nibbles(std::span<const Number> q, Bytes to) {
  const size_t half = q.size() / 2;
  for (size_t i = 0; i < half; ++i) to[i] = uint8_t(q[i] | (q[i + half] << 4));
}

void q8_0(Values x, Bytes block) {
  const float d = std::fabs(extreme(x)) / 127, id = inverse(d);
  put_half(block, d);
  for (size_t i = 0; i < x.size(); ++i) block[2 + i] = uint8_t(int8_t(std::round(x[i] * id)));
}

void q4_0(Values x, Bytes block) {
  const float d = extreme(x) / -8, id = inverse(d);
  put_half(block, d);
  std::array<uint8_t, 32> q{};
  for (size_t i = 0; i < x.size(); ++i) q[i] = uint8_t(std::min(15, int(x[i] * id + 8.5f)));
  put_nibbles(std::span<const uint8_t>(q), block.subspan(2));
}

void mxfp4(Values x, Bytes block) {
  static constexpr std::array<float, 16> values{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const float most = std::fabs(extreme(x));
  const int e = most > 0 ? std::max(0, int(std::floor(std::log2(most))) + 125) : 0;
  const auto d = std::bit_cast<float>(e < 2 ? uint32_t(0x200000) << e : uint32_t(e - 1) << 23);
  block[0] = uint8_t(e);
  std::array<uint8_t, 32> q{};
  for (size_t i = 0; i < x.size(); ++i) {
    float least = std::fabs(x[i]);
    for (uint8_t k = 1; k < 16; ++k)
      if (const float error = std::fabs(values[k] * d - x[i]); error < least) {
        least = error;
        q[i] = k;
      }
  }
  put_nibbles(std::span<const uint8_t>(q), block.subspan(1));
}

/// What a group of Q4_K is near to: scale * q - minus, with q from 0 to 15.
struct Line {
  float scale = 0, minus = 0;
};

/// The line of least weighted squares among those that a range of first guesses leads to, and its numbers.
Line fit_line(Values x, std::span<uint8_t> q) {
  constexpr float steps = 15;
  const size_t n = x.size();
  float squares = 0;
  for (const float v : x) squares += v * v;
  const float typical = std::sqrt(squares / float(n));
  std::array<float, 32> weights{};
  for (size_t i = 0; i < n; ++i) weights[i] = typical + std::fabs(x[i]);

  float low = x[0], high = x[0], sum_w = weights[0], sum_x = sum_w * x[0];
  for (size_t i = 1; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
    sum_w += weights[i];
    sum_x += weights[i] * x[i];
  }
  low = std::min(low, 0.0f);
  if (high == low) {
    std::ranges::fill(q, uint8_t{0});
    return {0, -low};
  }
  const auto rounded = [&](float value, float from, float by) { return uint8_t(std::clamp(nearest(by * (value - from)), 0, int(steps))); };
  const auto error_of = [&](std::span<const uint8_t> numbers, float scale, float minimum) {
    float error = 0;
    for (size_t i = 0; i < n; ++i) {
      const float off = scale * float(numbers[i]) + minimum - x[i];
      error += weights[i] * (off * off);
    }
    return error;
  };
  const float first = steps / (high - low);
  float scale = 1 / first, minimum = low;
  for (size_t i = 0; i < n; ++i) q[i] = rounded(x[i], minimum, first);
  float least = error_of(q, scale, minimum);
  std::array<uint8_t, 32> tried{};
  for (int step = 0; step <= 20; ++step) {
    const float by = (-1.0f + 0.1f * float(step) + steps) / (high - minimum);
    float sum_l = 0, sum_l2 = 0, sum_xl = 0;
    for (size_t i = 0; i < n; ++i) {
      tried[i] = rounded(x[i], minimum, by);
      const auto l = float(tried[i]);
      sum_l += weights[i] * l;
      sum_l2 += weights[i] * l * l;
      sum_xl += weights[i] * l * x[i];
    }
    const float determinant = sum_w * sum_l2 - sum_l * sum_l;
    if (!(determinant > 0)) continue;
    float new_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant, new_minimum = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
    if (new_minimum > 0) {
      new_minimum = 0;
      new_scale = sum_xl / sum_l2;
    }
    if (const float error = error_of(tried, new_scale, new_minimum); error < least) {
      std::ranges::copy(std::span(tried).first(n), q.begin());
      least = error;
      scale = new_scale;
      minimum = new_minimum;
    }
  }
  return {scale, -minimum};
}

void q4_k(Values x, Bytes block) {
  constexpr size_t groups = 8, size = 32;
  std::array<uint8_t, groups * size> q{};
  std::array<Line, groups> lines;
  float scale = 0, minus = 0;
  for (size_t g = 0; g < groups; ++g) {
    lines[g] = fit_line(x.subspan(g * size, size), std::span(q).subspan(g * size, size));
    scale = std::max(scale, lines[g].scale);
    minus = std::max(minus, lines[g].minus);
  }
  const float by_scale = scale > 0 ? 63 / scale : 0, by_minus = minus > 0 ? 63 / minus : 0;
  put_half(block, scale / 63);
  put_half(block.subspan(2), minus / 63);
  const float d = get_half(block), dmin = get_half(block.subspan(2));
  const Bytes packed = block.subspan(4, 12);
  for (size_t g = 0; g < groups; ++g) {
    const auto s = std::min<uint8_t>(63, uint8_t(nearest(by_scale * lines[g].scale)));
    const auto m = std::min<uint8_t>(63, uint8_t(nearest(by_minus * lines[g].minus)));
    if (g < 4) {
      packed[g] = s;
      packed[g + 4] = m;
    } else {
      packed[g + 4] = uint8_t((s & 15) | (m << 4));
      packed[g - 4] = uint8_t(packed[g - 4] | ((s >> 4) << 6));
      packed[g] = uint8_t(packed[g] | ((m >> 4) << 6));
    }
    if (d * float(s) == 0) continue;
    for (size_t i = g * size; i < (g + 1) * size; ++i)
      q[i] = uint8_t(std::clamp(nearest((x[i] + dmin * float(m)) / (d * float(s))), 0, 15));
  }
  for (size_t pair = 0; pair < groups / 2; ++pair)
    put_nibbles(std::span<const uint8_t>(q).subspan(pair * 2 * size, 2 * size), block.subspan(16 + pair * size));
}

/// The scale of sixteen values as scale * q with q from -32 to 31: of the first guesses in a range, the one of least weighted squares.
float fit_scale(Values x, std::span<int8_t> q) {
  const float most = extreme(x);
  std::ranges::fill(q, int8_t{0});
  if (std::fabs(most) < 1e-15f) return 0;
  const auto rounded = [](float value, float by) { return std::clamp(nearest(by * value), -32, 31); };
  float best = 0, scale = 0;
  for (const int step : {0, -9, -8, -7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
    const float by = step == 0 ? -32 / most : -(32 + 0.1f * float(step)) / most;
    float xl = 0, l2 = 0;
    for (const float v : x) {
      const auto l = float(rounded(v, by));
      const float w = v * v;
      xl += w * v * l;
      l2 += w * l * l;
    }
    if (step != 0 && !(l2 > 0 && xl * xl > best * l2)) continue;
    for (size_t i = 0; i < x.size(); ++i) q[i] = int8_t(32 + rounded(x[i], by));
    scale = l2 != 0 ? xl / l2 : 0;
    best = scale * xl;
  }
  return scale;
}

void q6_k(Values x, Bytes block) {
  constexpr size_t groups = 16, size = 16;
  std::array<int8_t, groups * size> q{};
  std::array<float, groups> scales{};
  for (size_t g = 0; g < groups; ++g) scales[g] = fit_scale(x.subspan(g * size, size), std::span(q).subspan(g * size, size));
  const float greatest = extreme(scales);
  if (std::fabs(greatest) < 1e-15f) return;  // the block is zeros
  const float by = -128 / greatest;
  put_half(block.subspan(208), 1 / by);
  const float d = get_half(block.subspan(208));
  for (size_t g = 0; g < groups; ++g) {
    const auto s = int8_t(std::min(127, nearest(by * scales[g])));
    block[192 + g] = uint8_t(s);
    if (d * float(s) == 0) continue;
    for (size_t i = g * size; i < (g + 1) * size; ++i) q[i] = int8_t(std::clamp(nearest(x[i] / (d * float(s))), -32, 31) + 32);
  }
  // Of each 128 elements the low halves go to 64 bytes, and the other two bits to 32.
  for (size_t half = 0; half < 2; ++half) {
    const auto* const from = q.data() + 128 * half;
    for (size_t i = 0; i < 64; ++i) block[64 * half + i] = uint8_t((from[i] & 15) | ((from[i + 64] & 15) << 4));
    for (size_t i = 0; i < 32; ++i)
      block[128 + 32 * half + i] =
          uint8_t((from[i] >> 4) | ((from[i + 32] >> 4) << 2) | ((from[i + 64] >> 4) << 4) | ((from[i + 96] >> 4) << 6));
  }
}

using Quantize = void (*)(Values x, Bytes block);

/// Null where there is none.
Quantize quantizer_of(BlockFormat format) {
  switch (format) {
    case BlockFormat::Q8_0: return q8_0;
    case BlockFormat::Q4_0: return q4_0;
    case BlockFormat::Q4_K: return q4_k;
    case BlockFormat::Q6_K: return q6_k;
    case BlockFormat::MXFP4: return mxfp4;
    default: return nullptr;
  }
}

}  // namespace

}  // namespace tinygrad::frontend

namespace tinygrad::formats {

bool can_quantize(BlockFormat format) { return frontend::quantizer_of(format) != nullptr; }

QuantizedTensor quantize(const Tensor& values, BlockFormat format) {
  const BlockLayout& layout = layout_of(format);
  const frontend::Quantize block_of = frontend::quantizer_of(format);
  if (!block_of) throw ValueError(fmt::format("quantize: there is none for {}, only for Q8_0, Q4_0, Q4_K, Q6_K and MXFP4", layout.name));
  Sizes shape = values.shape();
  if (shape.empty() || shape.back() % layout.elements != 0)
    throw ShapeError(fmt::format("quantize: the last axis of {} is no multiple of the {} elements of a block of {}", values.to_string(),
                                 layout.elements, layout.name));
  const Tensor here = values.cast(DType::float32).to("CPU");
  const std::shared_ptr<std::byte> memory = here.host_memory();
  const std::span<const float> all(reinterpret_cast<const float*>(memory.get()), size_t(here.numel()));
  if (const auto bad = std::ranges::find_if_not(all, [](float v) { return std::isfinite(v); }); bad != all.end())
    throw ValueError(fmt::format("quantize: element {} of {} is {}, expects finite numbers", bad - all.begin(), values.to_string(), *bad));
  // Beyond this no format with scales of float16 has a scale, and squares would overflow; those of MXFP4 are powers of two.
  constexpr float most = 65504.0f * 128 * 32;
  if (const auto bad = std::ranges::find_if(all, [](float v) { return std::fabs(v) > most; });
      bad != all.end() && format != BlockFormat::MXFP4)
    throw ValueError(fmt::format("quantize: element {} of {} is {}, too large for the scales of {}; scale the values down",
                                 bad - all.begin(), values.to_string(), *bad, layout.name));
  const auto elements = size_t(layout.elements), bytes = size_t(layout.bytes), count = all.size() / elements;
  std::vector<uint8_t> blocks(count * bytes);
  constexpr size_t often = 4096;
  for (size_t i = 0; i < count; ++i) {
    if (i % often == 0) check_interrupt();
    block_of(all.subspan(i * elements, elements), std::span(blocks).subspan(i * bytes, bytes));
  }
  QuantizedTensor out{.format = format, .shape = shape, .blocks = {}};
  shape.back() /= layout.elements;
  shape.push_back(layout.bytes);
  out.blocks = Tensor(blocks, shape, {.device = values.device()});
  return out;
}

}  // namespace tinygrad::formats
