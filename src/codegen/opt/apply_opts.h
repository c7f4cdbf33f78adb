#pragma once
/// Opts as changes of a kernel's loops.

#include <span>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The kernel with the opts applied in order. Axes are numbered as kernel_axes() lists them; `arg` is the size of the inner part, 0 the
/// whole axis:
///   UPCAST(loop axis, n)    n neighbouring output elements are computed side by side
///   UNROLL(reduce axis, n)  n neighbouring steps of a reduction are written out
///   LANE(axis, n)           n neighbouring elements, or steps of a reduction, are one vector; n is a power of two, and no value may have
///   two such axes THREAD(loop axis, n)    n chunks of the axis may run on different threads; once a kernel LOCAL(loop axis, n)     n
///   neighbouring elements are work-items of a group
/// Where n does not divide an axis its end is masked: loads and stores there are not made, and a reduction gets the identity.
/// ValueError for an opt that the kernel or the target does not take.
UOp apply_opts(const UOp& sink, std::span<const Opt> opts, const Target& target);

}  // namespace tinygrad::codegen
