#include <bit>

#include <fmt/format.h>

#include "target/tensor_cores/families.h"

namespace tinygrad::tensor_core_families {
namespace {

/// mma.sync.m16n8k16 of 16-bit inputs (PTX ISA, 9.7.14.5.8): element pairs are neighbours along k in a and b, along n in c.
TensorCore mma_16x8x16(Symbol name, DType in, DType out) {
  return {.name = name,
          .m = 16,
          .n = 8,
          .k = 16,
          .a_type = in,
          .b_type = in,
          .out = out,
          .items = 32,
          .a = {bits("i2 i3 i4 e1"), bits("e0 i0 i1 e2")},
          .b = {bits("e0 i0 i1 e1"), bits("i2 i3 i4")},
          .c = {bits("i2 i3 i4 e1"), bits("e0 i0 i1")}};
}

/// mma.sync.m16n8k32 of 8-bit inputs (9.7.14.5.10): four neighbours along k in a and b.
TensorCore mma_16x8x32(Symbol name, DType a, DType b, DType out) {
  return {.name = name,
          .m = 16,
          .n = 8,
          .k = 32,
          .a_type = a,
          .b_type = b,
          .out = out,
          .items = 32,
          .a = {bits("i2 i3 i4 e2"), bits("e0 e1 i0 i1 e3")},
          .b = {bits("e0 e1 i0 i1 e2"), bits("i2 i3 i4")},
          .c = {bits("i2 i3 i4 e1"), bits("e0 i0 i1")}};
}

/// mma.sync.m16n8k8 of float32 inputs rounded to TF32 (9.7.14.5.7).
TensorCore mma_16x8x8_tf32() {
  return {.name = "mma_m16n8k8_tf32_f32",
          .m = 16,
          .n = 8,
          .k = 8,
          .a_type = DType::float32,
          .b_type = DType::float32,
          .out = DType::float32,
          .items = 32,
          .kept_bits = 10,
          .a = {bits("i2 i3 i4 e0"), bits("i0 i1 e1")},
          .b = {bits("i0 i1 e0"), bits("i2 i3 i4")},
          .c = {bits("i2 i3 i4 e1"), bits("e0 i0 i1")}};
}

/// mma.sync.m8n8k4 of float64 (9.7.14.5.3).
TensorCore mma_8x8x4_f64() {
  return {.name = "mma_m8n8k4_f64_f64",
          .m = 8,
          .n = 8,
          .k = 4,
          .a_type = DType::float64,
          .b_type = DType::float64,
          .out = DType::float64,
          .items = 32,
          .a = {bits("i2 i3 i4"), bits("i0 i1")},
          .b = {bits("i0 i1"), bits("i2 i3 i4")},
          .c = {bits("i2 i3 i4"), bits("e0 i0 i1")}};
}

// wgmma.mma_async (9.7.15): four warps multiply 64 rows, and both factors lie in shared memory, as core matrices of eight rows of 16 bytes
// or swizzled. A row lies along k, or, of 16-bit numbers, along m or n.

Bits element_bits(int first, int count) {
  Bits out;
  for (int i = first; i < first + count; ++i) out.push_back({true, uint8_t(i)});
  return out;
}

Bits joined(Bits a, const Bits& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Where the 2^length rows of a, or columns of b, lie of which each has 32 bytes along k.
struct SharedMatrix {
  Bits across, along_k;
  int run, gap, swizzle = 1;
  TensorCore::Layout layout(bool is_first) const {
    return {.row = is_first ? across : along_k,
            .column = is_first ? along_k : across,
            .in_memory = true,
            .run = run,
            .gap = gap,
            .swizzle = swizzle};
  }
};

/// The core matrices that follow each other along the rows of 16 bytes are an odd number of such rows apart, so that what is copied there
/// comes to other banks.
SharedMatrix shared_matrix(int length, DType d, bool lies_along_k) {
  const int piece = std::bit_width(16 / itemsize(d)) - 1, whole = 1 << piece;  // of 16 bytes
  if (lies_along_k)
    return {.across = element_bits(piece, length),
            .along_k = joined(element_bits(0, piece), element_bits(piece + length, 1)),
            .run = whole << length,
            .gap = whole};
  return {.across = joined(element_bits(0, piece), element_bits(2 * piece + 1, length - piece)),
          .along_k = element_bits(piece, piece + 1),
          .run = 2 * whole * whole,
          .gap = whole};
}

/// Neighbours in the argument lie together, 32 bytes along k or 128 across it, as cp.async fetches what goes to one place in lines at a
/// time: on an H100 products of large matrices are copied in a third of the time. Swizzled, so that eight rows are in other banks.
SharedMatrix swizzled_matrix(int length, DType d, bool lies_along_k) {
  const int piece = std::bit_width(16 / itemsize(d)) - 1, row = lies_along_k ? piece + 1 : piece + 3;
  if (lies_along_k)
    return {.across = element_bits(row, length), .along_k = element_bits(0, row), .run = 1 << piece, .gap = 0, .swizzle = 2};
  const int steps = piece + 1;
  return {.across = joined(element_bits(0, row), element_bits(row + steps, length - row)),
          .along_k = element_bits(row, steps),
          .run = 1 << piece,
          .gap = 0,
          .swizzle = 8};
}

/// `lie` says along what a and b lie: "kn" is a along k, b along n.
TensorCore wgmma(int n, DType a, DType b, DType out, std::string_view types, std::string_view lie) {
  const int k = 32 / int(itemsize(a)), columns = std::bit_width(unsigned(n)) - 1;
  return {.name = Symbol(fmt::format("wgmma_m64n{}k{}_{}_{}", n, k, lie, types)),
          .m = 64,
          .n = n,
          .k = k,
          .a_type = a,
          .b_type = b,
          .out = out,
          .items = 128,
          .a = swizzled_matrix(6, a, lie[0] == 'k').layout(true),
          .b = swizzled_matrix(columns, b, lie[1] == 'k').layout(false),
          .c = {bits("i2 i3 i4 e1 i5 i6"), joined(bits("e0 i0 i1"), element_bits(2, columns - 3))}};
}

constexpr int kWidths[] = {256, 128, 64};  // wide ones first: they read less for each product

std::vector<TensorCore> warpgroup_cores() {
  struct Types {
    DType a, b, out;
    std::string_view name;
  };
  constexpr Types kHalves[] = {{DType::float16, DType::float16, DType::float32, "f16_f32"},
                               {DType::bfloat16, DType::bfloat16, DType::float32, "bf16_f32"},
                               {DType::float16, DType::float16, DType::float16, "f16_f16"}};
  constexpr Types kBytes[] = {{DType::int8, DType::int8, DType::int32, "s8_s8_s32"},
                              {DType::uint8, DType::uint8, DType::int32, "u8_u8_s32"},
                              {DType::uint8, DType::int8, DType::int32, "u8_s8_s32"},
                              {DType::int8, DType::uint8, DType::int32, "s8_u8_s32"},
                              {DType::fp8e4m3, DType::fp8e4m3, DType::float32, "e4m3_e4m3_f32"},
                              {DType::fp8e5m2, DType::fp8e5m2, DType::float32, "e5m2_e5m2_f32"},
                              {DType::fp8e4m3, DType::fp8e5m2, DType::float32, "e4m3_e5m2_f32"},
                              {DType::fp8e5m2, DType::fp8e4m3, DType::float32, "e5m2_e4m3_f32"}};
  std::vector<TensorCore> cores;
  for (const int n : kWidths) {
    for (const Types& t : kHalves)
      for (const std::string_view lie : {"kk", "kn", "mk", "mn"}) cores.push_back(wgmma(n, t.a, t.b, t.out, t.name, lie));
    for (const Types& t : kBytes) cores.push_back(wgmma(n, t.a, t.b, t.out, t.name, "kk"));
  }
  return cores;
}

/// The unit reads TF32 of what is a float32 in memory.
std::vector<TensorCore> warpgroup_tf32_cores() {
  std::vector<TensorCore> cores;
  for (const int n : kWidths) {
    cores.push_back(wgmma(n, DType::float32, DType::float32, DType::float32, "tf32_f32", "kk"));
    cores.back().kept_bits = 10;
    cores.back().cuts_off = true;
  }
  return cores;
}

/// tcgen05.mma (9.7.16): as wgmma, but 128 rows, a row of sums for each item, which are in a memory of their own.
std::vector<TensorCore> tensor_memory_cores(bool tf32) {
  std::vector<TensorCore> cores;
  for (const TensorCore& w : tf32 ? warpgroup_tf32_cores() : warpgroup_cores()) {
    if (w.n > 128 || w.out == DType::float16) continue;
    TensorCore core = w;
    std::string name(w.name.str());
    core.name = Symbol("tcgen05_m128" + name.substr(name.find('n')));
    core.m = 128;
    core.a = shared_matrix(7, w.a_type, w.a.column[0].n == 0).layout(true);
    core.b = shared_matrix(std::bit_width(unsigned(w.n)) - 1, w.b_type, w.b.row[0].n == 0).layout(false);
    core.c = {bits("i0 i1 i2 i3 i4 i5 i6"), element_bits(0, std::bit_width(unsigned(w.n)) - 1)};
    core.tensor_memory = true;
    cores.push_back(std::move(core));
  }
  return cores;
}

}  // namespace

std::vector<Family> nvidia() {
  return {{"sm_90a", warpgroup_cores()},
          {"sm_90a_tf32", warpgroup_tf32_cores()},
          {"sm_100a", tensor_memory_cores(false)},
          {"sm_100a_tf32", tensor_memory_cores(true)},
          {"sm_80",
           {mma_16x8x16("mma_m16n8k16_f16_f32", DType::float16, DType::float32),
            mma_16x8x16("mma_m16n8k16_bf16_f32", DType::bfloat16, DType::float32),
            mma_16x8x16("mma_m16n8k16_f16_f16", DType::float16, DType::float16)}},
          {"sm_80_bytes",
           {mma_16x8x32("mma_m16n8k32_s8_s8_s32", DType::int8, DType::int8, DType::int32),
            mma_16x8x32("mma_m16n8k32_u8_u8_s32", DType::uint8, DType::uint8, DType::int32),
            mma_16x8x32("mma_m16n8k32_u8_s8_s32", DType::uint8, DType::int8, DType::int32),
            mma_16x8x32("mma_m16n8k32_s8_u8_s32", DType::int8, DType::uint8, DType::int32)}},
          {"sm_80_doubles", {mma_8x8x4_f64()}},
          {"sm_80_tf32", {mma_16x8x8_tf32()}},
          {"sm_89",
           {mma_16x8x32("mma_m16n8k32_e4m3_e4m3_f32", DType::fp8e4m3, DType::fp8e4m3, DType::float32),
            mma_16x8x32("mma_m16n8k32_e5m2_e5m2_f32", DType::fp8e5m2, DType::fp8e5m2, DType::float32),
            mma_16x8x32("mma_m16n8k32_e4m3_e5m2_f32", DType::fp8e4m3, DType::fp8e5m2, DType::float32),
            mma_16x8x32("mma_m16n8k32_e5m2_e4m3_f32", DType::fp8e5m2, DType::fp8e4m3, DType::float32)}}};
}

}  // namespace tinygrad::tensor_core_families
