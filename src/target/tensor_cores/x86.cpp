#include "target/tensor_cores/families.h"
#include "target/tensor_cores/registers.h"

namespace tinygrad::tensor_core_families {
namespace {

/// The instructions of AVX2 and AVX-512 that add dot products: to the sum of each lane comes the product of a row of a, the same for all
/// lanes, and the lane's own column of b, of which the elements are neighbours.
TensorCore dot_product(Symbol name, int lanes, int k, DType a, DType b, DType out) {
  const Bits elements = bits(k == 2 ? "e0" : "e0 e1"), items = bits(lanes == 8 ? "i0 i1 i2" : "i0 i1 i2 i3");
  return {.name = name,
          .m = 1,
          .n = lanes,
          .k = k,
          .a_type = a,
          .b_type = b,
          .out = out,
          .items = lanes,
          .a = {{}, elements},
          .b = {elements, items},
          .c = {{}, items}};
}

TensorCore words(Symbol name, int lanes) { return dot_product(name, lanes, 2, DType::int16, DType::int16, DType::int32); }

}  // namespace

std::vector<Family> x86() {
  const TensorCore bytes[] = {dot_product("vpdpbusd_u8_s8", 16, 4, DType::uint8, DType::int8, DType::int32),
                              dot_product("vpdpbusd_s8_u8", 16, 4, DType::int8, DType::uint8, DType::int32)};
  const TensorCore floats = dot_product("vdpbf16ps", 16, 2, DType::bfloat16, DType::bfloat16, DType::float32);
  return {{"avx2", {words("vpmaddwd_256", 8)}},
          {"avx512", {words("vpmaddwd_512", 16)}},
          {"avx512_vnni", {bytes[0], bytes[1], words("vpdpwssd", 16)}},
          {"avx512_bf16", {floats, bytes[0], bytes[1], words("vpdpwssd", 16)}}};
}

}  // namespace tinygrad::tensor_core_families

namespace tinygrad {

/// VPMADDWD has a product of its own, which another instruction adds.
int temporaries_of(const TensorCore& core) { return core.name == Symbol("vpmaddwd_256") || core.name == Symbol("vpmaddwd_512") ? 1 : 0; }

}  // namespace tinygrad
