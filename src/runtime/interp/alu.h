#pragma once
/// Elementwise ops on arrays of canonical bits (see Scalar), as scalar_ops defines them.

#include <cstddef>
#include <cstdint>

#include <tinygrad/dtype.h>

#include "dtype/scalar.h"
#include "uop/op.h"

namespace tinygrad::runtime::interp {

/// An operand: element i is data[i * step], step 0 or 1.
struct Operand {
  const uint64_t* data = nullptr;
  size_t step = 1;
  uint64_t operator[](size_t i) const { return data[i * step]; }
};

/// out[i] = op(in[0][i], ...) for `count` elements. `in_dtype` is that of the operands (of WHERE: of the branches).
void apply(Op op, DType out_dtype, DType in_dtype, uint64_t* out, const Operand (&in)[3], size_t count);

/// The scalar of canonical bits.
Scalar scalar_of(uint64_t bits, DType dtype);

}  // namespace tinygrad::runtime::interp
