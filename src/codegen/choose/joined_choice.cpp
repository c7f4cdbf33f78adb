#include <algorithm>

#include "codegen/choose/cpu_choice.h"

namespace tinygrad::codegen {

// Joined reductions, such as attention. One of the carried values depends on an output axis; the others, and most of the step, do not. The
// whole axis is in the register tile, so that these are computed once for it. Accumulators that do not fit the registers are spilled to the
// first cache. Vectors and tile are chosen together, as each decides what the other costs.

void CpuChoice::choose_together() {
  const std::vector<int64_t> sizes = left_;
  double best = choose_tile();
  Tile best_tile = tile_;
  Lanes best_lanes;
  for (const Lanes& lanes : lane_choices()) {
    lanes_ = lanes;
    tile_ = {};
    left_ = sizes;
    for (const Lane& l : lanes) left_[size_t(l.axis)] = (sizes[size_t(l.axis)] + l.lanes - 1) / l.lanes;
    if (const double c = choose_tile(); c < best) best = c, best_tile = tile_, best_lanes = lanes;
  }
  left_ = sizes;
  lanes_ = best_lanes;
  tile_ = best_tile;
}

// Where the results of the whole axis do not fit the registers, the joined loop goes around the axis, and partial results are in memory.
// The loop takes several steps at a time, so that partial results are read and written once for all of these. Arguments that only the rows
// move are staged.

void CpuChoice::choose_outer() {
  const std::vector<int> followed = followed_axes();
  if (followed.empty() || fits_registers(followed)) return;
  const Lanes lanes = rows();
  const std::optional<uint64_t> staged = kept_arguments();
  if (lanes.empty() || !staged) return;
  const int row = lanes[0].axis, last = followed.back();
  const int64_t rounds = (left_[size_t(row)] + lanes[0].lanes - 1) / lanes[0].lanes;
  const Tile tile{{row, last}, {rounds > 1 ? 2 : 1, left_[size_t(last)] % 2 == 0 ? 2 : 1}};
  for (const int64_t steps : {8, 4, 2}) {
    const int64_t size = left_[size_t(nest_.joined_axis)], computed = (size + steps - 1) / steps * steps;
    if (computed > size + size / 8 || tile.count[0] * (steps + tile.count[1]) + 2 > registers()) continue;
    lanes_ = lanes;
    tile_ = tile;
    near_ = *staged;
    outer_steps_ = steps;
    return;
  }
}

std::vector<int> CpuChoice::followed_axes() const {
  std::vector<int> out;
  for (size_t i = 0; i < nest_.axes.size(); ++i)
    if (has(nest_.followed, int(i)) && !nest_.axes[i].is_reduce) out.push_back(int(i));
  return out;
}
bool CpuChoice::fits_registers(const std::vector<int>& followed) const {
  int64_t results = 1;
  for (int i : followed) results *= nest_.axes[size_t(i)].size;
  return results * registers_each() + registers() / 4 <= registers();
}

Lanes CpuChoice::rows() const {
  Lanes best;
  for (const Lanes& lanes : lane_choices())
    if (const int i = lanes[0].axis; lanes.size() == 1 && !has(nest_.followed, i) && !nest_.axes[size_t(i)].is_reduce)
      if (lanes[0].lanes * nest_.item_bytes * 8 == target_.vector_bits && (best.empty() || work_with(lanes) < work_with(best)))
        best = lanes;
  return best;
}

std::optional<uint64_t> CpuChoice::kept_arguments() const {
  uint64_t arguments = 0;
  for (const NestedWork& w : nest_.works) {
    if (!is_reduced(w) || !has(w.inside, nest_.joined_axis) || has(w.depends, nest_.joined_axis)) continue;
    if (!may_stage(w)) return {};
    arguments |= w.argument;
  }
  const bool stored =
      std::ranges::any_of(nest_.works, [&](const NestedWork& w) { return w.node.is(Op::STORE) && (w.argument & arguments); });
  return arguments && !stored ? std::optional(arguments) : std::nullopt;
}

}  // namespace tinygrad::codegen
