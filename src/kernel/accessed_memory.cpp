#include "kernel/accessed_memory.h"

#include "shape/shape.h"

namespace tinygrad {

UOp memory_of(const UOp& place) {
  const UOp* m = &place;
  while (m->is(Op::INDEX) || m->is(Op::AFTER)) m = &m->src(0);
  return *m;
}

int64_t memory_bytes(const UOp& memory) {
  if (!memory.is(Op::PARAM)) return 0;
  const Shape& shape = shape_of(memory);
  return shape.size() == 1 && shape[0].known() ? shape[0].value() * int64_t(itemsize(memory.dtype())) : 0;
}

}  // namespace tinygrad
