#include "codegen/choose/heuristic_opts.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "codegen/choose/cpu_choice.h"
#include "codegen/choose/group_heuristic.h"
#include "codegen/choose/nest.h"
#include "codegen/kernel_axes.h"
#include "codegen/lower/bound_loops.h"
#include "codegen/opt/tensor_core.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr double tiny_kernel = 64;  // cycles below which a kernel is not worth vectors

/// The choice as opts.
class CpuHeuristic : private CpuChoice {
 public:
  CpuHeuristic(const Nest& nest, const Target& target, std::span<const Opt> chosen, std::vector<CoreUse> cores, bool bounded)
      : CpuChoice(nest, target, chosen, std::move(cores), bounded) {
    for (const NestAxis& a : nest.axes) numbers_.push_back(int32_t(a.number));
  }

  std::vector<Opt> run(bool one_nest, bool in_place) {
    if (nest_.total_cost < tiny_kernel) return {};
    choose(one_nest, in_place);
    return opts_of_choice(one_nest);
  }

  /// The opts of a kernel that has this nest alone.
  std::optional<double> cost(bool in_place) {
    if (nest_.total_cost < tiny_kernel || nest_.reduces == 0 || is_joined()) return {};
    choose(true, in_place);
    return cost_;
  }

  /// The cheapest choices for a kernel of this nest alone, each as opts.
  std::vector<std::vector<Opt>> ranked(bool in_place, size_t count) {
    std::vector<std::vector<Opt>> out;
    if (nest_.total_cost < tiny_kernel) return out;
    const std::vector<int64_t> sizes = left_;
    const std::vector<int32_t> numbers = numbers_;
    for (const Choice& c : cheapest_choices(in_place, count)) {
      left_ = sizes;
      numbers_ = numbers;
      take(c);
      out.push_back(opts_of_choice(true));
    }
    return out;
  }

 private:
  std::vector<Opt> opts_of_choice(bool one_nest) {
    std::vector<Opt> opts;
    const std::map<int, int> window_axes = axes_of_windows();
    if (block_) block_reduction(opts);
    if (lanes_.core) use_core(opts);
    for (const Lane& l : lanes_)
      if (!lanes_.core) add_lanes(opts, l);
    for (int t = 0; t < 2; ++t)
      if (tile_.count[t] > 1) add_copies(opts, tile_.axis[t], tile_.count[t]);
    copy_kept_terms(opts);
    if (outer_steps_ > 1)
      add(opts, OptOp::UNROLL, nest_.joined_axis, outer_steps_);
    else
      unroll(opts);
    order_loops(opts);
    if (outer_) add_outer(opts);
    if (outer_steps_ > 1) opts.push_back({OptOp::OUTER, numbers_[size_t(nest_.joined_axis)], numbers_[size_t(followed_axes().front())]});
    if (one_nest) choose_threads(opts);
    for (uint64_t left = packed_ ? near_ : 0; left; left &= left - 1)
      opts.push_back({OptOp::STAGE, stage_axis(), StageOpt{.slot = std::countr_zero(left)}.arg()});
    for (const auto& [slot, axis] : window_axes)
      opts.push_back({OptOp::STAGE, has(outer_, axis) ? innermost_outer() : numbers_[size_t(axis)],
                      StageOpt{.slot = slot, .computed = (computed_ >> slot & 1) != 0}.arg()});
    return opts;
  }

  /// For each argument whose windows are copied, the axis in whose loop the copy is filled.
  std::map<int, int> axes_of_windows() const {
    std::map<int, int> out;
    for (const NestedWork& w : nest_.works)
      if (is_windowed(w)) out[std::countr_zero(w.argument)] = window_of(w).axis;
    return out;
  }

  void add(std::vector<Opt>& opts, OptOp op, int axis, int64_t n) {
    opts.push_back({op, numbers_[size_t(axis)], int32_t(n)});
    int64_t& left = left_[size_t(axis)];
    left = (left + n - 1) / n;
  }

  void use_core(std::vector<Opt>& opts) {
    opts.push_back({OptOp::TC, 0, lanes_.core->number});
    for (const Lane& l : lanes_) {
      int64_t& left = left_[size_t(l.axis)];
      left = nest_.axes[size_t(l.axis)].is_reduce ? std::max<int64_t>(1, left / l.lanes) : (left + l.lanes - 1) / l.lanes;
    }
  }

  /// A transpose puts vectors together lane by lane, for which masks are dear: its last vector overlaps the one before instead.
  void add_lanes(std::vector<Opt>& opts, const Lane& l) {
    if (!transposes_ || left_[size_t(l.axis)] % l.lanes == 0) return add(opts, OptOp::LANE, l.axis, l.lanes);
    add_in_blocks(opts, OptOp::LANE, l.axis, l.lanes);
  }

  /// Where `n` copies do not divide the axis and its end may not be masked, the axis is cut into blocks, the last of which overlaps.
  void add_copies(std::vector<Opt>& opts, int axis, int64_t n) {
    if (left_[size_t(axis)] % n == 0 || may_mask(axis)) return add(opts, OptOp::UPCAST, axis, n);
    add_in_blocks(opts, OptOp::UPCAST, axis, n);
  }
  void add_in_blocks(std::vector<Opt>& opts, OptOp op, int axis, int64_t n) {
    add(opts, OptOp::BLOCK, axis, n);
    const int32_t blocks = numbers_[size_t(axis)];
    opts.push_back({op, blocks + 1, int32_t(n)});
    make_room_behind(blocks);
  }

  /// Cuts the blocked axis of a reduction. Its number means the loop inside of a block from here on.
  void block_reduction(std::vector<Opt>& opts) {
    int32_t& number = numbers_[size_t(std::bit_width(outer_)) - 1];
    outer_number_ = number;
    opts.push_back({OptOp::BLOCK, number, int32_t(block_)});
    left_[size_t(std::bit_width(outer_)) - 1] = block_;
    make_room_behind(outer_number_);
    ++number;
  }
  void make_room_behind(int32_t place) {
    for (int32_t& number : numbers_) number += number > place;
    outer_number_ += outer_number_ > place;
  }

  /// Loops that move a panel go outside of the loops that use it again. In a transpose, loops over the rows that are read go inside.
  void order_loops(std::vector<Opt>& opts) {
    std::vector<int32_t*> numbers;
    if (near_)
      for (int i : loops_inside_out())
        if (!nest_.axes[size_t(i)].is_reduce) numbers.insert(numbers.begin(), &numbers_[size_t(i)]);
    if (transposes_) numbers = {&numbers_[size_t(lanes_[0].axis)], &numbers_[size_t(tile_.axis[0])]};
    std::vector<int32_t> wanted;
    for (const int32_t* n : numbers) wanted.push_back(*n);
    std::sort(wanted.begin(), wanted.end());
    for (size_t k = 0; k < numbers.size(); ++k) {
      if (*numbers[k] == wanted[k]) continue;
      opts.push_back({OptOp::SWAP, wanted[k], *numbers[k]});
      **std::find_if(numbers.begin(), numbers.end(), [&](const int32_t* n) { return *n == wanted[k]; }) = *numbers[k];
      *numbers[k] = wanted[k];
    }
  }

  /// Puts loops of the reduction around the output loops that use a panel again.
  void add_outer(std::vector<Opt>& opts) const {
    const uint64_t moves = near_axes();
    int32_t first = std::numeric_limits<int32_t>::max();
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (!nest_.axes[i].is_reduce && !has(moves, int(i))) first = std::min(first, numbers_[i]);
    opts.push_back({OptOp::OUTER, innermost_outer(), first});
  }
  int32_t innermost_outer() const { return block_ ? outer_number_ : numbers_[size_t(std::bit_width(outer_)) - 1]; }

  /// The loop in which panels are filled: the innermost one that moves them, or the outermost of all.
  int32_t stage_axis() const {
    if (outer_) return innermost_outer();
    const uint64_t moves = near_axes();
    int32_t axis = *std::min_element(numbers_.begin(), numbers_.end());
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (!nest_.axes[i].is_reduce && has(moves, int(i))) axis = std::max(axis, numbers_[i]);
    return axis;
  }

  // Short loops of reductions are written out. A long loop with few accumulators is written out in part, with an accumulator for each step.

  void unroll(std::vector<Opt>& opts) {
    if (near_ && tile_.copies() >= independent_operations) return;  // one loop over all of the tile
    uint64_t seen = 0, ended = 0;                                   // reduced axes, and those that are still a loop
    std::vector<int64_t> steps(nest_.axes.size(), 1);
    for (int i : reduce_axes_inside_out()) {
      if (is_taken(i) || keeps_terms(i)) continue;
      const uint64_t inner = together_with(i) & seen;
      seen |= uint64_t{1} << i;
      if (inner & ended) continue;
      int64_t copies = accumulators_over(i);
      for (size_t k = 0; k < steps.size(); ++k)
        if (has(inner, int(k))) copies *= steps[k];
      const int64_t size = left_[size_t(i)];
      if (size > 1 && ((size <= 8 && copies * size <= 128) || is_written_out(i))) {
        add(opts, OptOp::UNROLL, i, size);
        steps[size_t(i)] = size;
        continue;
      }
      ended |= uint64_t{1} << i;
      if (const int64_t n = inner ? 1 : most_steps(std::span(&i, 1), most_accumulators / copies); n > 1) add(opts, OptOp::UNROLL, i, n);
    }
  }

  /// The axes of loops that are around this one, or inside of it.
  uint64_t together_with(int axis) const {
    uint64_t bits = 0;
    for (const NestedWork& w : nest_.works)
      if (has(w.inside, axis)) bits |= w.inside;
    return bits;
  }

  /// Terms that stay in registers get the same steps in the loop that computes them and in the one that reads them.
  void copy_kept_terms(std::vector<Opt>& opts) {
    std::vector<int> axes;
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (keeps_terms(int(i))) axes.push_back(int(i));
    if (axes.empty()) return;
    if (const int64_t n = most_steps(axes, most_accumulators); n > 1)
      for (const int i : axes) add(opts, nest_.axes[size_t(i)].is_reduce ? OptOp::UNROLL : OptOp::UPCAST, i, n);
  }

  /// The reduced axes; those of REDUCEs inside of others come first.
  std::vector<int> reduce_axes_inside_out() const {
    std::vector<std::pair<int, int>> by_depth;
    for (size_t i = 0; i < nest_.axes.size(); ++i) {
      if (!nest_.axes[i].is_reduce) continue;
      int loops = 64;
      for (const NestedWork& w : nest_.works)
        if (has(w.inside, int(i))) loops = std::min(loops, std::popcount(w.inside));
      by_depth.emplace_back(loops, int(i));
    }
    std::sort(by_depth.rbegin(), by_depth.rend());
    std::vector<int> out;
    for (const auto& [depth, axis] : by_depth) out.push_back(axis);
    return out;
  }

  /// Accumulators of the REDUCEs over an axis.
  int64_t accumulators_over(int axis) const {
    int64_t sum = 0;
    for (const ReducePart& r : reduces_)
      if (has(r.depends, axis)) sum += accumulators(r, tile_);
    return std::max<int64_t>(sum, 1);
  }

  void choose_threads(std::vector<Opt>& opts) {
    if (const Chunks c = chunks(left_, wanted_chunks()); c.axis >= 0) add(opts, OptOp::THREAD, c.axis, c.count);
  }

  std::vector<int32_t> numbers_;  ///< the number of each axis behind the opts so far
  int32_t outer_number_ = -1;     ///< the number of the loop over blocks of a reduced axis
};

/// The CPU's tensor cores that can compute the kernel's sum of products.
std::vector<CoreUse> usable_cores(const UOp& sink, const Nest& nest, const Target& target) {
  std::vector<CoreUse> out;
  if (sink.src_count() != 1 || nest.reduces != 1) return out;
  const auto place = [&](const UOp& range) {
    for (size_t i = 0; i < nest.axes.size(); ++i)
      if (nest.axes[i].range == range) return int(i);
    return -1;
  };
  for (size_t i = 0; i < target.tensor_cores.size(); ++i) {
    const TensorCore& core = target.tensor_cores[i];
    const auto use = tensor_core_axes(sink, core);
    if (!use || place(use->n) < 0 || place(use->k) < 0) continue;
    out.push_back({int32_t(i), {place(use->n), core.n}, {place(use->k), core.k}, use->casts});
  }
  return out;
}

bool computes_floats(const UOp& sink) {
  const auto is_computed = [](const UOp& u) {
    return (u.in(Group::alu) || u.is(Op::REDUCE) || u.is(Op::CAST)) && (is_float(u.dtype()) || is_float(u.src(0).dtype()));
  };
  return std::ranges::any_of(toposort(sink), is_computed);
}

/// The target as a kernel can use it: without vectors where those hold no floats.
Target usable_target(const UOp& sink, const Target& target) {
  Target t = target;
  if (!t.vector_floats && computes_floats(sink)) t.vector_bits = 0;
  return t;
}

/// What `use` makes of the heuristics for a kernel of one nest on a CPU.
template <class Use>
auto with_heuristic(const UOp& sink, const Target& whole, Use&& use) -> decltype(use(std::declval<CpuHeuristic&>())) {
  if (whole.has_groups || sink.src_count() != 1) return {};
  const Target target = usable_target(sink, whole);
  const Nest nest = analyze_nest(sink, sink.src(0));
  CpuHeuristic heuristic(nest, target, {}, usable_cores(sink, nest, target), may_bound_loops(sink));
  return use(heuristic);
}

}  // namespace

std::vector<Opt> heuristic_opts(const UOp& sink, const Target& whole, bool pads) {
  const Target target = usable_target(sink, whole);
  std::vector<Opt> opts;
  const bool one_nest = sink.src_count() == 1, bounded = !target.has_groups && may_bound_loops(sink);
  for (const UOp& effect : sink.src()) {
    const Nest nest = analyze_nest(sink, effect);
    if (target.has_groups) {
      if (one_nest) opts = group_heuristic(sink, nest, target, pads);
      continue;
    }
    const auto more = CpuHeuristic(nest, target, opts, usable_cores(sink, nest, target), bounded).run(one_nest, updates_in_place(sink));
    opts.insert(opts.end(), more.begin(), more.end());
  }
  return opts;
}

std::optional<double> heuristic_cost(const UOp& sink, const Target& target) {
  return with_heuristic(sink, target, [&](CpuHeuristic& h) { return h.cost(updates_in_place(sink)); });
}

std::vector<std::vector<Opt>> ranked_opts(const UOp& sink, const Target& target, size_t count) {
  return with_heuristic(sink, target, [&](CpuHeuristic& h) { return h.ranked(updates_in_place(sink), count); });
}

}  // namespace tinygrad::codegen
