#pragma once
/// The loops of a kernel as opts number them.

#include <optional>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// True for the loop of a REDUCE.
bool is_reduced(const UOp& range);

/// The RANGE nodes of loops over outputs, then those of REDUCEs, each in the order (order key, id). Opts name an axis by its place in this
/// list. A split leaves its outer part at the axis' place and the inner part is in the list no more, so numbers mean the same before
/// and after other opts.
std::vector<UOp> kernel_axes(const UOp& sink);
/// The same, as they are nested: in the order (order key, REDUCEs last, id).
std::vector<UOp> nested_axes(const UOp& sink);

/// Whether a value depends on both ranges, or is reduced along one and depends on the other.
bool meet(const UOp& sink, const UOp& a, const UOp& b);

/// The ranges of work-items (kinds local and group), outermost first.
std::vector<UOp> item_ranges(const UOp& sink);

/// True if the kernel loads from an argument that it also stores to.
bool updates_in_place(const UOp& sink);

/// One more than the largest RangeArg.id of the kernel, 0 if it has no ranges.
int32_t next_range_id(const UOp& sink);

/// The same for BufferArg.id of the kernel's own memory.
uint64_t next_memory_id(const UOp& sink);

/// The number of iterations, or 0 where it is not known before launch.
int64_t constant_size(const UOp& range);
/// The most that it may be.
int64_t most_iterations(const UOp& range);

/// The loop whose iteration alone decides the condition; null if there is none, or if it is a matter of what is in memory.
UOp deciding_loop(const UOp& condition);

/// The number that `range` adds to an index expression at each step; no value where the expression is not a multiple of it plus something
/// that does not depend on it.
std::optional<int64_t> stride_of(const UOp& expr, const UOp& range);

}  // namespace tinygrad::codegen
