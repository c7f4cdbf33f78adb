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
///   THREAD(loop axis, n)       n chunks of the axis may run on different threads; once a kernel of one nest; 0: each iteration
///   LOCAL(loop axis, n)        n neighbouring elements are work-items of a group
///   GROUP(reduce axis, n)      n work-items of a group share a reduction, each taking every n-th step. Where some share another
///                              reduction before or behind this one already, it is the same items
///   GROUPTOP(reduce axis, n)   the same, each taking a run of steps
///   PADTO(axis, n)             the axis becomes a multiple of n long, and its end is masked; a size known at launch becomes a constant
///   BLOCK(axis, n)             the axis becomes two, blocks and the n iterations of one, which is the next axis. Where n does not divide a
///                              loop axis, the last block begins early enough to end with the axis, and some elements are computed twice
///   OUTER(reduce axis, loop)   the loop of the reduction goes around the loop axis and all inside of it. Partial results are in memory,
///   and
///                              values that the inner loops do not move are computed once
///   SWAP(axis, other)          the two loops change places, and their numbers
///   TC(0, i)                   tensor core i of the target multiplies matrices; i = -1: the first that fits. A core that reads group
///   memory
///                              gets tiles of one step, unless a STAGE makes them
///   STAGE(axis, slot, scope, depth)  a tile of argument `slot`, which holds what the kernel loads of it inside the loop, is filled first.
///   Scope
///                              reg or thread gives each thread or work-item its own tile, scope group a group one together. With
///                              depth > 1 (in a reduce loop) tiles are filled depth - 1 iterations ahead. The place in the list of opts
///                              does not matter
///   STAGE(axis, slot, thread, 1, computed)  the tile holds values that are computed of these elements along the same loops
///   NOLOCALS(0, 0)             work-items are refused from here on
///
/// Where n does not divide an axis its end is masked: loads and stores there are not made, and a reduction gets the identity.
/// ValueError for an opt that the kernel or the target does not take.
UOp apply_opts(const UOp& sink, std::span<const Opt> opts, const Target& target);

}  // namespace tinygrad::codegen
