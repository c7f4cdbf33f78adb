#include "target/tensor_cores/families.h"

namespace tinygrad::tensor_core_families {
namespace {

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

}  // namespace

std::vector<Family> x86() {
  const TensorCore bytes[] = {dot_product("vpdpbusd_u8_s8", 4, DType::uint8, DType::int8, DType::int32),
                              dot_product("vpdpbusd_s8_u8", 4, DType::int8, DType::uint8, DType::int32)};
  return {{"avx512_vnni", {bytes[0], bytes[1]}},
          {"avx512_bf16", {dot_product("vdpbf16ps", 2, DType::bfloat16, DType::bfloat16, DType::float32), bytes[0], bytes[1]}}};
}

}  // namespace tinygrad::tensor_core_families
