#include "codegen/choose/plan_opts.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include "codegen/choose/access_cost.h"
#include "codegen/choose/chunks.h"
#include "codegen/choose/cpu_candidates.h"
#include "codegen/choose/cpu_cost.h"
#include "codegen/choose/window_cost.h"
#include "codegen/opt/apply_opts.h"

namespace tinygrad::codegen {

namespace {

/// Writes a plan's opts one after another. An axis has another number, and fewer iterations, behind each of them.
class OptList {
 public:
  OptList(const CpuNest& nest, const CpuPlan& plan) : in_(nest), plan_(plan), loops_(nest, plan) {
    for (const NestAxis& a : nest.nest.axes) {
      left_.push_back(a.size);
      numbers_.push_back(int32_t(a.number));
    }
  }

  std::vector<Opt> write() {
    if (plan_.blocks.block) block_reduction();
    if (plan_.lanes.core) use_core();
    for (const Lane& l : plan_.lanes)
      if (!plan_.lanes.core) add_lanes(l);
    for (int t = 0; t < 2; ++t)
      if (plan_.tile.count[t] > 1) add_copies(plan_.tile.axis[t], plan_.tile.count[t]);
    copy_reused_terms();
    if (plan_.joined_steps > 1)
      add(OptOp::UNROLL, in_.nest.joined_axis, plan_.joined_steps);
    else
      unroll();
    order_loops();
    if (plan_.blocks.axes) put_reduction_around();
    if (plan_.joined_steps > 1) push(OptOp::OUTER, number_of(in_.nest.joined_axis), number_of(followed_axes(in_).front()));
    if (in_.around.is_kernel) choose_threads();
    for (uint64_t left = plan_.operands.panels(); left; left &= left - 1)
      push(OptOp::STAGE, stage_axis(), StageOpt{.slot = std::countr_zero(left), .computed = is_converted(left & -left)}.arg());
    for (const auto& [slot, axis] : window_axes())
      push(OptOp::STAGE, loops_.is_around(axis) ? innermost_around() : number_of(axis),
           StageOpt{.slot = slot, .computed = (plan_.operands.computed >> slot & 1) != 0}.arg());
    return std::move(opts_);
  }

 private:
  int32_t number_of(int axis) const { return numbers_[size_t(axis)]; }

  bool is_converted(uint64_t argument) const {
    return std::ranges::any_of(in_.nest.works, [&](const NestedWork& w) { return w.argument == argument && loops_.is_converted(w); });
  }

  /// For each argument whose windows are copied, the axis in whose loop the copy is filled.
  std::map<int, int> window_axes() const {
    std::map<int, int> out;
    for (const NestedWork& w : in_.nest.works)
      if (loops_.is_windowed(w)) out[std::countr_zero(w.argument)] = window_tile(loops_, w, plan_.tile).axis;
    return out;
  }

  void push(OptOp op, int32_t number, int64_t arg) { opts_.push_back({op, number, int32_t(arg)}); }

  void add(OptOp op, int axis, int64_t n) {
    push(op, number_of(axis), n);
    int64_t& left = left_[size_t(axis)];
    left = (left + n - 1) / n;
  }

  void use_core() {
    push(OptOp::TC, 0, plan_.lanes.core->number);
    for (const Lane& l : plan_.lanes) {
      int64_t& left = left_[size_t(l.axis)];
      left = in_.axis(l.axis).is_reduce ? std::max<int64_t>(1, left / l.lanes) : (left + l.lanes - 1) / l.lanes;
    }
  }

  /// A transpose puts vectors together lane by lane, for which masks are dear: its last vector overlaps the one before instead.
  void add_lanes(const Lane& l) {
    if (!plan_.transposes || left_[size_t(l.axis)] % l.lanes == 0) return add(OptOp::LANE, l.axis, l.lanes);
    add_in_blocks(OptOp::LANE, l.axis, l.lanes);
  }

  /// Where `n` copies do not divide the axis and its end may not be masked, the axis is cut into blocks, the last of which overlaps.
  void add_copies(int axis, int64_t n) {
    if (left_[size_t(axis)] % n == 0 || !in_.axis(axis).is_known || loops_.may_mask(axis)) return add(OptOp::UPCAST, axis, n);
    add_in_blocks(OptOp::UPCAST, axis, n);
  }
  void add_in_blocks(OptOp op, int axis, int64_t n) {
    add(OptOp::BLOCK, axis, n);
    const int32_t blocks = number_of(axis);
    push(op, blocks + 1, n);
    make_room_behind(blocks);
  }

  /// Cuts the blocked axis of a reduction. Its number means the loop inside of a block from here on.
  void block_reduction() {
    const auto& [axes, block] = plan_.blocks;
    int32_t& number = numbers_[size_t(std::bit_width(axes)) - 1];
    blocks_number_ = number;
    push(OptOp::BLOCK, number, block);
    left_[size_t(std::bit_width(axes)) - 1] = block;
    make_room_behind(blocks_number_);
    ++number;
  }
  void make_room_behind(int32_t place) {
    for (int32_t& number : numbers_) number += number > place;
    blocks_number_ += blocks_number_ > place;
  }

  /// Loops that move a panel go outside of the loops that use it again. In a transpose, loops over the rows that are read go inside.
  void order_loops() {
    std::vector<int32_t*> numbers;
    if (plan_.operands.resident)
      for (int i : loops_.inside_out)
        if (!in_.axis(i).is_reduce) numbers.insert(numbers.begin(), &numbers_[size_t(i)]);
    if (plan_.transposes) numbers = {&numbers_[size_t(plan_.lanes[0].axis)], &numbers_[size_t(plan_.tile.axis[0])]};
    std::vector<int32_t> wanted;
    for (const int32_t* n : numbers) wanted.push_back(*n);
    std::sort(wanted.begin(), wanted.end());
    for (size_t k = 0; k < numbers.size(); ++k) {
      if (*numbers[k] == wanted[k]) continue;
      push(OptOp::SWAP, wanted[k], *numbers[k]);
      **std::find_if(numbers.begin(), numbers.end(), [&](const int32_t* n) { return *n == wanted[k]; }) = *numbers[k];
      *numbers[k] = wanted[k];
    }
  }

  /// Puts loops of the reduction around the output loops that use a panel again.
  void put_reduction_around() {
    int32_t first = std::numeric_limits<int32_t>::max();
    for (size_t i = 0; i < in_.axes(); ++i)
      if (!in_.axis(int(i)).is_reduce && !has_axis(loops_.resident_axes, int(i))) first = std::min(first, numbers_[i]);
    push(OptOp::OUTER, innermost_around(), first);
  }
  int32_t innermost_around() const { return plan_.blocks.block ? blocks_number_ : numbers_[size_t(std::bit_width(plan_.blocks.axes)) - 1]; }

  /// The loop in which panels are filled: the innermost one that moves them, or the outermost of all.
  int32_t stage_axis() const {
    if (plan_.blocks.axes) return innermost_around();
    int32_t axis = *std::min_element(numbers_.begin(), numbers_.end());
    for (size_t i = 0; i < in_.axes(); ++i)
      if (!in_.axis(int(i)).is_reduce && has_axis(loops_.resident_axes, int(i))) axis = std::max(axis, numbers_[i]);
    return axis;
  }

  // Short loops of reductions are written out. A long loop with few accumulators is written out in part, with an accumulator for each step.

  void unroll() {
    if (!plan_.operands.resident && plan_.blocks.axes) return;                              // compilers write a block out
    if (plan_.operands.resident && double(plan_.tile.copies()) >= in_.independent) return;  // one loop over all of the tile
    uint64_t seen = 0, ended = 0;                                                           // reduced axes, and those that are still a loop
    std::vector<int64_t> steps(in_.axes(), 1);
    for (int i : reduce_axes_inside_out()) {
      if (has_axis(in_.taken, i) || in_.reuses_terms(i)) continue;
      const uint64_t inner = together_with(i) & seen;
      seen |= uint64_t{1} << i;
      if (inner & ended) continue;
      int64_t copies = accumulators_over(i);
      for (size_t k = 0; k < steps.size(); ++k)
        if (has_axis(inner, int(k))) copies *= steps[k];
      const int64_t size = left_[size_t(i)];
      if (in_.axis(i).is_known && size > 1 && ((size <= 8 && copies * size <= 128) || is_written_out(in_, left_, i))) {
        add(OptOp::UNROLL, i, size);
        steps[size_t(i)] = size;
        continue;
      }
      ended |= uint64_t{1} << i;
      if (const int64_t n = inner ? 1 : most_steps(left_, std::span(&i, 1), most_accumulators / copies); n > 1) add(OptOp::UNROLL, i, n);
    }
  }

  /// The axes of loops that are around this one, or inside of it.
  uint64_t together_with(int axis) const {
    uint64_t bits = 0;
    for (const NestedWork& w : in_.nest.works)
      if (has_axis(w.inside, axis)) bits |= w.inside;
    return bits;
  }

  /// Terms that stay in registers get the same steps in the loop that computes them and in the one that reads them.
  void copy_reused_terms() {
    std::vector<int> axes;
    for (size_t i = 0; i < in_.axes(); ++i)
      if (in_.reuses_terms(int(i))) axes.push_back(int(i));
    if (axes.empty()) return;
    if (const int64_t n = most_steps(left_, axes, most_accumulators); n > 1)
      for (const int i : axes) add(in_.axis(i).is_reduce ? OptOp::UNROLL : OptOp::UPCAST, i, n);
  }

  /// The reduced axes. A REDUCE that is inside of another one comes first.
  std::vector<int> reduce_axes_inside_out() const {
    std::vector<std::pair<int, int>> by_depth;
    for (size_t i = 0; i < in_.axes(); ++i) {
      if (!in_.axis(int(i)).is_reduce) continue;
      int loops = 64;
      for (const NestedWork& w : in_.nest.works)
        if (has_axis(w.inside, int(i))) loops = std::min(loops, std::popcount(w.inside));
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
    for (const ReducePart& r : in_.reduces)
      if (has_axis(r.depends, axis)) sum += accumulators(r, plan_.tile);
    return std::max<int64_t>(sum, 1);
  }

  void choose_threads() {
    const double work = work_of(loops_, plan_.lanes);
    if (const Chunks c = chunks_of(loops_, plan_.tile, left_, wanted_chunks(in_, work), work, in_.target.threads); c.axis >= 0)
      push(OptOp::THREAD, number_of(c.axis), in_.axis(c.axis).is_known ? c.count : 0);
  }

  const CpuNest& in_;
  const CpuPlan& plan_;
  const PlannedLoops loops_;
  std::vector<Opt> opts_;
  std::vector<int64_t> left_;     ///< iterations of each axis that opts so far leave as a loop
  std::vector<int32_t> numbers_;  ///< the number of each axis behind the opts so far
  int32_t blocks_number_ = -1;    ///< the number of the loop over blocks of a reduced axis
};

}  // namespace

std::vector<Opt> opts_of(const CpuNest& nest, const CpuPlan& plan) { return OptList(nest, plan).write(); }

}  // namespace tinygrad::codegen
