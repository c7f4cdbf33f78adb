#pragma once
#include <string_view>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Writes floats of 8 and 16 bits that the target does not have by integers in memory and float32 elsewhere. A value is held exactly, in
/// float32; each op that may need rounding is followed by it, so results are those of the dtype. Where the target converts the dtype, the
/// conversions are CASTs, else integer arithmetic.
UOp emulate_dtypes(const UOp& sink, const Target& target);

/// The target without dtypes that are named in a list, "float16,int64" (the option EMULATED_DTYPES). Throws ValueError for a dtype that
/// cannot be emulated.
Target without_dtypes(Target target, std::string_view names);

/// The bits, as uint32, of the number of dtype `to` nearest to a float32; ties to even. What is too large is infinity, or NaN where
/// there is none.
UOp encode_float(const UOp& x, DType to);
/// The float32 with the value of a number whose bits, as uint32, are of dtype `from`.
UOp decode_float(const UOp& bits, DType from);

}  // namespace tinygrad::codegen
