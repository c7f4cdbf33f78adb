#include "target/tensor_cores/families.h"

namespace tinygrad::tensor_core_families {

TensorCore dot_product(Symbol name, int lanes, int k, DType a, DType b, DType out) {
  const Bits elements = bits(k == 2 ? "e0" : "e0 e1"), items = bits(lanes == 4 ? "i0 i1" : lanes == 8 ? "i0 i1 i2" : "i0 i1 i2 i3");
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

}  // namespace tinygrad::tensor_core_families
