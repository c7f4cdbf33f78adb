#include "codegen/late/distance.h"

#include "uop/build.h"

namespace tinygrad::codegen {

Distance distance_of(const UOp& at) {
  Distance d{at, 0};
  for (;;) {
    if (const Scalar* c = const_value(d.from)) return {UOp(), d.elements + c->as_int()};
    if (!d.from.is(Op::ADD)) return d;
    const size_t number = const_value(d.from.src(1)) ? 1 : 0;
    const Scalar* c = const_value(d.from.src(number));
    if (!c) return d;
    d = {UOp(d.from.src(1 - number)), d.elements + c->as_int()};
  }
}

}  // namespace tinygrad::codegen
