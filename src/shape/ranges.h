#pragma once
/// The loops a value is open over.

#include <span>

#include "uop/uop.h"

namespace tinygrad {

/// The RANGE nodes that a node's value depends on and that no END, REDUCE or STAGE below it has closed, sorted by (order key, id).
/// A RANGE is open over itself. Cached in the node.
UOps ranges_of(const UOp& u);

/// True if the value does not depend on any open range.
bool is_closed(const UOp& u);

/// True if one of `ranges` is among ranges_of(u).
bool is_open_over(const UOp& u, std::span<const UOp> ranges);

/// The ranges that a node closes itself: the trailing sources of END, REDUCE and STAGE; none for other ops.
std::span<const UOp> closed_ranges(const UOp& u);

/// True for ReduceArg.op = FUNCTION: REDUCE(TUPLE(x...), TUPLE(identity...), step, merge, r...).
bool is_general_reduce(const UOp& u);

}  // namespace tinygrad
