#include "target/tensor_cores/families.h"

namespace tinygrad::tensor_core_families {
namespace {

/// simdgroup_matrix (Metal Shading Language, 6.7): all three matrices are held alike, two neighbours of a row in each lane. The language
/// does not say which; thread_elements() gives them so on every Apple GPU since A14 and M1.
TensorCore simdgroup_8x8x8(Symbol name, DType in, DType out) {
  const TensorCore::Layout held{bits("i1 i2 i4"), bits("e0 i0 i3")};
  return {.name = name, .m = 8, .n = 8, .k = 8, .a_type = in, .b_type = in, .out = out, .items = 32, .a = held, .b = held, .c = held};
}

}  // namespace

std::vector<Family> apple() {
  return {{"apple7",
           {simdgroup_8x8x8("simdgroup_8x8x8_f32", DType::float32, DType::float32),
            simdgroup_8x8x8("simdgroup_8x8x8_f16_f32", DType::float16, DType::float32),
            simdgroup_8x8x8("simdgroup_8x8x8_bf16_f32", DType::bfloat16, DType::float32),
            simdgroup_8x8x8("simdgroup_8x8x8_f16_f16", DType::float16, DType::float16)}}};
}

}  // namespace tinygrad::tensor_core_families
