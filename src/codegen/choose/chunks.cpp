#include "codegen/choose/chunks.h"

#include <algorithm>
#include <cmath>

#include "codegen/choose/access_cost.h"
#include "codegen/choose/memory_cost.h"

namespace tinygrad::codegen {

namespace {

constexpr double forks_a_chunk = 4;  // a thread's chunk takes at least so many times what handing it over does
constexpr int64_t most_chunks = 256;
constexpr int64_t most_refills = 16;  // chunks that may each fill the same tile for themselves

/// Among the axes that move resident tiles (`with_tiles`), or among the others.
Chunks chunks_along(const PlannedLoops& loops, const Tile& t, std::span<const int64_t> left, int64_t wanted, double work, int threads,
                    bool with_tiles) {
  constexpr int64_t enough_steps = 16;
  const CpuNest& in = loops.in;
  uint64_t moves = loops.plan.operands.resident ? loops.resident_axes : loops.plan.blocks.axes ? far_axes(loops) : ~uint64_t{0};
  // A transpose reads its rows to their ends.
  if (loops.plan.transposes && left[size_t(loops.plan.lanes[0].axis)] >= enough_steps) moves &= ~(uint64_t{1} << loops.plan.tile.axis[0]);
  // Each chunk of results that follow a joined loop would take all of its steps.
  const uint64_t repeats = in.is_joined() ? in.nest.followed : 0;
  const auto may_be_cut = [&](int i) {
    const NestAxis& axis = in.axis(i);
    return !axis.is_reduce && left[size_t(i)] >= 2 && (axis.is_known || with_tiles) && has_axis(moves, i) == with_tiles &&
           !has_axis(repeats, i) && !in.reuses_terms(i);
  };
  int axis = -1;
  for (size_t i = 0; i < in.axes(); ++i) {
    if (!may_be_cut(int(i))) continue;
    if (axis < 0 || (with_tiles && left[size_t(axis)] < enough_steps && left[i] > left[size_t(axis)])) axis = int(i);
  }
  if (axis < 0) return {};
  const int64_t size = left[size_t(axis)];
  if (!in.axis(axis).is_known) return {axis, size};
  if (loops.plan.operands.whole) return axis == 0 ? Chunks{axis, size} : Chunks{};
  const double fill = with_tiles ? 0 : refill_cycles(loops, t, axis);
  const int64_t worth = fill > 0 ? std::max<int64_t>(2, int64_t(std::sqrt(work / fill))) : most_chunks;
  wanted = std::min(wanted, chunks_of_long_runs(loops, axis, threads));
  const int64_t most = std::min({wanted, size, with_tiles ? most_chunks : most_refills, worth});
  // A divisor, so that no end is masked; without a good one, every step of the loop is a chunk, or if its vectors are masked anyway, and
  // nothing else is in it, the last chunk is shorter: masks are taken out of what is in front of its end.
  int64_t count = most;
  while (size % count != 0) --count;
  if (!with_tiles && count < most)
    for (int64_t more = most + 1; more * count < most * most; ++more)
      if (size % more == 0) return {axis, more};
  if (count * 4 >= std::min(with_tiles ? wanted : most, size)) return {axis, count};
  const bool is_masked = in.axis(axis).size % loops.step_of(axis, t) != 0;
  const bool is_alone = std::ranges::count_if(left, [](int64_t n) { return n > 1; }) == 1;
  const int64_t steps = is_masked && is_alone ? (size + most - 1) / most : 1;
  return {axis, (size + steps - 1) / steps};
}

}  // namespace

Chunks chunks_of(const PlannedLoops& loops, const Tile& t, std::span<const int64_t> left, int64_t wanted, double work, int threads) {
  if (wanted < 2 || !loops.in.target.has_threads) return {};
  const Chunks with_tiles = chunks_along(loops, t, left, wanted, work, threads, true);
  if (with_tiles.axis >= 0 && !leaves_threads_idle(with_tiles.count)) return with_tiles;
  const Chunks others = chunks_along(loops, t, left, wanted, work, threads, false);
  if (with_tiles.axis < 0) return others;
  return others.count <= most_refills && others.count % 2 == 0 ? others : with_tiles;
}

int64_t fills_of(const PlannedLoops& loops, const Chunks& chunks) {
  return loops.plan.operands.whole ? std::min(chunks.count, most_refills) : chunks.count;
}

int64_t wanted_chunks(const CpuNest& in, double work) {
  return int64_t(std::min(work / (forks_a_chunk * in.target.core.fork_cycles), double(most_chunks)));
}

}  // namespace tinygrad::codegen
