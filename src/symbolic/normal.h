#pragma once
/// The normal forms of index expressions, one function for each kind of root. Each gives the better node, or null if there is none or it
/// cannot tell; the caller simplifies what comes back again.

#include "uop/uop.h"

namespace tinygrad::symbolic {

/// ADD, SUB, MUL, NEG.
UOp normal_sum(const UOp& u);
/// FLOORDIV and FLOORMOD.
UOp normal_div(const UOp& u);
UOp normal_mod(const UOp& u);
/// CMPLT, CMPEQ and CMPNE of index expressions.
UOp normal_less(const UOp& u);
UOp normal_equal(const UOp& u);
/// AND and OR of bools.
UOp normal_logic(const UOp& u);

/// `after`, if it surely has the shape of `before`: `before` is scalar, or all that decides on its shape, below its elementwise nodes, does
/// so still. Else null. A rule that may drop an operand gives its result through this.
UOp same_shape(const UOp& before, UOp after);

}  // namespace tinygrad::symbolic
