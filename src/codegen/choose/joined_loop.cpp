// Plans for reductions that are carried along together where their results do not fit the registers.
#include <algorithm>

#include "codegen/choose/access_cost.h"
#include "codegen/choose/cpu_candidates.h"

namespace tinygrad::codegen {

namespace {

bool fit_registers(const CpuNest& in, const PlannedLoops& loops, const std::vector<int>& followed) {
  int64_t results = 1;
  for (int i : followed) results *= in.axis(i).size;
  return results * loops.registers_each() + in.registers() / 4 <= in.registers();
}

/// Vectors along an axis of rows, so that each lane carries a maximum of its own; empty if that is the axis that the results follow.
Lanes lanes_along_rows(const CpuNest& in, const PlannedLoops& loops) {
  Lanes best;
  for (const Lanes& lanes : lane_candidates(in))
    if (const int i = lanes[0].axis; lanes.size() == 1 && !has_axis(in.nest.followed, i) && !in.axis(i).is_reduce)
      if (lanes[0].lanes * in.nest.item_bytes * 8 == in.target.vector_bits &&
          (best.empty() || work_of(loops, lanes) < work_of(loops, best)))
        best = lanes;
  return best;
}

/// The arguments that are loaded in the joined loop and are the same in all its steps; no value if one of them cannot be staged.
std::optional<uint64_t> same_in_all_steps(const CpuNest& in) {
  const Nest& nest = in.nest;
  uint64_t arguments = 0;
  for (const NestedWork& w : nest.works) {
    if (!in.is_reduced_load(w) || !has_axis(w.inside, nest.joined_axis) || has_axis(w.depends, nest.joined_axis)) continue;
    if (!in.may_stage(w)) return {};
    arguments |= w.argument;
  }
  const bool stored =
      std::ranges::any_of(nest.works, [&](const NestedWork& w) { return w.node.is(Op::STORE) && (w.argument & arguments); });
  return arguments && !stored ? std::optional(arguments) : std::nullopt;
}

}  // namespace

std::vector<int> followed_axes(const CpuNest& in) {
  std::vector<int> out;
  for (size_t i = 0; i < in.axes(); ++i)
    if (has_axis(in.nest.followed, int(i)) && !in.axis(int(i)).is_reduce) out.push_back(int(i));
  return out;
}

std::optional<CpuPlan> joined_loop_around(const CpuNest& in, const CpuPlan& inside) {
  const PlannedLoops loops(in, inside);
  const std::vector<int> followed = followed_axes(in);
  if (std::ranges::any_of(followed, [&](int i) { return !in.axis(i).is_known; })) return {};
  if (followed.empty() || fit_registers(in, loops, followed)) return {};
  const Lanes lanes = lanes_along_rows(in, loops);
  const std::optional<uint64_t> staged = same_in_all_steps(in);
  if (lanes.empty() || !staged) return {};
  const int row = lanes[0].axis, last = followed.back();
  const int64_t rounds = (in.axis(row).size + lanes[0].lanes - 1) / lanes[0].lanes;
  const Tile tile{{row, last}, {rounds > 1 ? 2 : 1, in.axis(last).size % 2 == 0 ? 2 : 1}};
  for (const int64_t steps : {8, 4, 2}) {
    const int64_t size = in.axis(in.nest.joined_axis).size, computed = (size + steps - 1) / steps * steps;
    if (computed > size + size / 8 || tile.count[0] * (steps + tile.count[1]) + 2 > in.registers()) continue;
    return CpuPlan{.lanes = lanes, .tile = tile, .operands = {.resident = *staged}, .joined_steps = steps};
  }
  return {};
}

}  // namespace tinygrad::codegen
