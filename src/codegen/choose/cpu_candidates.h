#pragma once
/// What there is to choose from for a loop nest on a CPU. A plan is one of each: operands, cache blocks, vectors and a register tile; what
/// may be combined depends on what comes before.

#include <optional>
#include <vector>

#include "codegen/choose/planned_loops.h"

namespace tinygrad::codegen {

/// Which arguments are resident, whether they are packed into panels, and of which arguments windows, or values computed of windows, are
/// copied. The first one is none at all.
std::vector<Operands> operand_candidates(const CpuNest& nest);

/// Ever more iterations of the reduction outside of the output loops: none, half of the first loop, a quarter of it left inside, ..., all
/// of it, half of the second too, ...
std::vector<CacheBlocks> block_candidates(const CpuNest& nest);

/// Vector axes: one, or up to three of which no value depends on two, as in a normalization, whose reductions and results run over rows
/// apart. Last come the tensor cores. Scalars are not among them.
std::vector<Lanes> lane_candidates(const CpuNest& nest);

/// Register tiles that fit the registers: copies along an axis share the loads that do not depend on it and give the processor independent
/// work. With `may_overlap`, elements may be computed twice, so that copies need not divide an axis.
std::vector<Tile> tile_candidates(const PlannedLoops& loops, bool may_overlap);

/// Reductions that are carried along together, such as attention's, whose results do not fit the registers: the loop of the reduction goes
/// around the output axis that only some of the results follow, and partial results are in memory. Such a loop takes several steps at a
/// time, so that partial results are read and written once for all of these; arguments that only the rows move are panels. `inside` is the
/// plan whose loop stays inside. No value where its results fit, or the nest cannot be computed so.
std::optional<CpuPlan> joined_loop_around(const CpuNest& nest, const CpuPlan& inside);

/// The output axes on which only some of the values depend that a joined reduction carries, outermost first.
std::vector<int> followed_axes(const CpuNest& nest);

/// A transpose loads along one axis and stores along another. It is computed in blocks: pieces of several loaded rows are put together to
/// the vectors that are stored. The next block goes on along the same rows, so that these are read as streams. No value for a nest that
/// does not transpose, or does not divide into blocks where `may_overlap` is false.
std::optional<CpuPlan> transposing_plan(const CpuNest& nest, bool may_overlap);

}  // namespace tinygrad::codegen
