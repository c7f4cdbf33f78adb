#pragma once
/// How a kernel's loops are shared out among threads.

#include <span>

#include "codegen/choose/planned_loops.h"

namespace tinygrad::codegen {

/// The output axis whose loop is shared out among threads in so many chunks: the outermost one that is long enough. Axis -1: none.
struct Chunks {
  int axis = -1;
  int64_t count = 1;
};

/// `left` are the iterations of each axis that opts leave as a loop, `wanted` the chunks that are each worth a thread's start, `work` the
/// cycles of all. Where an axis does not move the resident tiles, each chunk fills them for itself. Then n chunks cost
///
///   (n - 1) * fill + work / n
///
/// as n threads at most work at once, which is least for the square root of work / fill. `threads` is as in chunks_of_long_runs.
Chunks chunks_of(const PlannedLoops& loops, const Tile& t, std::span<const int64_t> left, int64_t wanted, double work, int threads = 0);

/// How often chunks fill tiles that all of them use: each of them, or where tiles are whole all those that a thread takes at once.
int64_t fills_of(const PlannedLoops& loops, const Chunks& chunks);

/// As many as have enough cycles each of this work.
int64_t wanted_chunks(const CpuNest& in, double work);

/// True if there are so few chunks that an even number of threads would not end together.
constexpr bool leaves_threads_idle(int64_t chunks) { return chunks > 1 && chunks < 8 && chunks % 2 != 0; }

}  // namespace tinygrad::codegen
