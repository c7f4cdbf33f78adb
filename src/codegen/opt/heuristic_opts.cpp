#include "codegen/opt/heuristic_opts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "codegen/opt/group_heuristic.h"
#include "codegen/opt/kernel_axes.h"
#include "codegen/opt/nest.h"
#include "shape/ranges.h"
#include "uop/graph.h"

// A small cost model of the innermost loops: what a choice of vector axis and register tile saves in loads and instructions. All numbers
// are in cycles of a core that starts two vector operations a cycle.
namespace tinygrad::codegen {

namespace {

constexpr double tiny_kernel = 64;        // cycles: not worth a vector
constexpr double cycles_a_chunk = 16384;  // of a thread's chunk, at least
constexpr double worth_tiling = 32768;    // cycles of a kernel: a copy of an operand, blocks that overlap
constexpr double line_bytes = 64;
constexpr double l3_bytes_a_cycle = 16, memory_bytes_a_cycle = 4;
constexpr int64_t most_chunks = 256;
constexpr double independent_operations = 8;  // in flight at once: latency 4, two a cycle

/// A vector axis and its number of lanes.
struct Lane {
  int axis = -1;  ///< place in the nest; -1: none
  int64_t lanes = 1;
};

/// Copies of output axes: at most two are tiled.
struct Tile {
  int axis[2] = {-1, -1};
  int64_t count[2] = {1, 1};
  int64_t copies() const { return count[0] * count[1]; }
};

class CpuHeuristic {
 public:
  /// `chosen` are the opts of other nests of the kernel, with which this one may share loops.
  CpuHeuristic(const Nest& nest, const Target& target, std::span<const Opt> chosen) : nest_(nest), target_(target) {
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
    if (is_joined())
      choose_together();
    else
      choose_staged(one_nest, in_place);
    for (const Lane& l : lanes_) add(opts, OptOp::LANE, l.axis, l.lanes);
    for (int t = 0; t < 2; ++t)
      if (tile_.count[t] > 1) add_copies(opts, tile_.axis[t], tile_.count[t]);
    unroll(opts);
    order_loops(opts);
    if (one_nest) choose_threads(opts);
    if (staged_ >= 0) opts.push_back({OptOp::STAGE, stage_axis(), StageOpt{.slot = staged_}.arg()});
    return opts;
  }

 private:
  static bool has(uint64_t bits, int axis) { return axis >= 0 && (bits >> axis & 1); }

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
    for (int32_t& number : numbers_) number += number > blocks;
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
    for (int slot : one_nest ? reused_arguments() : std::vector<int>()) {
      staged_ = slot;
      left_ = sizes;
      const double c = choose_lanes_and_tile();
      if (c < best && is_near_enough()) best = c, lanes = lanes_, tile = tile_, staged = slot;
    }
    left_ = sizes;
    lanes_ = lanes;
    tile_ = tile;
    staged_ = staged;
  }

  double choose_lanes_and_tile() {
    lanes_.clear();
    tile_ = {};
    choose_lanes();
    for (const Lane& l : lanes_) left_[size_t(l.axis)] = (left_[size_t(l.axis)] + l.lanes - 1) / l.lanes;
    const double c = choose_tile();
    return c + fill_cost();
  }

  /// Arguments that are loaded for REDUCEs, and are the same along an output axis.
  std::vector<int> reused_arguments() const {
    std::vector<int> out;
    if (nest_.total_cost < worth_tiling) return out;
    for (const NestedWork& w : nest_.works) {
      if (w.is_access && w.node.is(Op::STORE) && std::find(out.begin(), out.end(), slot_of(w)) != out.end()) return {};
      if (!is_reduced(w) || reuse_axes(w) == 0) continue;
      const auto nodes = toposort(w.node.src(0));
      const bool plain = std::none_of(nodes.begin(), nodes.end(), [](const UOp& u) { return u.is(Op::LOAD) || u.is(Op::REDUCE); });
      if (plain && std::find(out.begin(), out.end(), slot_of(w)) == out.end()) out.push_back(slot_of(w));
    }
    return out;
  }
  static int slot_of(const NestedWork& w) {
    const UOp& memory = w.node.src(0).src(0);
    return memory.is(Op::PARAM) ? memory.arg_as<ParamArg>().slot : -1;
  }
  bool is_staged(const NestedWork& w) const { return staged_ >= 0 && w.is_access && slot_of(w) == staged_; }
  /// A LOAD inside of a reduction.
  bool is_reduced(const NestedWork& w) const { return w.is_access && w.node.is(Op::LOAD) && slot_of(w) >= 0 && (w.inside & reduce_axes()); }
  uint64_t reduce_axes() const {
    uint64_t bits = 0;
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (nest_.axes[i].is_reduce) bits |= uint64_t{1} << i;
    return bits;
  }
  uint64_t reuse_axes(const NestedWork& w) const { return w.inside & ~w.depends & ~reduce_axes(); }
  /// The axes that what is staged depends on.
  uint64_t staged_axes() const {
    uint64_t bits = 0;
    for (const NestedWork& w : nest_.works)
      if (is_staged(w)) bits |= w.depends;
    return bits;
  }

  /// Each element is loaded as it lies and stored once.
  double fill_cost() const {
    double sum = 0;
    for (const NestedWork& w : nest_.works)
      if (is_staged(w)) sum += fill_cost(w);
    return sum;
  }
  double fill_cost(const NestedWork& w) const {
    double elements = 1, vectors = 1;
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (has(w.depends, int(i))) elements *= double(nest_.axes[i].size), vectors /= double(lanes_of(int(i)));
    Lanes moving;
    for (const Lane& l : lanes_)
      if (has(w.depends, l.axis)) moving.push_back(l);
    return elements * 2 * (share_as_it_lies(w, moving) + vectors);
  }

  bool is_near_enough() const { return tile_bytes(staged_) <= target_.l2_bytes; }
  int64_t tile_bytes(int slot) const {
    int64_t bytes = 0;
    for (const NestedWork& w : nest_.works) {
      if (!w.is_access || slot_of(w) != slot) continue;
      int64_t elements = int64_t(itemsize(w.node.dtype()));
      for (size_t i = 0; i < nest_.axes.size() && elements <= target_.l2_bytes; ++i)
        if (has(w.depends, int(i))) elements *= nest_.axes[i].is_reduce ? nest_.axes[i].size : lanes_of(int(i)) * copies_of(int(i));
      bytes += elements;
    }
    return bytes;
  }
  int64_t copies_of(int axis) const { return (tile_.axis[0] == axis ? tile_.count[0] : 1) * (tile_.axis[1] == axis ? tile_.count[1] : 1); }

  int64_t lanes_of(int axis) const {
    for (const Lane& l : lanes_)
      if (l.axis == axis) return l.lanes;
    return 1;
  }

  /// The loops that a tile moves with go outside of those that use it again.
  void order_loops(std::vector<Opt>& opts) {
    if (staged_ < 0) return;
    const uint64_t moves = staged_axes();
    std::vector<size_t> places, order;
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (!nest_.axes[i].is_reduce) places.push_back(i);
    for (size_t i : places)
      if (has(moves, int(i))) order.push_back(i);
    for (size_t i : places)
      if (!has(moves, int(i))) order.push_back(i);
    std::vector<int32_t*> numbers;
    for (size_t i : order) numbers.push_back(&numbers_[i]);
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

  /// The innermost loop that the tile moves with, or the outermost of all.
  int32_t stage_axis() const {
    const uint64_t moves = staged_axes();
    int32_t axis = *std::min_element(numbers_.begin(), numbers_.end());
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (!nest_.axes[i].is_reduce && has(moves, int(i))) axis = std::max(axis, numbers_[i]);
    return axis;
  }

  // Vector axes: one, or two that no value depends on together, as in a softmax, whose reductions and results run over rows apart.

  using Lanes = std::vector<Lane>;

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

  /// Of the nest, with vectors.
  double work_with(const Lanes& lanes) const {
    double sum = 0;
    for (const NestedWork& w : nest_.works) sum += w.cost * w.trips * share(w, lanes);
    return sum + joins(lanes);
  }

  double joins(const Lanes& lanes) const {
    double sum = 0;
    for (const Lane& l : lanes)
      if (nest_.axes[size_t(l.axis)].is_reduce) sum += join_cost(l);
    return sum;
  }

  /// Joining the lanes of a reduction takes a shuffle and an operation for each half.
  double join_cost(const Lane& l) const {
    double outputs = 0;
    for (const NestedWork& w : nest_.works)
      if (w.node.is(Op::REDUCE) && has(w.depends, l.axis)) {
        double trips = 1;
        for (size_t i = 0; i < nest_.axes.size(); ++i)
          if (has(w.inside, int(i)) && !nest_.axes[i].is_reduce) trips *= double(nest_.axes[i].size);
        outputs += trips;
      }
    return outputs * 4 * std::log2(double(l.lanes));
  }

  /// How much of a piece of work is left with lanes.
  double share(const NestedWork& w, const Lanes& lanes) const {
    if (!is_staged(w)) return share_as_it_lies(w, lanes);
    double left = 1;
    for (const Lane& l : lanes)
      if (has(w.inside, l.axis)) left /= double(l.lanes);
    return left;
  }
  double share_as_it_lies(const NestedWork& w, const Lanes& lanes) const {
    double left = gate_cost(w, lanes);
    for (const Lane& l : lanes) {
      if (!has(w.inside, l.axis)) continue;
      const NestAxis& a = nest_.axes[size_t(l.axis)];
      const int64_t rounds = (a.size + l.lanes - 1) / l.lanes;
      const double vectors = double(rounds) / double(a.size);
      if (!w.is_access || !has(w.depends, l.axis)) {
        left *= vectors;
      } else if (stride_of(w.node.src(0).src(1), a.range) == 1) {
        left *= vectors * (a.size % l.lanes ? 1.5 : 1);  // the end of a row is masked, if it is no whole vector
      } else {
        left *= 2;  // one access per lane, and putting them together
      }
    }
    return left;
  }

  /// A gate is worked out along with an access; one that lanes have each their own of is a mask.
  double gate_cost(const NestedWork& w, const Lanes& lanes) const {
    if (!w.is_access || w.node.src(0).src_count() < 3) return 1;
    const UOp& gate = w.node.src(0).src(2);
    const auto moves = [&](const Lane& l) { return is_open_over(gate, std::span(&nest_.axes[size_t(l.axis)].range, 1)); };
    return std::any_of(lanes.begin(), lanes.end(), moves) ? 4 : 2;
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

  bool fits(const Tile& t) const {
    if (is_joined()) return t.copies() <= (t.axis[1] < 0 ? most_kept_results : most_kept_results / 2);  // at the price of spills()
    return accumulators(t) * registers_each() + vectors_of_step(t) * registers_each() + 1 <= registers();
  }
  /// That one step of all copies shares: those along a vector axis; what is the same in all lanes is loaded when it is needed.
  int64_t vectors_of_step(const Tile& t) const {
    int64_t along = 0;
    for (int i = 0; i < 2; ++i)
      if (lanes_of(t.axis[i]) > 1) along = t.count[i];
    return along ? along : std::min(t.count[0], t.count[1]);
  }
  int64_t registers() const { return std::max(8, target_.vector_registers); }
  /// Of a value with all its lanes.
  int64_t registers_each() const {
    const int64_t bits = widest() * nest_.item_bytes * 8;
    return target_.vector_bits ? std::max<int64_t>(1, bits / target_.vector_bits) : 1;
  }

  /// Registers of the partial results of a REDUCE. What does not change along a tiled axis is shared by its copies; of what a general
  /// REDUCE carries, one value follows the axis: the others are its maximum, its count or the like.
  static int64_t accumulators(const NestedWork& w, const Tile& t) {
    int64_t copies = 1;
    for (int i = 0; i < 2; ++i)
      if (has(w.depends, t.axis[i])) copies *= t.count[i];
    return copies + (is_general_reduce(w.node) ? int64_t(w.node.src(1).src_count()) - 1 : 0);
  }
  int64_t accumulators(const Tile& t) const {
    int64_t sum = 0;
    for (const NestedWork& w : nest_.works)
      if (w.node.is(Op::REDUCE)) sum += accumulators(w, t);
    return std::max(sum, t.copies());
  }

  int64_t widest() const {
    int64_t n = 1;
    for (const Lane& l : lanes_) n = std::max(n, l.lanes);
    return n;
  }

  /// Cycles to load again what the loops around a use of it have driven out of the second cache meanwhile.
  double traffic(const Tile& t) const {
    if (nest_.total_cost < worth_tiling || target_.l2_bytes == 0) return 0;
    double sum = 0;
    const std::vector<int> loops = loops_inside_out();
    for (const NestedWork& w : nest_.works) {
      if (!is_reduced(w)) continue;
      double bytes = double(itemsize(w.node.dtype())), times = 1;
      const auto size = [&](int i) { return double(nest_.axes[size_t(i)].size); };
      const auto held = [&](int i) {
        return double(lanes_of(i) * (t.axis[0] == i ? t.count[0] : 1) * (t.axis[1] == i ? t.count[1] : 1));
      };
      for (size_t i = 0; i < nest_.axes.size(); ++i)
        if (has(w.depends, int(i))) bytes *= nest_.axes[i].is_reduce ? size(int(i)) : std::min(size(int(i)), held(int(i)));
      bool far = false;
      for (int i : loops) {
        const double left = std::max(1.0, size(i) / held(i));
        if (has(w.depends, i)) {
          bytes *= left;
        } else if (left > 1 && bytes > double(target_.l2_bytes)) {
          times *= left;
          far = bytes > double(std::max(target_.l2_bytes, target_.l3_bytes));
        }
      }
      sum += bytes * (times - 1) / (far ? memory_bytes_a_cycle : l3_bytes_a_cycle);
    }
    return sum;
  }

  /// The loops over outputs, as order_loops() will leave them.
  std::vector<int> loops_inside_out() const {
    const uint64_t moves = staged_axes();
    std::vector<int> out;
    for (const bool moving : {false, true})
      for (size_t i = nest_.axes.size(); i-- > 0;)
        if (!nest_.axes[i].is_reduce && has(moves, int(i)) == moving) out.push_back(int(i));
    return out;
  }

  /// How many times more is computed than there is, because of the masked ends.
  double masked_work(const NestedWork& w, const Tile& t) const {
    double more = 1;
    for (int i = 0; i < 2; ++i) {
      if (!has(w.inside, t.axis[i])) continue;
      const int64_t size = left_[size_t(t.axis[i])], n = t.count[i];
      more *= double((size + n - 1) / n * n) / double(size);
    }
    return more;
  }

  double tile_cost(const Tile& t) const {
    double sum = 0;
    for (const NestedWork& w : nest_.works) {
      double c = w.cost * w.trips * (stays(w) ? share_of_kept(w) : share(w, lanes_)) * (w.is_access ? line_cost(w, t) : 1) * masked_work(w, t);
      for (int i = 0; i < 2; ++i)
        if (has(w.inside, t.axis[i]) && !has(w.depends, t.axis[i])) c /= double(t.count[i]);
      // Steps of a reduction wait for each other.
      if (w.node.is(Op::REDUCE)) c *= std::max(1.0, independent_operations / double(t.copies() * nest_.reduces));
      sum += c + spills(w, t);
    }
    sum += is_joined() ? joins(lanes_) : traffic(t);
    // Copies without anything to share still save loop overhead, one cycle an iteration.
    return sum + innermost_trips() / double(t.copies());
  }

  /// An access that moves to another cache line at each step of the innermost loop waits for it; neighbouring vectors share the line.
  double line_cost(const NestedWork& w, const Tile& t) const {
    if (is_staged(w)) return 0.5;
    int innermost = -1;
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (has(w.inside, int(i))) innermost = int(i);
    if (innermost < 0 || !has(w.depends, innermost)) return 1;
    const UOp& at = w.node.src(0).src(1);
    const auto stride = stride_of(at, nest_.axes[size_t(innermost)].range);
    if (stride && std::abs(*stride) <= 1) return 0.5;
    double shared = 1;
    for (int i = 0; i < 2; ++i)
      if (t.axis[i] >= 0 && stride_of(at, nest_.axes[size_t(t.axis[i])].range) == 1) shared = double(t.count[i]);
    const bool vector = std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane& l) { return has(w.depends, l.axis); });
    const double vectors_a_line = std::max(1.0, line_bytes / double((vector ? widest() : 1) * nest_.item_bytes));
    return 0.5 + 1.5 / std::min(shared, vectors_a_line);
  }

  double innermost_trips() const {
    double most = 0;
    for (const NestedWork& w : nest_.works)
      if (!w.is_access) most = std::max(most, w.trips * share(w, lanes_));
    return most;
  }

  // Joined reductions, such as attention: of what they carry one value follows an output axis, the others and most of the step do not. To
  // compute those once, the whole axis is tiled; what registers don't hold of so many copies is near. Vectors and tile depend on each
  // other.

  bool is_joined() const { return nest_.joined_axis >= 0; }

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

  /// Steps of accumulators that are in no register load and store them.
  double spills(const NestedWork& w, const Tile& t) const {
    if (!is_joined() || !w.node.is(Op::REDUCE)) return 0;
    const int64_t held = accumulators(w, t) * registers_each();
    return held <= registers() ? 0 : 2 * w.trips * share(w, lanes_) * (1 - double(registers()) / double(held));
  }

  /// What does not change in the joined loop is loaded before it, if the loops inside that it changes with are written out.
  bool stays(const NestedWork& w) const {
    if (!is_joined() || !w.is_access || !has(w.inside, nest_.joined_axis) || has(w.depends, nest_.joined_axis)) return false;
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (has(w.depends, int(i)) && nest_.axes[i].is_reduce && !is_written_out(int(i))) return false;
    return true;
  }
  /// It is loaded as it lies once, and as whole vectors from near memory each time.
  double share_of_kept(const NestedWork& w) const {
    double vectors = 1;
    for (const Lane& l : lanes_)
      if (has(w.inside, l.axis)) vectors /= double(l.lanes);
    return vectors + share(w, lanes_) / double(nest_.axes[size_t(nest_.joined_axis)].size);
  }

  /// A loop inside of the joined one.
  bool is_written_out(int axis) const {
    return is_joined() && axis > nest_.joined_axis && nest_.axes[size_t(axis)].is_reduce && left_[size_t(axis)] <= most_kept_results;
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

  const Nest& nest_;
  const Target& target_;
  uint64_t taken_ = 0, vectors_ = 0;  ///< axes that have opts already, and lanes
  std::vector<int64_t> left_;         ///< iterations of each axis that are still loops
  std::vector<int32_t> numbers_;      ///< of each axis, as the opts so far leave it
  bool may_block_ = false;            ///< elements may be computed twice
  int staged_ = -1;                   ///< the argument of which a tile is copied to near memory; -1: none
  Lanes lanes_;
  Tile tile_;
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
