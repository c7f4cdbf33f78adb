#include "uop/reduce.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "uop/build.h"

namespace tinygrad {

UOp reduce_identity(Op op, DType dtype) {
  switch (op) {
    case Op::ADD:
    case Op::OR:
    case Op::XOR: return constant(dtype, 0);
    case Op::MUL: return constant(dtype, 1);
    case Op::MAX: return constant(min_value(dtype));
    case Op::AND: return is_bool(dtype) ? bool_const(true) : constant(Scalar::from_int(-1, dtype));
    default: throw InternalError(fmt::format("reduce: {} is not an op that a REDUCE takes", name(op)));
  }
}

}  // namespace tinygrad
