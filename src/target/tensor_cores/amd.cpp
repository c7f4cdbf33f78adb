#include "target/tensor_cores/families.h"

// Layouts as the AMD matrix instruction calculator gives them.
namespace tinygrad::tensor_core_families {
namespace {

/// Bits `first`, `first` + 1, ... of an item or an element.
Bits run(bool of_element, int first, int count) {
  Bits out;
  for (int i = 0; i < count; ++i) out.push_back({of_element, uint8_t(first + i)});
  return out;
}

int log2_of(int n) {
  int bits = 0;
  while (n >> (bits + 1)) ++bits;
  return bits;
}

/// The lanes of a wave are the rows of a and columns of b, for as many steps of k as there are lanes left.
TensorCore square(Symbol name, int size, int k, DType in, DType out, int lanes, Bits steps, TensorCore::Layout c) {
  const Bits line = run(false, 0, log2_of(size));
  return {.name = name,
          .m = size,
          .n = size,
          .k = k,
          .a_type = in,
          .b_type = in,
          .out = out,
          .items = lanes,
          .a = {line, steps},
          .b = {steps, line},
          .c = std::move(c)};
}

/// Matrix cores of CDNA: a wave of 64 lanes, each with neighbours along k.
TensorCore mfma(Symbol name, int size, int k, DType in, DType out) {
  const int lines = log2_of(size), held = log2_of(size * k / 64);
  Bits steps = run(true, 0, held);
  for (const TensorCore::Bit& lane : run(false, lines, 6 - lines)) steps.push_back(lane);
  const Bits rows = out == DType::float64 ? bits("i4 i5 e0 e1") : bits(size == 16 ? "e0 e1 i4 i5" : "e0 e1 i5 e2 e3");
  return square(name, size, k, in, out, 64, std::move(steps), {rows, run(false, 0, lines)});
}

/// RDNA3, in waves of 32 lanes: lanes 16 to 31 hold what lanes 0 to 15 hold of a and b, and every other row of c.
TensorCore wmma(Symbol name, DType in, DType out) {
  return square(name, 16, 16, in, out, 32, bits("e0 e1 e2 e3"), {bits("i4 e0 e1 e2"), bits("i0 i1 i2 i3")});
}

/// RDNA4, in waves of 32 lanes: a lane holds steps along k as one register of 64 bits has them, and half a column of c.
TensorCore wmma_gfx12(Symbol name, DType in, DType out) {
  return square(name, 16, 16, in, out, 32, bits(bitsize(in) == 8 ? "e0 e1 e2 i4" : "e0 e1 i4 e2"),
                {bits("e0 e1 e2 i4"), bits("i0 i1 i2 i3")});
}
TensorCore wmma_gfx12(Symbol name, DType a, DType b, DType out) {
  TensorCore core = wmma_gfx12(name, a, out);
  core.b_type = b;
  return core;
}

/// What MI200 and MI300 have both.
void add_mfma(std::vector<TensorCore>& cores) {
  using enum DType;
  cores.insert(cores.end(),
               {mfma("mfma_f32_32x32x8_f16", 32, 8, float16, float32), mfma("mfma_f32_16x16x16_f16", 16, 16, float16, float32),
                mfma("mfma_f32_32x32x8_bf16", 32, 8, bfloat16, float32), mfma("mfma_f32_16x16x16_bf16", 16, 16, bfloat16, float32),
                mfma("mfma_f32_32x32x2_f32", 32, 2, float32, float32), mfma("mfma_f32_16x16x4_f32", 16, 4, float32, float32),
                mfma("mfma_f64_16x16x4_f64", 16, 4, float64, float64)});
}

}  // namespace

std::vector<Family> amd() {
  using enum DType;
  std::vector<Family> families{
      {"gfx90a", {mfma("mfma_i32_32x32x8_i8", 32, 8, int8, int32), mfma("mfma_i32_16x16x16_i8", 16, 16, int8, int32)}},
      {"gfx942",
       {mfma("mfma_i32_32x32x16_i8", 32, 16, int8, int32), mfma("mfma_i32_16x16x32_i8", 16, 32, int8, int32),
        mfma("mfma_f32_32x32x16_fp8", 32, 16, fp8e4m3, float32), mfma("mfma_f32_16x16x32_fp8", 16, 32, fp8e4m3, float32)}}};
  for (Family& f : families) add_mfma(f.cores);
  families.push_back({"gfx1100",
                      {wmma("wmma_f32_16x16x16_f16", float16, float32), wmma("wmma_f32_16x16x16_bf16", bfloat16, float32),
                       wmma("wmma_i32_16x16x16_i8", int8, int32), wmma("wmma_i32_16x16x16_u8", uint8, int32)}});
  families.push_back(
      {"gfx1201",
       {wmma_gfx12("wmma_gfx12_f32_16x16x16_f16", float16, float32), wmma_gfx12("wmma_gfx12_f32_16x16x16_bf16", bfloat16, float32),
        wmma_gfx12("wmma_gfx12_f16_16x16x16_f16", float16, float16), wmma_gfx12("wmma_gfx12_i32_16x16x16_i8", int8, int32),
        wmma_gfx12("wmma_gfx12_i32_16x16x16_u8", uint8, int32), wmma_gfx12("wmma_gfx12_f32_16x16x16_fp8", fp8e4m3, float32),
        wmma_gfx12("wmma_gfx12_f32_16x16x16_bf8", fp8e5m2, float32),
        wmma_gfx12("wmma_gfx12_f32_16x16x16_fp8_bf8", fp8e4m3, fp8e5m2, float32),
        wmma_gfx12("wmma_gfx12_f32_16x16x16_bf8_fp8", fp8e5m2, fp8e4m3, float32)}});
  return families;
}

}  // namespace tinygrad::tensor_core_families
