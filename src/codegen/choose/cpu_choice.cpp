#include "codegen/choose/cpu_choice.h"

#include <algorithm>
#include <bit>
#include <map>

#include "codegen/kernel_axes.h"
#include "codegen/lower/repeated_terms.h"
#include "shape/ranges.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

CpuChoice::CpuChoice(const Nest& nest, const Target& target, std::span<const Opt> chosen, std::vector<CoreUse> cores, bool bounded)
    : CpuCost(nest, target), cores_(std::move(cores)), bounded_(bounded) {
  for (size_t i = 0; i < nest.axes.size(); ++i) {
    left_.push_back(nest.axes[i].size);
    for (const Opt& opt : chosen) {
      if (opt.axis != nest.axes[i].number) continue;
      taken_ |= uint64_t{1} << i;
      if (opt.op == OptOp::LANE) vectors_ |= uint64_t{1} << i;
    }
  }
}

void CpuChoice::choose(bool one_nest, bool in_place) {
  if (nest_.reduces == 0 && choose_transposing(one_nest && !in_place)) return;
  if (!is_joined()) return choose_near(one_nest, in_place);
  choose_together();
  if (one_nest) choose_outer();
}

// What choose() weighs against each other, for a search to begin with.

namespace {

constexpr size_t most_alike = 6;
constexpr double cycles_a_chunk = 16384;  // a thread's chunk has at least so many
constexpr int64_t most_chunks = 256;

}  // namespace

std::vector<CpuChoice::Choice> CpuChoice::cheapest_choices(bool in_place, size_t count) {
  may_block_ = !in_place && nest_.reduces > 0;
  const std::vector<int64_t> sizes = left_;
  std::vector<Choice> choices;
  for (const Near& near : near_choices()) {
    take(near);
    for (const Lanes& lanes : cheapest_lanes()) {
      for (const Around& a : near_ && !windows_ ? outer_choices() : std::vector<Around>{{}}) {
        left_ = sizes;
        outer_ = a.axes;
        block_ = a.block;
        const size_t before = choices.size();
        add_choices(lanes, choices);
        if (choices.size() > before) break;
      }
    }
  }
  left_ = sizes;
  std::ranges::stable_sort(choices, std::less(), &Choice::cost);
  if (choices.size() > count) choices.resize(count);
  return choices;
}

std::vector<Lanes> CpuChoice::cheapest_lanes() const {
  std::vector<std::pair<double, Lanes>> all{{work_with({}), {}}};
  for (const Lanes& lanes : lane_choices()) all.emplace_back(work_with(lanes), lanes);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Lanes> out;
  for (size_t i = 0; i < std::min(all.size(), most_alike); ++i) out.push_back(std::move(all[i].second));
  return out;
}

/// Those with the best tiles for what is chosen so far.
void CpuChoice::add_choices(const Lanes& lanes, std::vector<Choice>& to) {
  lanes_ = lanes;
  for (const Lane& l : lanes) left_[size_t(l.axis)] = (left_[size_t(l.axis)] + l.lanes - 1) / l.lanes;
  std::vector<Choice> found;
  const int64_t chunks = wanted_chunks();
  for_tiles([&](const Tile& t, double loops) {
    tile_ = t;
    if (is_near_enough()) found.push_back(chosen(in_all(loops, chunks)));
  });
  std::ranges::stable_sort(found, std::less(), &Choice::cost);
  if (found.size() > most_alike) found.resize(most_alike);
  to.insert(to.end(), found.begin(), found.end());
}

void CpuChoice::take(const Choice& c) {
  lanes_ = c.lanes;
  tile_ = c.tile;
  near_ = c.near;
  packed_ = c.packed;
  windows_ = c.windows;
  computed_ = c.computed;
  outer_ = c.outer;
  block_ = c.block;
}

// Operands that an output loop loads again are packed into panels, in the order in which they will be read, if that saves more than the
// copying costs. A panel holds what one iteration of the loops around it needs.

void CpuChoice::choose_near(bool one_nest, bool in_place) {
  may_block_ = one_nest && !in_place && nest_.reduces > 0 && nest_.total_cost >= worth_tiling;
  const std::vector<int64_t> sizes = left_;
  Choice best = choose_lanes_and_tile();
  for (const Near& near : one_nest ? near_choices() : std::vector<Near>()) {
    take(near);
    for (const Around& a : near_ != 0 && windows_ == computed_ ? outer_choices() : std::vector<Around>{{}}) {
      left_ = sizes;
      outer_ = a.axes;
      block_ = a.block;
      const Choice c = choose_lanes_and_tile();
      if (!is_near_enough()) continue;
      if (c.cost < best.cost) best = c;
      if (!computed_) break;
    }
  }
  left_ = sizes;
  take(best);
  cost_ = best.cost;
}

std::vector<CpuChoice::Around> CpuChoice::outer_choices() const {
  std::vector<Around> out{{}};
  // A loop is bounded by those around it.
  if (nest_.reduces != 1 || bounded_) return out;
  int64_t terms = 1;  // of a tensor core's sums: a block has a multiple of them
  for (const CoreUse& use : cores_) terms = std::max(terms, use.k.lanes);
  uint64_t axes = 0;
  for (size_t i = 0; i < nest_.axes.size(); ++i) {
    if (!nest_.axes[i].is_reduce) continue;
    axes |= uint64_t{1} << i;
    const int64_t size = nest_.axes[i].size;
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

CpuChoice::Choice CpuChoice::choose_lanes_and_tile() {
  lanes_ = {};
  tile_ = {};
  if (!windows_ && !nest_.chosen) {
    choose_lanes();
    return chosen(with_lanes());
  }
  // A tile holds data in the order of its use, so with tiles the cost of filling them decides between vectors. So do the copies that choose
  // between values.
  const std::vector<int64_t> sizes = left_;
  std::optional<Choice> best;
  for (const Lanes& lanes : cheapest_lanes()) {
    lanes_ = lanes;
    tile_ = {};
    left_ = sizes;
    if (const Choice c = chosen(with_lanes()); !best || c.cost < best->cost) best = c;
  }
  take(*best);
  return *best;
}

double CpuChoice::with_lanes() {
  for (const Lane& l : lanes_) left_[size_t(l.axis)] = (left_[size_t(l.axis)] + l.lanes - 1) / l.lanes;
  return choose_tile();
}

CpuChoice::Choice CpuChoice::chosen(double cost) const {
  return {cost, lanes_, tile_, near_, packed_, windows_, computed_, outer_, block_};
}

double CpuChoice::in_all(double loops, int64_t wanted) const {
  std::vector<int64_t> left = left_;
  for (int t = 0; t < 2; ++t)
    if (tile_.count[t] > 1) left[size_t(tile_.axis[t])] = (left[size_t(tile_.axis[t])] + tile_.count[t] - 1) / tile_.count[t];
  // Threads wait for the last chunk of others, and each chunk of an axis that does not move a tile fills that tile for itself.
  double waiting = 0, fills = fill_cost() + windows_cost();
  if (nest_.total_cost >= worth_tiling && target_.has_threads) {
    const Chunks c = chunks(left, wanted);
    waiting = leaves_threads_idle(c.count) ? 1 / double(c.count) : std::min(0.05, 0.5 / double(c.count));
    if (c.axis >= 0) fills += fills_again(c.axis, c.count);
  }
  return (loops + fills + results_cost()) * (1 + waiting);
}

bool CpuChoice::leaves_threads_idle(int64_t chunks) { return chunks > 1 && chunks < 8 && chunks % 2 != 0; }

int64_t CpuChoice::wanted_chunks() const { return int64_t(std::min(work_with(lanes_) / cycles_a_chunk, double(most_chunks))); }

CpuChoice::Chunks CpuChoice::chunks(std::span<const int64_t> left, int64_t wanted) const {
  if (wanted < 2 || !target_.has_threads) return {};
  const Chunks with_tiles = chunks_along(left, wanted, true);
  if (with_tiles.axis >= 0 && !leaves_threads_idle(with_tiles.count)) return with_tiles;
  const Chunks others = chunks_along(left, wanted, false);
  if (with_tiles.axis < 0) return others;
  return others.count <= most_refills && others.count % 2 == 0 ? others : with_tiles;
}

CpuChoice::Chunks CpuChoice::chunks_along(std::span<const int64_t> left, int64_t wanted, bool with_tiles) const {
  constexpr int64_t enough_steps = 16;
  uint64_t moves = near_ ? near_axes() : ~uint64_t{0};
  // A transpose reads its rows to their ends.
  if (transposes_ && left[size_t(lanes_[0].axis)] >= enough_steps) moves &= ~(uint64_t{1} << tile_.axis[0]);
  int axis = -1;
  for (size_t i = 0; i < nest_.axes.size(); ++i) {
    if (nest_.axes[i].is_reduce || left[i] < 2 || has(moves, int(i)) != with_tiles || keeps_terms(int(i))) continue;
    if (axis < 0 || (with_tiles && left[size_t(axis)] < enough_steps && left[i] > left[size_t(axis)])) axis = int(i);
  }
  if (axis < 0) return {};
  const int64_t size = left[size_t(axis)];
  // Each chunk would fill the tiles that its axis does not move for itself.
  const int64_t most = std::min({wanted, size, with_tiles ? most_chunks : most_refills});
  // A divisor, so that no end is masked; without a good one, every step of the loop is a chunk.
  int64_t count = most;
  while (size % count != 0) --count;
  if (!with_tiles && count < most)
    for (int64_t more = most + 1; more * count < most * most; ++more)
      if (size % more == 0) return {axis, more};
  if (count * 4 < std::min(with_tiles ? wanted : most, size)) count = size;
  return {axis, count};
}

std::vector<CpuChoice::Near> CpuChoice::near_choices() const {
  std::vector<Near> out{{}};
  if (is_joined()) return out;
  const uint64_t windows = arguments_with_windows(), computed = computed_arguments();
  if (windows) out.push_back({.windows = windows});
  if (computed) out.push_back({.windows = computed, .computed = computed});
  for (const uint64_t arguments : reused_arguments()) {
    for (const bool packed : {true, false}) out.push_back({arguments, packed});
    if (windows & ~arguments)
      for (const bool packed : {true, false}) out.push_back({arguments, packed, windows & ~arguments});
    // A tile is filled with what is computed of other arguments, not of other tiles.
    uint64_t apart = computed & ~arguments;
    for (const NestedWork& w : nest_.works)
      if (w.argument & arguments) apart &= ~w.computed;
    if (apart)
      for (const bool packed : {true, false}) out.push_back({arguments, packed, apart, apart});
  }
  return out;
}

void CpuChoice::take(const Near& n) {
  near_ = n.arguments;
  packed_ = n.packed;
  windows_ = n.windows;
  computed_ = n.computed;
}

uint64_t CpuChoice::computed_arguments() const {
  if (nest_.total_cost < worth_tiling) return 0;
  uint64_t fixed = 0, out = 0, seen = 0;
  for (const NestedWork& w : nest_.works)
    if (w.is_access && w.node.is(Op::STORE)) fixed |= w.argument;
  for (const NestedWork& w : nest_.works)
    if (w.argument & fixed) fixed |= w.computed;
  for (const NestedWork& w : nest_.works) {
    if (!is_reduced(w) || !may_stage(w) || reuse_axes(w) == 0) continue;
    if (!(w.argument & nest_.computed & ~fixed & ~seen)) continue;
    out |= w.argument;
    seen |= w.computed;
  }
  return out;
}

uint64_t CpuChoice::arguments_with_windows() const {
  if (nest_.total_cost < worth_tiling) return 0;
  uint64_t out = 0;
  for (const NestedWork& w : nest_.works)
    if (is_reduced(w) && has_window(w)) out |= w.argument;
  return out & ~fixed_arguments();
}

std::vector<uint64_t> CpuChoice::reused_arguments() const {
  if (nest_.total_cost < worth_tiling) return {};
  const uint64_t fixed = fixed_arguments();
  std::vector<uint64_t> alone;
  std::map<uint64_t, uint64_t> together;
  for (const NestedWork& w : nest_.works) {
    if (!is_reduced(w) || reuse_axes(w) == 0 || (w.argument & fixed)) continue;
    if (std::ranges::find(alone, w.argument) == alone.end()) alone.push_back(w.argument);
    together[w.depends & ~reduce_axes()] |= w.argument;
  }
  for (const auto& [axes, arguments] : together)
    if (!std::has_single_bit(arguments)) alone.push_back(arguments);
  return alone;
}
uint64_t CpuChoice::fixed_arguments() const {
  uint64_t fixed = 0;
  for (const NestedWork& w : nest_.works)
    if (w.is_access && (w.node.is(Op::STORE) || !may_stage(w))) fixed |= w.argument;
  return fixed;
}
bool CpuChoice::may_stage(const NestedWork& w) {
  if (size_t(std::popcount(w.depends)) != ranges_of(w.node).size()) return false;
  const auto nodes = toposort(w.node.src(0));
  return std::none_of(nodes.begin(), nodes.end(), [](const UOp& u) { return u.is(Op::LOAD) || u.is(Op::REDUCE); });
}
bool CpuChoice::is_near_enough() const {
  // Rows of a tile that is not packed often fall into few sets of the cache.
  const bool together = packed_ || std::ranges::all_of(nest_.works, [&](const NestedWork& w) { return !is_near(w) || is_dense(w, tile_); });
  const int64_t most = (together ? target_.l2_bytes : target_.l2_bytes / 8) - int64_t(windows_bytes());
  if (!outer_) return tile_bytes(near_) <= most;
  if ((near_axes() | reduce_axes()) == (uint64_t{2} << (nest_.axes.size() - 1)) - 1) return false;  // no loop uses the tile again
  const auto is_reduce = [&](const Lane& l) { return nest_.axes[size_t(l.axis)].is_reduce; };
  const bool rows = lanes_.core || std::none_of(lanes_.begin(), lanes_.end(), is_reduce);
  return rows && tile_bytes(near_) <= most && tile_bytes(near_) + results_bytes() <= target_.l2_bytes;
}

// Transposes load along one axis and store along another. They are computed in blocks: pieces of several loaded rows are put together to
// the vectors that are stored. The next block goes on along the same rows, so that these are read as streams.

bool CpuChoice::choose_transposing(bool may_block) {
  if (nest_.total_cost < worth_tiling || target_.vector_bits == 0) return false;
  const int to = contiguous_axis(Op::STORE, -1), from = contiguous_axis(Op::LOAD, to);
  if (to < 0 || from < 0 || is_taken(to) || is_taken(from) || meets_vectors(to)) return false;
  constexpr int64_t most_rows = 16, piece_bytes = 16, most_instructions = 1024;
  const int64_t copies = piece_bytes / nest_.item_bytes, most_lanes = std::min(most_rows, target_.vector_bits / (8 * nest_.item_bytes));
  const int64_t rows = left_[size_t(to)], columns = left_[size_t(from)];
  const int64_t lanes = rows < most_lanes ? most_lanes / 2 : most_lanes;
  if (lanes < 2 || copies < 2 || rows < lanes || columns < copies) return false;
  if (!may_block && (rows % lanes != 0 || columns % copies != 0)) return false;
  if (copies * int64_t(nest_.works.size()) > most_instructions) return false;
  transposes_ = true;
  lanes_ = {{{to, lanes}}};
  tile_ = {{from, -1}, {copies, 1}};
  return true;
}

int CpuChoice::contiguous_axis(Op op, int other) const {
  for (const NestedWork& w : nest_.works)
    for (size_t i = 0; w.is_access && w.node.is(op) && i < nest_.axes.size(); ++i) {
      const auto stride = [&](int axis) { return stride_of(w.node.src(0).src(1), nest_.axes[size_t(axis)].range); };
      if (int(i) != other && stride(int(i)) == 1 && (other < 0 || std::abs(stride(other).value_or(0)) > 1)) return int(i);
    }
  return -1;
}

// Vector axes: one, or up to three of which no value depends on two, as in a normalization, whose reductions and results run over rows
// apart.

void CpuChoice::choose_lanes() {
  double best = work_with({}) * 0.8;
  for (const Lanes& lanes : lane_choices())
    if (const double w = work_with(lanes); w < best) best = w, lanes_ = lanes;
}

std::vector<Lanes> CpuChoice::lane_choices() const {
  std::vector<Lane> axes;
  for (size_t a = 0; a < nest_.axes.size(); ++a) {
    if (has(taken_, int(a)) || meets_vectors(int(a))) continue;
    for (int64_t n = std::max<int64_t>(1, target_.vector_bits / (8 * nest_.item_bytes)); n >= 4; n /= 2)
      if (n <= nest_.axes[a].size) axes.push_back({int(a), n});
  }
  std::vector<Lanes> out;
  for (size_t i = 0; i < axes.size(); ++i) {
    out.push_back({{axes[i]}});
    for (size_t k = i + 1; k < axes.size(); ++k) {
      if (meet(axes[i].axis, axes[k].axis)) continue;
      out.push_back({{axes[i], axes[k]}});
      for (size_t m = k + 1; m < axes.size(); ++m)
        if (axes[m].lanes == axes[i].lanes && axes[k].lanes == axes[i].lanes && !meet(axes[i].axis, axes[m].axis) &&
            !meet(axes[k].axis, axes[m].axis))
          out.push_back({{axes[i], axes[k], axes[m]}});
    }
  }
  for (const CoreUse& use : cores_) out.push_back({{use.n, use.k}, &use});
  return out;
}

bool CpuChoice::meet(int a, int b) const {
  return std::ranges::any_of(parts_, [&](const WorkPart& p) { return has(p.work->depends, a) && has(p.work->depends, b); });
}

bool CpuChoice::meets_vectors(int axis) const {
  for (size_t i = 0; i < nest_.axes.size(); ++i)
    if (has(vectors_, int(i)) && meet(axis, int(i))) return true;
  return false;
}

// Register tile: copies along an axis share the loads that do not depend on it and give the processor independent work.

template <class Use>
void CpuChoice::for_tiles(Use&& use) const {
  const int axes = int(nest_.axes.size());
  for (int a = 0; a < axes; ++a)
    for (int b = a; b < axes; ++b)
      for (int64_t n : tile_counts(a))
        for (int64_t m : b == a ? std::vector<int64_t>{1} : tile_counts(b)) {
          const Tile t{{a, b == a ? -1 : b}, {n, m}};
          if (fits(t)) use(t, tile_cost(t));
        }
}

double CpuChoice::choose_tile() {
  const int64_t chunks = wanted_chunks();
  Tile best_tile;
  double best = in_all(tile_cost({}), chunks);
  for_tiles([&](const Tile& t, double loops) {
    tile_ = t;
    if (const double c = in_all(loops, chunks); c < best * 0.999) best = c, best_tile = t;
  });
  tile_ = best_tile;
  return best;
}

std::vector<int64_t> CpuChoice::tile_counts(int axis) const {
  std::vector<int64_t> out{1};
  if (nest_.axes[size_t(axis)].is_reduce || has(taken_, axis)) return out;
  const int64_t most = nest_.reduces ? 8 : 4;
  if (keeps_terms(axis)) return out;
  bool kept = false;
  for (size_t i = 0; i < nest_.axes.size(); ++i) kept = kept || keeps_terms(int(i));
  const bool any = (may_block_ && !kept) || may_mask(axis);  // blocks that overlap compute rows twice, which may not use terms in registers
  for (int64_t n = 2; n <= std::min(most, left_[size_t(axis)]); ++n)
    if (any || left_[size_t(axis)] % n == 0) out.push_back(n);
  const int64_t whole = left_[size_t(axis)];
  if (whole > most && (has(nest_.chosen, axis) || (is_joined() && whole <= most_kept_results))) out.push_back(whole);
  return out;
}

bool CpuChoice::may_mask(int axis) const {
  return (near_ || computed_) && std::none_of(nest_.works.begin(), nest_.works.end(), [&](const NestedWork& w) {
           return is_reduced(w) && !is_staged(w) && !is_in_fill(w) && has(w.depends, axis);
         });
}

bool CpuChoice::keeps_terms(int axis) const {
  return has(nest_.repeated, axis) && nest_.axes[size_t(axis)].size * nest_.item_bytes <= most_kept_bytes(target_);
}

}  // namespace tinygrad::codegen
