#include "target/tensor_cores/families.h"

namespace tinygrad::tensor_core_families {
namespace {

/// SDOT and UDOT (FEAT_DotProd), USDOT (FEAT_I8MM).
TensorCore bytes(Symbol name, DType a, DType b) { return dot_product(name, 4, 4, a, b, DType::int32); }

/// SMMLA, UMMLA and USMMLA (FEAT_I8MM), BFMMLA (FEAT_BF16): a vector is two rows of a, another one two columns of b, and the third one two
/// rows of two sums.
TensorCore two_rows(Symbol name, int k, DType a, DType b, DType out, bool swapped = false) {
  const Bits elements = bits(k == 4 ? "e0 e1" : "e0 e1 e2"), row = bits(swapped ? "i0" : "i1"), column = bits(swapped ? "i1" : "i0");
  return {.name = name,
          .m = 2,
          .n = 2,
          .k = k,
          .a_type = a,
          .b_type = b,
          .out = out,
          .items = 4,
          .a = {row, elements},
          .b = {elements, column},
          .c = {row, column}};
}

TensorCore two_rows_of_bytes(Symbol name, DType a, DType b) {
  return two_rows(name, 8, a, b, DType::int32, a == DType::int8 && b == DType::uint8);  // its first factor is the unsigned one
}

}  // namespace

std::vector<Family> arm() {
  const DType s8 = DType::int8, u8 = DType::uint8, bf16 = DType::bfloat16;
  const TensorCore sdot = bytes("sdot", s8, s8), udot = bytes("udot", u8, u8);
  return {{"arm_dot", {sdot, udot}},
          {"arm_i8mm_bf16",
           {two_rows("bfmmla", 4, bf16, bf16, DType::float32), dot_product("bfdot", 4, 2, bf16, bf16, DType::float32),
            two_rows_of_bytes("smmla", s8, s8), two_rows_of_bytes("ummla", u8, u8), two_rows_of_bytes("usmmla_u8_s8", u8, s8),
            two_rows_of_bytes("usmmla_s8_u8", s8, u8), bytes("usdot_u8_s8", u8, s8), bytes("usdot_s8_u8", s8, u8), sdot, udot}}};
}

}  // namespace tinygrad::tensor_core_families
