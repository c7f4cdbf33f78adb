#include <algorithm>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "target/target.h"

namespace tinygrad {

namespace {

using Bits = std::vector<TensorCore::Bit>;

/// "i2 i3 e1": bits of the item and of the element, lowest first.
Bits bits(std::string_view text) {
  Bits out;
  for (size_t i = 0; i + 1 < text.size(); i += 3) out.push_back({text[i] == 'e', uint8_t(text[i + 1] - '0')});
  return out;
}

int64_t gather(const Bits& from, int64_t item, int64_t element) {
  int64_t out = 0;
  for (size_t i = 0; i < from.size(); ++i) out |= ((from[i].of_element ? element : item) >> from[i].n & 1) << i;
  return out;
}

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

/// A row of a and of c, and a column of b, for each of 8 items.
TensorCore small_8x8x8(Symbol name, DType in, DType out) {
  return {.name = name,
          .m = 8,
          .n = 8,
          .k = 8,
          .a_type = in,
          .b_type = in,
          .out = out,
          .items = 8,
          .a = {bits("i0 i1 i2"), bits("e0 e1 e2")},
          .b = {bits("e0 e1 e2"), bits("i0 i1 i2")},
          .c = {bits("i0 i1 i2"), bits("e0 e1 e2")}};
}

/// The dot product instructions of AVX-512: to the sum of each lane comes the product of a row of a, the same for all lanes, and the lane's
/// own column of b, of which the elements are neighbours.
TensorCore dot_product(Symbol name, int k, DType a, DType b, DType out) {
  const Bits elements = bits(k == 2 ? "e0" : "e0 e1"), lanes = bits("i0 i1 i2 i3");
  return {.name = name,
          .m = 1,
          .n = 16,
          .k = k,
          .a_type = a,
          .b_type = b,
          .out = out,
          .items = 16,
          .a = {{}, elements},
          .b = {elements, lanes},
          .c = {{}, lanes}};
}

struct Family {
  std::string_view name;
  std::vector<TensorCore> cores;
};

const std::vector<Family>& families() {
  static const TensorCore bytes[] = {dot_product("vpdpbusd_u8_s8", 4, DType::uint8, DType::int8, DType::int32),
                                     dot_product("vpdpbusd_s8_u8", 4, DType::int8, DType::uint8, DType::int32)};
  static const auto& all = *new std::vector<Family>{
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
        mma_16x8x32("mma_m16n8k32_e5m2_e4m3_f32", DType::fp8e5m2, DType::fp8e4m3, DType::float32)}},
      {"avx512_vnni", {bytes[0], bytes[1]}},
      {"avx512_bf16", {dot_product("vdpbf16ps", 2, DType::bfloat16, DType::bfloat16, DType::float32), bytes[0], bytes[1]}},
      {"small",
       {small_8x8x8("small_m8n8k8_f32", DType::float32, DType::float32),
        small_8x8x8("small_m8n8k8_f16_f32", DType::float16, DType::float32)}},
  };
  return all;
}

}  // namespace

int TensorCore::Layout::elements() const {
  int count = 1;
  for (const Bits* side : {&row, &column})
    for (const Bit& bit : *side) count <<= bit.of_element;
  return count;
}
int64_t TensorCore::Layout::row_of(int64_t item, int64_t element) const { return gather(row, item, element); }
int64_t TensorCore::Layout::column_of(int64_t item, int64_t element) const { return gather(column, item, element); }

const std::vector<TensorCore>& tensor_cores(std::string_view family) {
  std::string known;
  for (const Family& f : families()) {
    if (f.name == family) return f.cores;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", f.name);
  }
  throw ValueError(fmt::format("tensor cores: unknown family '{}'; known are {}", family, known));
}

const TensorCore* find_tensor_core(Symbol name) {
  for (const Family& f : families())
    for (const TensorCore& core : f.cores)
      if (core.name == name) return &core;
  return nullptr;
}

}  // namespace tinygrad
