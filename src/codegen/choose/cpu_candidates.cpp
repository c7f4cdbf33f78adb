#include "codegen/choose/cpu_candidates.h"

#include <algorithm>
#include <bit>
#include <map>

#include "codegen/kernel_axes.h"
#include "shape/ranges.h"

namespace tinygrad::codegen {

namespace {

/// The arguments that may not be staged.
uint64_t fixed_arguments(const CpuNest& nest) {
  uint64_t fixed = 0;
  for (const NestedWork& w : nest.nest.works)
    if (w.is_access && (w.node.is(Op::STORE) || !nest.may_stage(w))) fixed |= w.argument;
  return fixed;
}

uint64_t arguments_with_windows(const CpuNest& nest) {
  if (nest.nest.total_cost < worth_tiling) return 0;
  uint64_t out = 0;
  for (const NestedWork& w : nest.nest.works)
    if (nest.is_reduced_load(w) && nest.has_window(w)) out |= w.argument;
  return out & ~fixed_arguments(nest);
}

/// Arguments of which tiles of computed values may be made. Where several arguments share such values, one stands for all.
uint64_t computed_arguments(const CpuNest& nest) {
  if (nest.nest.total_cost < worth_tiling) return 0;
  uint64_t fixed = 0, out = 0, seen = 0;
  for (const NestedWork& w : nest.nest.works)
    if (w.is_access && w.node.is(Op::STORE)) fixed |= w.argument;
  for (const NestedWork& w : nest.nest.works)
    if (w.argument & fixed) fixed |= w.computed;
  for (const NestedWork& w : nest.nest.works) {
    if (!nest.is_reduced_load(w) || !nest.may_stage(w) || nest.reuse_axes(w) == 0) continue;
    if (!(w.argument & nest.nest.computed & ~fixed & ~seen)) continue;
    out |= w.argument;
    seen |= w.computed;
  }
  return out;
}

/// Sets of arguments that REDUCEs load again along an output axis: each argument alone, and together the ones that move with the same
/// output axes.
std::vector<uint64_t> reused_arguments(const CpuNest& nest) {
  if (nest.nest.total_cost < worth_tiling) return {};
  const uint64_t fixed = fixed_arguments(nest);
  std::vector<uint64_t> alone;
  std::map<uint64_t, uint64_t> together;
  for (const NestedWork& w : nest.nest.works) {
    if (!nest.is_reduced_load(w) || nest.reuse_axes(w) == 0 || (w.argument & fixed)) continue;
    if (std::ranges::find(alone, w.argument) == alone.end()) alone.push_back(w.argument);
    together[w.depends & ~nest.reduce_axes] |= w.argument;
  }
  for (const auto& [axes, arguments] : together)
    if (!std::has_single_bit(arguments)) alone.push_back(arguments);
  return alone;
}

/// Whether the second cache holds all of these arguments, and the outermost loop, which threads share, needs all of them.
bool may_be_whole(const CpuNest& nest, uint64_t arguments) {
  if (nest.axes() == 0 || nest.axis(0).is_reduce || !nest.axis(0).is_known) return false;
  int64_t bytes = 0;
  for (const NestedWork& w : nest.nest.works) {
    if (!(w.argument & arguments)) continue;
    if (has_axis(w.depends, 0)) return false;
    double of_one = double(itemsize(w.node.dtype()));
    for (size_t i = 0; i < nest.axes(); ++i)
      if (has_axis(w.depends, int(i))) of_one *= double(nest.axis(int(i)).size);
    bytes += int64_t(std::min(of_one, double(nest.target.l2_bytes)));
  }
  return bytes < nest.target.l2_bytes;
}

/// Counts of copies along an axis.
std::vector<int64_t> tile_counts(const PlannedLoops& loops, int axis, bool may_overlap) {
  const CpuNest& in = loops.in;
  std::vector<int64_t> out{1};
  if (in.axis(axis).is_reduce || has_axis(in.taken, axis)) return out;
  const int64_t most = in.nest.reduces ? 8 : 4, whole = loops.left[size_t(axis)];
  if (in.reuses_terms(axis)) return out;
  bool reuses_terms = false;
  for (size_t i = 0; i < in.axes(); ++i) reuses_terms = reuses_terms || in.reuses_terms(int(i));
  // Blocks that overlap compute rows twice, which may not use terms in registers.
  // The end of an axis whose size is known at launch is masked at the stores.
  const bool any = ((may_overlap || !in.axis(axis).is_known) && !reuses_terms) || loops.may_mask(axis);
  for (int64_t n = 2; n <= std::min(most, whole); ++n)
    if (any || whole % n == 0) out.push_back(n);
  if (whole > most && in.axis(axis).is_known && (has_axis(in.nest.chosen, axis) || (in.is_joined() && whole <= most_kept_results)))
    out.push_back(whole);
  return out;
}

/// The axis along which accesses of this op are contiguous while they stride along `other`; -1: none.
int contiguous_axis(const Nest& nest, Op op, int other) {
  for (const NestedWork& w : nest.works)
    for (size_t i = 0; w.is_access && w.node.is(op) && i < nest.axes.size(); ++i) {
      const auto stride = [&](int axis) { return stride_of(w.node.src(0).src(1), nest.axes[size_t(axis)].range); };
      if (int(i) != other && stride(int(i)) == 1 && (other < 0 || std::abs(stride(other).value_or(0)) > 1)) return int(i);
    }
  return -1;
}

/// Bytes of the values for which vectors are made: the widest ones, unless most of the work is on half as many.
int64_t vector_item_bytes(const CpuNest& in) {
  if (in.nest.item_bytes <= 4 || in.nest.reduces > 0) return in.nest.item_bytes;
  double wide = 0, narrow = 0;
  for (const NestedWork& w : in.nest.works) (is_wide(w) ? wide : narrow) += w.cost * w.trips;
  return narrow > wide ? 4 : in.nest.item_bytes;
}

}  // namespace

std::vector<Operands> operand_candidates(const CpuNest& nest) {
  std::vector<Operands> out{{}};
  if (nest.is_joined()) return out;
  const uint64_t windows = arguments_with_windows(nest), computed = computed_arguments(nest);
  if (windows) out.push_back({.windows = windows});
  if (computed) out.push_back({.windows = computed, .computed = computed});
  for (const uint64_t arguments : reused_arguments(nest)) {
    for (const bool packed : {true, false}) out.push_back({arguments, packed});
    if (may_be_whole(nest, arguments)) out.push_back({.resident = arguments, .whole = true});
    if (windows & ~arguments)
      for (const bool packed : {true, false}) out.push_back({arguments, packed, windows & ~arguments});
    // A tile is filled with what is computed of other arguments, not of other tiles.
    uint64_t apart = computed & ~arguments;
    for (const NestedWork& w : nest.nest.works)
      if (w.argument & arguments) apart &= ~w.computed;
    if (apart)
      for (const bool packed : {true, false}) out.push_back({arguments, packed, apart, apart});
  }
  return out;
}

std::vector<CacheBlocks> block_candidates(const CpuNest& nest) {
  std::vector<CacheBlocks> out{{}};
  // A loop is bounded by those around it.
  if (nest.nest.reduces != 1 || nest.around.bounds_loops) return out;
  // Results that are carried around output loops have a place each.
  if (!std::ranges::all_of(nest.nest.axes, &NestAxis::is_known)) return out;
  int64_t terms = 1;  // of a tensor core's sums: a block has a multiple of them
  for (const CoreUse& use : nest.around.cores) terms = std::max(terms, use.k.lanes);
  uint64_t axes = 0;
  for (size_t i = 0; i < nest.axes(); ++i) {
    if (!nest.axis(int(i)).is_reduce) continue;
    axes |= uint64_t{1} << i;
    const int64_t size = nest.axis(int(i)).size;
    int64_t last = size;
    for (int64_t most = size / 2; most > 1; most /= 2) {
      int64_t block = most;
      while (block > 1 && (size % block != 0 || block % terms != 0)) --block;
      if (block > 1 && block < last) out.push_back({axes, last = block});
    }
    out.push_back({axes, 0});
  }
  out.pop_back();  // a part of the last loop stays inside
  return out;
}

std::vector<Lanes> lane_candidates(const CpuNest& nest) {
  std::vector<Lane> axes;
  for (size_t a = 0; a < nest.axes(); ++a) {
    if (has_axis(nest.taken, int(a)) || nest.meets_vectors(int(a))) continue;
    const int64_t size = nest.axis(int(a)).size, most = nest.axis(int(a)).is_reduce ? size : 2 * size - 1;  // some lanes may be masked
    for (int64_t n = std::max<int64_t>(1, nest.target.vector_bits / (8 * vector_item_bytes(nest))); n >= 4; n /= 2)
      if (n <= most) axes.push_back({int(a), n});
  }
  std::vector<Lanes> out;
  for (size_t i = 0; i < axes.size(); ++i) {
    out.push_back({{axes[i]}});
    for (size_t k = i + 1; k < axes.size(); ++k) {
      if (nest.meet(axes[i].axis, axes[k].axis)) continue;
      out.push_back({{axes[i], axes[k]}});
      for (size_t m = k + 1; m < axes.size(); ++m)
        if (axes[m].lanes == axes[i].lanes && axes[k].lanes == axes[i].lanes && !nest.meet(axes[i].axis, axes[m].axis) &&
            !nest.meet(axes[k].axis, axes[m].axis))
          out.push_back({{axes[i], axes[k], axes[m]}});
    }
  }
  for (const CoreUse& use : nest.around.cores) {
    out.push_back({{use.n, use.k}, &use});
    if (use.m.lanes > 1) out.back().axes.push_back(use.m);
  }
  return out;
}

std::vector<Tile> tile_candidates(const PlannedLoops& loops, bool may_overlap) {
  std::vector<Tile> out;
  const int axes = int(loops.in.axes());
  std::vector<std::vector<int64_t>> counts;
  for (int a = 0; a < axes; ++a) counts.push_back(tile_counts(loops, a, may_overlap));
  static const auto& one = *new std::vector<int64_t>{1};
  for (int a = 0; a < axes; ++a)
    for (int b = a; b < axes; ++b)
      for (int64_t n : counts[size_t(a)])
        for (int64_t m : b == a ? one : counts[size_t(b)]) {
          const Tile t{{a, b == a ? -1 : b}, {n, m}};
          if (!fits_registers(loops, t)) break;  // and neither do more copies
          out.push_back(t);
        }
  return out;
}

std::optional<CpuPlan> transposing_plan(const CpuNest& in, bool may_overlap) {
  const Nest& nest = in.nest;
  if (nest.total_cost < worth_tiling || in.target.vector_bits == 0) return {};
  const int to = contiguous_axis(nest, Op::STORE, -1), from = contiguous_axis(nest, Op::LOAD, to);
  if (to < 0 || from < 0 || !in.axis(to).is_known || !in.axis(from).is_known || has_axis(in.taken, to) || has_axis(in.taken, from) ||
      in.meets_vectors(to))
    return {};
  constexpr int64_t most_rows = 16, piece_bytes = 16, most_instructions = 1024;
  const int64_t copies = piece_bytes / nest.item_bytes, most_lanes = std::min(most_rows, in.target.vector_bits / (8 * nest.item_bytes));
  const int64_t rows = in.axis(to).size, columns = in.axis(from).size;
  const int64_t lanes = rows < most_lanes ? most_lanes / 2 : most_lanes;
  if (lanes < 2 || copies < 2 || rows < lanes || columns < copies) return {};
  if (!may_overlap && (rows % lanes != 0 || columns % copies != 0)) return {};
  if (copies * int64_t(nest.works.size()) > most_instructions) return {};
  return CpuPlan{.lanes = {{{to, lanes}}}, .tile = {{from, -1}, {copies, 1}}, .transposes = true};
}

}  // namespace tinygrad::codegen
