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

}  // namespace

std::vector<Family> nvidia() {
  return {{"sm_80",
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
