#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// On targets that have them, images in the place of arguments of float32 and float16 that a kernel only loads or only stores, by four
/// aligned neighbours in the lanes of a vector, and that nothing else may overlap: PARAM(n) becomes PARAM(height, width, 4), the texel
/// n/4 is at (n/4 % width, n/4 / width). Of the widths that fit, the one is taken that makes most conditions superfluous, since reading
/// outside gives 0, and the places simplest.
UOp use_images(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
