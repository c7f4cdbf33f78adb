#pragma once
/// Opts as changes of a kernel's loops.

#include <span>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The kernel with the opts applied in order. Axes are numbered as kernel_axes() lists them; `n` is the size of the part that is taken from
/// the axis, 0 the whole axis:
///
///   UPCAST(loop axis, n)       n neighbouring output elements are computed side by side
///   UNROLL(reduce axis, n)     n neighbouring steps of a reduction are written out
///   LANE(axis, n)              n neighbouring elements, or steps of a reduction, are one vector; n is a power of two, and no value may
///                              have two such axes
///   THREAD(loop axis, n)       n chunks of the axis may run on different threads; once a kernel of one nest
///   LOCAL(loop axis, n)        n neighbouring elements are work-items of a group
///   GROUP(reduce axis, n)      n work-items of a group share a reduction, each taking every n-th step; the same ones where they share
///   another
///                              reduction already that is done before or behind this one
///   GROUPTOP(reduce axis, n)   the same, each taking a run of steps
///   PADTO(axis, n)             the axis is made a multiple of n long, its end masked; one of a size known at launch gets a constant size
///   BLOCK(axis, n)             the axis becomes two, blocks and the n iterations of one, which is the next axis. Where n does not divide a
///                              loop axis, the last block begins early enough to end with the axis, and some elements are computed twice
///   OUTER(reduce axis, loop)   the loop of the reduction goes around the loop axis and all inside of it, whose results so far are kept in
///                              memory: what does not move with them is computed once
///   SWAP(axis, other)          the two loops change places, and with them numbers
///   TC(0, i)                   tensor core i of the target multiplies matrices; i = -1: the first that fits. What it reads from memory of
///                              the group gets a tile of one step, if no STAGE makes it another
///   STAGE(axis, slot, scope, depth)  what the kernel loads of argument `slot` inside the loop is copied to nearer memory first: scope reg
///                              or thread for each thread or work-item, group for a group together; with depth > 1 (in a reduce loop)
///                              depth - 1 iterations ahead. Where it stands in the list does not matter
///   STAGE(axis, slot, thread, 1, computed)  the same of what is computed of each of these elements and others along the same loops
///   NOLOCALS(0, 0)             work-items are refused from here on
///
/// Where n does not divide an axis its end is masked: loads and stores there are not made, and a reduction gets the identity.
/// ValueError for an opt that the kernel or the target does not take.
UOp apply_opts(const UOp& sink, std::span<const Opt> opts, const Target& target);

}  // namespace tinygrad::codegen
