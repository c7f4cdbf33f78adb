#include "target/tensor_cores/families.h"

namespace tinygrad::tensor_core_families {
namespace {

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

}  // namespace

std::vector<Family> small() {
  return {{"small",
           {small_8x8x8("small_m8n8k8_f32", DType::float32, DType::float32),
            small_8x8x8("small_m8n8k8_f16_f32", DType::float16, DType::float32)}}};
}

}  // namespace tinygrad::tensor_core_families
