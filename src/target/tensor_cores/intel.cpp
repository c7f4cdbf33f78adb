#include "target/tensor_cores/families.h"

namespace tinygrad::tensor_core_families {
namespace {

/// DPAS of 8 lanes (cl_intel_subgroup_matrix_multiply_accumulate): a lane holds two neighbours along k of each row of a, a column of b and
/// one of c.
TensorCore dpas_8x8x16(Symbol name, DType in) {
  return {.name = name,
          .m = 8,
          .n = 8,
          .k = 16,
          .a_type = in,
          .b_type = in,
          .out = DType::float32,
          .items = 8,
          .a = {bits("e1 e2 e3"), bits("e0 i0 i1 i2")},
          .b = {bits("e0 e1 e2 e3"), bits("i0 i1 i2")},
          .c = {bits("e0 e1 e2"), bits("i0 i1 i2")}};
}

}  // namespace

std::vector<Family> intel() {
  return {{"xe_hpg", {dpas_8x8x16("dpas_8x8x16_f16_f32", DType::float16), dpas_8x8x16("dpas_8x8x16_bf16_f32", DType::bfloat16)}}};
}

}  // namespace tinygrad::tensor_core_families
