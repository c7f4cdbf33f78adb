#pragma once
/// Graphs as people read them.

#include <string>

#include "uop/uop.h"

namespace tinygrad {

/// The graph as definitions, sources before users. What has one user stands in its user's line as far as the line has room for it, sums
/// and products are infix, and memory is indexed by brackets: `%4 float = REDUCE(LOAD(p1[r0*8 + r2])*LOAD(p2[r2]), r2; ADD)`. A name's
/// dtype and shape stand behind it. Bodies of functions and kernels follow under names of their own, what a CALL of a kernel binds
/// stands in the call. A linear program has an instruction a line, and loops are indented. The text depends on structure only: buffers
/// are numbered as they appear.
std::string print_listing(const UOp& root);

}  // namespace tinygrad
