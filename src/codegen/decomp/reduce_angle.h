#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// x = quadrant * pi/2 + rest, with |rest| <= pi/4 and the quadrant modulo 4.
struct Angle {
  UOp quadrant;  ///< a signed integer of the float's size
  UOp rest;
};

/// Of a finite x >= 0, exact to the last place of the rest; Payne and Hanek's method: x times those bits of 2/pi that matter, in integers.
Angle reduce_angle(const UOp& x);

}  // namespace tinygrad::codegen
