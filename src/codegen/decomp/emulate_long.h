#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Writes int64 and uint64 by two words of 32 bits, on a target that lacks either. A buffer of n of them is one of 2n uint32, low words
/// first. Takes what decompose_ops() leaves for such a target: no general division, no conversions from and to floats. CompileError for
/// memory that 32-bit indices do not reach.
///
/// A target with float64 is taken to be able to move its 64 bits as an integer: BITCASTs from and to float64 stay.
UOp emulate_long(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
