#include "codegen/opt/heuristic_opts.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "codegen/opt/cpu_cost.h"
#include "codegen/opt/group_heuristic.h"
#include "codegen/opt/kernel_axes.h"
#include "codegen/opt/nest.h"
#include "shape/ranges.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr double tiny_kernel = 64;        // cycles: not worth a vector
constexpr double cycles_a_chunk = 16384;  // of a thread's chunk, at least
constexpr int64_t most_chunks = 256;

class CpuHeuristic : private CpuCost {
 public:
  /// `chosen` are the opts of other nests of the kernel, with which this one may share loops.
  CpuHeuristic(const Nest& nest, const Target& target, std::span<const Opt> chosen) : CpuCost(nest, target) {
    for (size_t i = 0; i < nest.axes.size(); ++i)
      for (const Opt& opt : chosen) {
        if (opt.axis != nest.axes[i].number) continue;
        taken_ |= uint64_t{1} << i;
        if (opt.op == OptOp::LANE) vectors_ |= uint64_t{1} << i;
      }
  }

  /// `one_nest`: the nest is the whole kernel. `in_place`: it stores to what it loads from.
  std::vector<Opt> run(bool one_nest, bool in_place) {
    std::vector<Opt> opts;
    if (nest_.total_cost < tiny_kernel) return opts;
    for (const NestAxis& a : nest_.axes) {
      left_.push_back(a.size);
      numbers_.push_back(int32_t(a.number));
    }
    if (is_joined()) {
      choose_together();
      if (one_nest && !in_place) choose_outer();
    } else {
      choose_staged(one_nest, in_place);
    }
    if (block_) block_reduction(opts);
    for (const Lane& l : lanes_) add(opts, OptOp::LANE, l.axis, l.lanes);
    for (int t = 0; t < 2; ++t)
      if (tile_.count[t] > 1) add_copies(opts, tile_.axis[t], tile_.count[t]);
    if (outer_steps_ > 1)
      add(opts, OptOp::UNROLL, nest_.joined_axis, outer_steps_);
    else
      unroll(opts);
    order_loops(opts);
    if (outer_) add_outer(opts);
    if (outer_steps_ > 1) opts.push_back({OptOp::OUTER, numbers_[size_t(nest_.joined_axis)], numbers_[size_t(followed_axes().front())]});
    if (one_nest) choose_threads(opts);
    if (staged_ >= 0) opts.push_back({OptOp::STAGE, stage_axis(), StageOpt{.slot = staged_}.arg()});
    return opts;
  }

 private:
  void add(std::vector<Opt>& opts, OptOp op, int axis, int64_t n) {
    opts.push_back({op, numbers_[size_t(axis)], int32_t(n)});
    int64_t& left = left_[size_t(axis)];
    left = (left + n - 1) / n;
  }

  /// Copies of an axis that they do not divide are the iterations of blocks where masks would be in the way.
  void add_copies(std::vector<Opt>& opts, int axis, int64_t n) {
    if (left_[size_t(axis)] % n == 0 || may_mask(axis)) return add(opts, OptOp::UPCAST, axis, n);
    add(opts, OptOp::BLOCK, axis, n);
    const int32_t blocks = numbers_[size_t(axis)];
    opts.push_back({OptOp::UPCAST, blocks + 1, int32_t(n)});
    make_room_behind(blocks);
  }

  /// The inside of a block is the axis from here on.
  void block_reduction(std::vector<Opt>& opts) {
    int32_t& number = numbers_[size_t(std::bit_width(outer_)) - 1];
    outer_number_ = number;
    opts.push_back({OptOp::BLOCK, number, int32_t(block_)});
    make_room_behind(number++);
  }
  void make_room_behind(int32_t place) {
    for (int32_t& number : numbers_) number += number > place;
    outer_number_ += outer_number_ > place;
  }

  // What is loaded again and again along an output axis is first put together as it will be needed, unless that is more work than it
  // saves. All that moves along with a step of the loop around is one tile.

  void choose_staged(bool one_nest, bool in_place) {
    may_block_ = one_nest && !in_place && nest_.reduces > 0 && nest_.total_cost >= worth_tiling;
    const std::vector<int64_t> sizes = left_;
    double best = choose_lanes_and_tile();
    Lanes lanes = lanes_;
    Tile tile = tile_;
    int staged = -1;
    Around around;
    for (int slot : one_nest && !in_place ? reused_arguments() : std::vector<int>()) {
      staged_ = slot;
      for (const Around& a : outer_choices()) {
        left_ = sizes;
        outer_ = a.axes;
        block_ = a.block;
        const double c = choose_lanes_and_tile();
        if (!is_near_enough()) continue;
        if (c < best) best = c, lanes = lanes_, tile = tile_, staged = slot, around = a;
        break;
      }
    }
    left_ = sizes;
    lanes_ = lanes;
    tile_ = tile;
    staged_ = staged;
    outer_ = around.axes;
    block_ = around.block;
  }

  /// The loops of a long reduction that go around output loops, of the last of which `block` iterations stay inside.
  struct Around {
    uint64_t axes = 0;
    int64_t block = 0;
  };

  /// More and more: half of the first loop, a quarter, ..., all of it, half of the second too, ...
  std::vector<Around> outer_choices() const {
    std::vector<Around> out{{}};
    if (nest_.reduces != 1) return out;
    uint64_t axes = 0;
    for (size_t i = 0; i < nest_.axes.size(); ++i) {
      if (!nest_.axes[i].is_reduce) continue;
      axes |= uint64_t{1} << i;
      const int64_t size = nest_.axes[i].size;
      int64_t last = size;
      for (int64_t most = size / 2; most > 1; most /= 2) {
        int64_t block = most;
        while (size % block != 0) --block;
        if (block > 1 && block < last) out.push_back({axes, last = block});
      }
      out.push_back({axes, 0});
    }
    out.pop_back();  // of the last something is left inside
    return out;
  }

  double choose_lanes_and_tile() {
    lanes_.clear();
    tile_ = {};
    choose_lanes();
    for (const Lane& l : lanes_) left_[size_t(l.axis)] = (left_[size_t(l.axis)] + l.lanes - 1) / l.lanes;
    const double c = choose_tile();
    return c + fill_cost() + results_cost();
  }

  /// Arguments that are loaded for REDUCEs, and are the same along an output axis.
  std::vector<int> reused_arguments() const {
    std::vector<int> out;
    if (nest_.total_cost < worth_tiling) return out;
    for (const NestedWork& w : nest_.works)
      if (is_reduced(w) && reuse_axes(w) != 0 && std::find(out.begin(), out.end(), slot_of(w)) == out.end()) out.push_back(slot_of(w));
    for (const NestedWork& w : nest_.works)
      if (w.is_access && !may_stage(w)) std::erase(out, slot_of(w));
    return out;
  }
  /// That the loops it moves with have known sizes, and nothing else is computed to find it.
  static bool may_stage(const NestedWork& w) {
    if (size_t(std::popcount(w.depends)) != ranges_of(w.node).size()) return false;
    const auto nodes = toposort(w.node.src(0));
    return std::none_of(nodes.begin(), nodes.end(), [](const UOp& u) { return u.is(Op::LOAD) || u.is(Op::REDUCE); });
  }
  uint64_t reuse_axes(const NestedWork& w) const { return w.inside & ~w.depends & ~reduce_axes(); }
  bool is_near_enough() const {
    if (!outer_) return tile_bytes(staged_) <= target_.l2_bytes;
    const bool rows = std::none_of(lanes_.begin(), lanes_.end(), [&](const Lane& l) { return nest_.axes[size_t(l.axis)].is_reduce; });
    return rows && tile_bytes(staged_) + results_bytes() <= target_.l2_bytes;
  }

  /// The loops that a tile moves with go outside of those that use it again.
  void order_loops(std::vector<Opt>& opts) {
    if (staged_ < 0) return;
    std::vector<int32_t*> numbers;
    for (int i : loops_inside_out())
      if (!nest_.axes[size_t(i)].is_reduce) numbers.insert(numbers.begin(), &numbers_[size_t(i)]);
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

  /// Around the loops that the tile does not move with.
  void add_outer(std::vector<Opt>& opts) const {
    const uint64_t moves = staged_axes();
    int32_t first = std::numeric_limits<int32_t>::max();
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (!nest_.axes[i].is_reduce && !has(moves, int(i))) first = std::min(first, numbers_[i]);
    opts.push_back({OptOp::OUTER, innermost_outer(), first});
  }
  int32_t innermost_outer() const { return block_ ? outer_number_ : numbers_[size_t(std::bit_width(outer_)) - 1]; }

  /// The innermost loop that the tile moves with, or the outermost of all.
  int32_t stage_axis() const {
    if (outer_) return innermost_outer();
    const uint64_t moves = staged_axes();
    int32_t axis = *std::min_element(numbers_.begin(), numbers_.end());
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (!nest_.axes[i].is_reduce && has(moves, int(i))) axis = std::max(axis, numbers_[i]);
    return axis;
  }

  // Vector axes: one, or two that no value depends on together, as in a softmax, whose reductions and results run over rows apart.

  void choose_lanes() {
    double best = work_with({}) * 0.8;
    for (const Lanes& lanes : lane_choices())
      if (const double w = work_with(lanes); w < best) best = w, lanes_ = lanes;
  }

  std::vector<Lanes> lane_choices() const {
    Lanes axes;
    for (size_t a = 0; a < nest_.axes.size(); ++a) {
      if (has(taken_, int(a)) || meets_vectors(int(a))) continue;
      for (int64_t n = std::max<int64_t>(1, target_.vector_bits / (8 * nest_.item_bytes)); n >= 4; n /= 2)
        if (n <= nest_.axes[a].size) axes.push_back({int(a), n});
    }
    std::vector<Lanes> out;
    for (size_t i = 0; i < axes.size(); ++i) {
      out.push_back({axes[i]});
      for (size_t k = i + 1; k < axes.size(); ++k)
        if (!meet(axes[i].axis, axes[k].axis)) out.push_back({axes[i], axes[k]});
    }
    return out;
  }

  bool meet(int a, int b) const {
    return std::any_of(nest_.works.begin(), nest_.works.end(), [&](const NestedWork& w) { return has(w.depends, a) && has(w.depends, b); });
  }

  bool meets_vectors(int axis) const {
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (has(vectors_, int(i)) && meet(axis, int(i))) return true;
    return false;
  }

  // Register tile: copies along an axis share the loads that do not depend on it and give the processor independent work.

  double choose_tile() {
    double best = tile_cost({});
    const int axes = int(nest_.axes.size());
    for (int a = 0; a < axes; ++a)
      for (int b = a; b < axes; ++b)
        for (int64_t n : tile_counts(a))
          for (int64_t m : b == a ? std::vector<int64_t>{1} : tile_counts(b)) {
            const Tile t{{a, b == a ? -1 : b}, {n, m}};
            if (!fits(t)) continue;
            if (const double c = tile_cost(t); c < best * 0.999) best = c, tile_ = t;
          }
    return best;
  }

  std::vector<int64_t> tile_counts(int axis) const {
    std::vector<int64_t> out{1};
    if (nest_.axes[size_t(axis)].is_reduce || has(taken_, axis)) return out;
    const int64_t most = nest_.reduces ? 8 : 4;
    const bool any = may_block_ || may_mask(axis);
    for (int64_t n = 2; n <= std::min(most, left_[size_t(axis)]); ++n)
      if (any || left_[size_t(axis)] % n == 0) out.push_back(n);
    if (const int64_t whole = left_[size_t(axis)]; is_joined() && whole > most && whole <= most_kept_results) out.push_back(whole);
    return out;
  }

  /// Masks at the end of an axis are outside of reductions if what is loaded inside of them is staged.
  bool may_mask(int axis) const {
    return staged_ >= 0 && std::none_of(nest_.works.begin(), nest_.works.end(),
                                        [&](const NestedWork& w) { return is_reduced(w) && !is_staged(w) && has(w.depends, axis); });
  }

  // Joined reductions, such as attention: of what they carry one value follows an output axis, the others and most of the step do not. To
  // compute those once, the whole axis is tiled; what registers don't hold of so many copies is near. Vectors and tile depend on each
  // other.

  void choose_together() {
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

  // Where registers don't hold the results of the whole axis, the joined loop goes around it, and the results so far are in memory. It
  // takes several steps at a time, so that they are read and written once for all of them. What moves with the rows alone is staged.

  void choose_outer() {
    const std::vector<int> followed = followed_axes();
    if (followed.empty() || fits_registers(followed)) return;
    const Lanes lanes = rows();
    const std::optional<int> staged = kept_argument();
    if (lanes.empty() || !staged) return;
    const int row = lanes[0].axis, last = followed.back();
    const int64_t rounds = (left_[size_t(row)] + lanes[0].lanes - 1) / lanes[0].lanes;
    const Tile tile{{row, last}, {rounds > 1 ? 2 : 1, left_[size_t(last)] % 2 == 0 ? 2 : 1}};
    for (const int64_t steps : {8, 4, 2}) {
      const int64_t size = left_[size_t(nest_.joined_axis)], computed = (size + steps - 1) / steps * steps;
      if (computed > size + size / 8 || tile.count[0] * (steps + tile.count[1]) + 2 > registers()) continue;
      lanes_ = lanes;
      tile_ = tile;
      staged_ = *staged;
      outer_steps_ = steps;
      return;
    }
  }

  /// The output axes that only some of what is carried follows, outermost first.
  std::vector<int> followed_axes() const {
    std::vector<int> out;
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (has(nest_.followed, int(i)) && !nest_.axes[i].is_reduce) out.push_back(int(i));
    return out;
  }
  bool fits_registers(const std::vector<int>& followed) const {
    int64_t results = 1;
    for (int i : followed) results *= nest_.axes[size_t(i)].size;
    return results * registers_each() + registers() / 4 <= registers();
  }

  /// The axis for vectors of which each lane has a maximum of its own; none if it would be that of results.
  Lanes rows() const {
    Lanes best;
    for (const Lanes& lanes : lane_choices())
      if (const int i = lanes[0].axis; lanes.size() == 1 && !has(nest_.followed, i) && !nest_.axes[size_t(i)].is_reduce)
        if (lanes[0].lanes * nest_.item_bytes * 8 == target_.vector_bits && (best.empty() || work_with(lanes) < work_with(best)))
          best = lanes;
    return best;
  }

  /// The one argument that is loaded in the joined loop and is the same in all its steps.
  std::optional<int> kept_argument() const {
    std::optional<int> slot;
    for (const NestedWork& w : nest_.works) {
      if (!is_reduced(w) || !has(w.inside, nest_.joined_axis) || has(w.depends, nest_.joined_axis)) continue;
      if (!may_stage(w) || (slot && *slot != slot_of(w))) return {};
      slot = slot_of(w);
    }
    return slot;
  }

  // Reductions: short loops are written out; a long one with few accumulators gets more of them.

  void unroll(std::vector<Opt>& opts) {
    if (staged_ >= 0 && tile_.copies() >= independent_operations) return;  // one loop over all of the tile
    int64_t steps = 1;
    bool innermost = true;
    for (int i : reduce_axes_inside_out()) {
      if (has(taken_, i)) continue;
      const int64_t size = left_[size_t(i)], copies = accumulators_over(i) * steps;
      if (size > 1 && ((size <= 8 && copies * size <= 128) || is_written_out(i))) {
        add(opts, OptOp::UNROLL, i, size);
        steps *= size;
      } else if (innermost && copies < 8) {
        for (int64_t n : {8, 4, 2})
          if (size % n == 0 && size > n && copies * n <= 8) {
            add(opts, OptOp::UNROLL, i, n);
            break;
          }
        return;
      } else {
        return;
      }
      innermost = false;
    }
  }

  /// Those of REDUCEs inside of others first.
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
    for (const NestedWork& w : nest_.works)
      if (w.node.is(Op::REDUCE) && has(w.depends, axis)) sum += accumulators(w, tile_);
    return std::max<int64_t>(sum, 1);
  }

  // Threads: the outermost axis that is long enough, in chunks that are worth starting a thread for.

  std::vector<int> output_axes_outside_in() const {
    std::vector<int> out;
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (!nest_.axes[i].is_reduce) out.push_back(int(i));
    std::stable_sort(out.begin(), out.end(), [&](int a, int b) { return numbers_[size_t(a)] < numbers_[size_t(b)]; });
    return out;
  }

  void choose_threads(std::vector<Opt>& opts) {
    if (!target_.has_threads) return;
    const double work = work_with(lanes_);
    const auto wanted = int64_t(std::min(work / cycles_a_chunk, double(most_chunks)));
    if (wanted < 2) return;
    int axis = -1;
    const uint64_t moves = staged_axes();
    for (const bool moving : {true, false})
      for (int i : output_axes_outside_in()) {
        if (left_[size_t(i)] < 2 || (has(moves, i) != moving && staged_ >= 0)) continue;
        if (axis < 0 || (moving && left_[size_t(axis)] < 16 && left_[size_t(i)] > left_[size_t(axis)])) axis = i;
      }
    if (axis < 0) return;
    const int64_t size = left_[size_t(axis)];
    // Each chunk would fill tiles that don't move along its axis anew.
    int64_t chunks = std::min({wanted, size, staged_ < 0 || has(moves, axis) ? most_chunks : int64_t{16}});
    // A divisor, so that no end is masked; without a good one, every step of the loop is a chunk.
    while (size % chunks != 0) --chunks;
    if (chunks * 4 < std::min(wanted, size)) chunks = size;
    add(opts, OptOp::THREAD, axis, chunks);
  }

  uint64_t taken_ = 0, vectors_ = 0;  ///< axes that have opts already, and lanes
  std::vector<int32_t> numbers_;      ///< of each axis, as the opts so far leave it
  int32_t outer_number_ = -1;         ///< of the blocks of a reduced axis
  bool may_block_ = false;            ///< elements may be computed twice
};

}  // namespace

std::vector<Opt> heuristic_opts(const UOp& sink, const Target& target) {
  std::vector<Opt> opts;
  const bool one_nest = sink.src_count() == 1;
  for (const UOp& effect : sink.src()) {
    const Nest nest = analyze_nest(sink, effect);
    if (target.has_groups) {
      if (one_nest) opts = group_heuristic(sink, nest, target);
      continue;
    }
    const auto more = CpuHeuristic(nest, target, opts).run(one_nest, updates_in_place(sink));
    opts.insert(opts.end(), more.begin(), more.end());
  }
  return opts;
}

}  // namespace tinygrad::codegen
