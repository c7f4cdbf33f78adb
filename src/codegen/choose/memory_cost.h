#pragma once
/// Cycles that caches and memory take beside the work of the innermost loops.

#include "codegen/choose/planned_loops.h"

namespace tinygrad::codegen {

/// Filling panels: each element is loaded from where it lies and stored once, and one that the second cache does not hold comes from
/// farther away. For each argument,
///
///   elements * (2 * share_as_it_lies + 8 / lanes) + bytes / (bytes a cycle)
double panel_cycles(const PlannedLoops& loops);
double panel_cycles(const PlannedLoops& loops, const NestedWork& w);

/// What filling panels from the third cache loses because a tile's runs have parts of lines: a line is loaded for each of them.
///
///   bytes / (bytes a cycle) * line / bytes of a run
double panel_line_cycles(const PlannedLoops& loops, const Tile& t);

/// Cycles that one more chunk costs where threads share out this axis: each chunk fills the tiles that do not move with it.
double refill_cycles(const PlannedLoops& loops, const Tile& t, int axis);

/// Loading what is not packed from beyond the second cache for the first time, where a tile has short runs of more rows than the processor
/// follows as streams, so that none of them is fetched ahead. For each load inside of a reduction,
///
///   bytes / (bytes a cycle) * (1 + half a line / bytes of a run)
double first_loads(const PlannedLoops& loops, const Tile& t);

/// The axes along which far memory is loaded.
uint64_t far_axes(const PlannedLoops& loops);
/// The most chunks of an output axis that leave a page of each row of far memory to a chunk, where a block of rows is read side by side;
/// but one for each of so many threads. Costs know of no threads: the plan, and with it the order of sums, is the same for any number.
int64_t chunks_of_long_runs(const PlannedLoops& loops, int axis, int threads = 0);
/// Reading such rows where there are more chunks than that.
double short_run_cycles(const PlannedLoops& loops, int axis, int64_t chunks);

/// Partial results in memory: loops of a reduction around output loops read and write them, by vectors, in each iteration.
double partial_result_cycles(const PlannedLoops& loops);

/// Reading resident tiles that do not fit the first cache, from the second one and, of a tile that nearly fills it, in part from the
/// third:
///
///   bytes loaded * evicted from l1 * ((1 - evicted) / l2 + evicted / l3)
double resident_cycles(const PlannedLoops& loops, const Tile& t);

/// Loading what is neither resident nor a window from the second cache, where the first has evicted it between two uses: as
/// `traffic_cycles` with the first cache, and with the lines that short runs lie in.
double streamed_cycles(const PlannedLoops& loops, const Tile& t);

/// Loading again what the second cache has evicted between two uses. For each load inside of a reduction, over the loops from the inside
/// out,
///
///   bytes * (times - 1) / (bytes a cycle)
///
/// where `bytes` grow by the loops that move the load, and `times` by those that use it again once `bytes` exceed the second cache.
double traffic_cycles(const PlannedLoops& loops, const Tile& t);

/// Waiting for memory that the tile accesses in pieces shorter than a line: results, and what is read beside them, such as an epilogue's
/// operands, if the second cache does not hold them.
///
///   bytes / (bytes a cycle) * line / piece
double partial_line_cycles(const PlannedLoops& loops, const Tile& t);

/// What stores of large results lose because copies of several rows write as many streams at once.
double store_stream_cycles(const PlannedLoops& loops, const Tile& t);

}  // namespace tinygrad::codegen
