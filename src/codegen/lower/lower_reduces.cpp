#include "codegen/lower/lower_reduces.h"

#include <algorithm>
#include <map>
#include <optional>

#include "codegen/decomp/long_ops.h"
#include "codegen/kernel_axes.h"
#include "codegen/lower/reduce_steps.h"
#include "codegen/reduce_op.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

AxisKind kind_of(const UOp& range) { return range.arg_as<RangeArg>().kind; }
int32_t order_of(const UOp& range) { return range.arg_as<RangeArg>().order; }
bool is_lane(const UOp& range) { return kind_of(range) == AxisKind::lane; }
bool is_outer(const UOp& range) { return kind_of(range) == AxisKind::outer; }
bool goes_around(const UOp& outer, const UOp& loop) { return kind_of(loop) == AxisKind::loop && order_of(loop) > order_of(outer); }

bool has(std::span<const UOp> ranges, const UOp& range) { return std::find(ranges.begin(), ranges.end(), range) != ranges.end(); }

/// REDUCEs that share one loop.
struct Loop {
  UOps ranges;   ///< the loop's ranges, lanes left out
  UOps open;     ///< the loops around it
  UOps results;  ///< loops over results that it goes around, outermost first
  UOps inner;    ///< its own copies of `results`, inside of it
  std::vector<UOp> reduces;
};

/// Stores that change accumulators, by the number of inner loops around them.
using Steps = std::vector<UOps>;

UOps without_lanes(UOps ranges) {
  ranges.erase(std::remove_if(ranges.begin(), ranges.end(), is_lane), ranges.end());
  return ranges;
}

class Lowering {
 public:
  Lowering(const UOp& sink, const Target& target) : sink_(sink), target_(target), next_range_(next_range_id(sink)) {
    NodeMap<int> depths;
    for (const UOp& u : toposort(sink)) {
      int depth = 0;
      for (const UOp& s : u.src())
        if (const int* d = depths.find(s)) depth = std::max(depth, *d);
      depths[u] = depth + u.is(Op::REDUCE);
      if (u.is(Op::REDUCE)) {
        if (size_t(depth) >= levels_.size()) levels_.resize(size_t(depth) + 1);
        levels_[size_t(depth)].push_back(u);
      }
      if (u.is(Op::GETTUPLE) && is_general_reduce(u.src(0))) elements_[u.src(0)].push_back(u);
      if (u.is(Op::BUFFER)) next_buffer_ = std::max(next_buffer_, u.arg_as<BufferArg>().id + 1);
      if (u.is(Op::END))
        for (const UOp& r : closed_ranges(u)) used_.insert(r);
    }
  }

  /// A REDUCE has its longest chain of REDUCEs below it as level. Those of one level never depend on each other, so sharing a loop
  /// among them cannot make a cycle.
  UOp run() {
    for (const auto& level : levels_) lower_level(level);
    return substitute(sink_, done_);
  }

  /// Lowers `tiled` alone, with an element for each point of the tile. What comes after is a loop over it.
  UOp run_tiled(const std::vector<UOp>& tiled, const UOps& tile) {
    tile_ = tile;
    for (auto level : levels_) {
      std::erase_if(level, [&](const UOp& u) { return !has(tiled, u); });
      lower_level(level);
    }
    return substitute(substitute(sink_, done_), tile_loops());
  }

 private:
  /// Innermost of all.
  NodeMap<UOp> tile_loops() const {
    int32_t order = 0;
    for (const UOp& u : toposort(sink_))
      if (u.is(Op::RANGE)) order = std::max(order, order_of(u) + 1);
    NodeMap<UOp> out;
    for (const UOp& r : tile_) out[r] = range(r.src(0), {.id = r.arg_as<RangeArg>().id, .kind = AxisKind::loop, .order = order});
    return out;
  }

  void lower_level(const std::vector<UOp>& reduces) {
    const std::vector<UOp> rebuilt = substitute_below(reduces);
    std::vector<Loop> loops;
    std::vector<std::vector<size_t>> members;
    for (size_t i = 0; i < reduces.size(); ++i) {
      const UOps ranges = without_lanes(UOps(closed_ranges(rebuilt[i])));
      // REDUCEs that differ only in vector axes, or in loops that the loop goes around, may share the loop.
      const auto [open, results] = parted(without_lanes(ranges_of(rebuilt[i])), ranges);
      size_t at = 0;
      while (at < loops.size() && !(loops[at].ranges == ranges && loops[at].open == open)) ++at;
      if (at == loops.size()) {
        loops.push_back({.ranges = ranges, .open = open, .results = {}, .inner = {}, .reduces = {}});
        members.emplace_back();
      }
      add_results(loops[at], results);
      loops[at].reduces.push_back(rebuilt[i]);
      members[at].push_back(i);
    }
    for (size_t i = 0; i < loops.size(); ++i) {
      const std::vector<UOps> values = lower_loop(loops[i]);
      for (size_t k = 0; k < values.size(); ++k) set_result(reduces[members[i][k]], values[k]);
    }
  }

  /// Of the open loops, those around a loop over `ranges`, and those that it goes around.
  std::pair<UOps, UOps> parted(const UOps& open, const UOps& ranges) const {
    const auto outer = std::find_if(ranges.begin(), ranges.end(), is_outer);
    if (outer == ranges.end()) return {open, {}};
    std::pair<UOps, UOps> out;
    for (const UOp& r : open) (goes_around(*outer, r) || has(tile_, r) ? out.second : out.first).push_back(r);
    return out;
  }

  static void add_results(Loop& loop, const UOps& results) {
    for (const UOp& r : results)
      if (!has(loop.results, r)) loop.results.push_back(r);
    const auto place = [](const UOp& r) { return std::pair(kind_of(r) == AxisKind::upcast, order_of(r)); };
    std::sort(loop.results.begin(), loop.results.end(), [&](const UOp& a, const UOp& b) { return place(a) < place(b); });
  }

  std::vector<UOp> substitute_below(const std::vector<UOp>& reduces) const { return substitute(reduces, done_); }

  void set_result(const UOp& reduce, const UOps& values) {
    if (!is_general_reduce(reduce)) {
      done_[reduce] = values[0];
      return;
    }
    if (const auto* users = elements_.find(reduce))
      for (const UOp& u : *users) done_[u] = values[size_t(u.arg_as<TupleArg>().index)];
  }

  /// Ranges that another loop runs over are replaced by new ones, in this loop's own nodes only.
  void own_ranges(Loop& loop) {
    NodeMap<UOp> fresh;
    for (const UOp& r : loop.ranges) {
      held_.push_back(r);
      if (!used_.insert(r)) fresh[r] = new_range_like(r);
    }
    if (fresh.size() == 0) return;
    own_inner_loops(loop, loop.ranges, fresh);
    for (UOp& r : loop.ranges)
      if (const UOp* f = fresh.find(r)) r = *f;
    for (UOp& reduce : loop.reduces) reduce = rename_open(reduce, fresh);
  }

  UOp new_range_like(const UOp& r) {
    RangeArg arg = r.arg_as<RangeArg>();
    arg.id = next_range_++;
    held_.push_back(range(r.src(0), arg));
    used_.insert(held_.back());
    return held_.back();
  }

  /// Loops inside of renamed ones are renamed too, and get accumulators of their own.
  void own_inner_loops(const Loop& loop, UOps renamed, NodeMap<UOp>& fresh) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const UOp& u : toposort_where(loop.reduces, [&](const UOp& v) { return is_renamed(v, loop.reduces, fresh); })) {
        if (!u.is(Op::END) || !is_renamed(u, loop.reduces, fresh)) continue;
        for (const UOp& r : closed_ranges(u)) {
          if (fresh.contains(r) || is_lane(r)) continue;  // a vector axis is no loop: it stays what it is
          fresh[r] = new_range_like(r);
          renamed.push_back(r);
          changed = true;
        }
        for (const UOp& memory : accumulators(u)) {
          if (fresh.contains(memory)) continue;
          BufferArg arg = memory.arg_as<BufferArg>();
          arg.id = next_buffer_++;
          held_.push_back(memory.with_arg(arg));
          fresh[memory] = held_.back();
        }
      }
    }
    rename_sizes(renamed, fresh);
  }

  /// Renamed loops whose bounds depend on renamed loops get new bounds.
  void rename_sizes(const UOps& renamed, NodeMap<UOp>& fresh) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const UOp& r : renamed) {
        UOp* made = fresh.find(r);
        const UOp size = made ? substitute(UOp(r.src(0)), fresh) : UOp();
        if (!made || size == made->src(0)) continue;
        held_.push_back(*made = made->with_src(UOps{size}));
        used_.insert(*made);
        changed = true;
      }
    }
  }

  /// The memory that an inner loop's steps store to.
  static std::vector<UOp> accumulators(const UOp& end) {
    const UOp& body = end.src(0);
    std::vector<UOp> out;
    for (const UOp& step : body.is(Op::GROUP) ? body.src() : std::span(&body, 1)) {
      UOp memory = step.src(0).src(0);
      while (memory.is(Op::AFTER)) memory = memory.src(0);
      if (memory.is(Op::BUFFER)) out.push_back(memory);
    }
    return out;
  }

  static bool is_renamed(const UOp& u, const std::vector<UOp>& reduces, const NodeMap<UOp>& fresh) {
    if (std::find(reduces.begin(), reduces.end(), u) != reduces.end()) return true;
    for (const UOp& r : ranges_of(u))
      if (fresh.contains(r)) return true;
    return false;
  }

  static UOp rename_open(const UOp& reduce, const NodeMap<UOp>& fresh) {
    const std::vector<UOp> self{reduce};
    NodeMap<UOp> done;
    for (const UOp& u : toposort_where(self, [&](const UOp& v) { return is_renamed(v, self, fresh); })) {
      if (const UOp* f = fresh.find(u)) {
        done[u] = *f;
        continue;
      }
      UOps sources(u.src().begin(), u.src().end());
      if (is_renamed(u, self, fresh))
        for (UOp& s : sources)
          if (const UOp* d = done.find(s)) s = *d;
      done[u] = u.with_src(sources);
    }
    return done[reduce];
  }

  /// Loops over results that the loop goes around run twice: copies of them inside of it, and the loops themselves behind it, over the
  /// results.
  void own_results(Loop& loop) {
    if (loop.results.empty()) return;
    NodeMap<UOp> fresh;
    for (const UOp& r : loop.results) fresh[r] = new_range_like(r);
    own_inner_loops(loop, loop.results, fresh);
    for (const UOp& r : loop.results) loop.inner.push_back(fresh[r]);
    for (UOp& reduce : loop.reduces) reduce = rename_open(reduce, fresh);
  }

  /// Lowers a loop; the carried values of each of its REDUCEs behind it.
  std::vector<UOps> lower_loop(Loop& loop) {
    std::vector<UOps> out;
    if (loop.ranges.empty()) {
      for (const UOp& reduce : loop.reduces) out.push_back(over_lanes(reduce, reduced_values(reduce), true));
      return out;
    }
    own_ranges(loop);
    const std::vector<UOp> reduces = loop.reduces;
    own_results(loop);
    Steps steps(loop.inner.size() + 1);
    std::vector<UOps> places;
    std::vector<Accumulator> alone;
    for (const UOp& reduce : loop.reduces) places.push_back(accumulate(reduce, loop, alone, steps));
    const UOp done = close(loop, steps);
    NodeMap<UOp> results;
    for (size_t i = 0; i < loop.inner.size(); ++i) results[loop.inner[i]] = loop.results[i];
    for (size_t i = 0; i < places.size(); ++i) {
      UOps values;
      for (const UOp& place : places[i])
        values.push_back(load(index(after(base_of(place), std::span(&done, 1)), substitute(place.src(1), results))));
      out.push_back(over_lanes(reduces[i], values, false));
    }
    return out;
  }

  /// Closes the loop, and with it its lanes, so that a result without lanes gets none from the others.
  static UOp close(const Loop& loop, Steps& steps) {
    for (size_t i = loop.inner.size(); i > 0; --i) {
      if (steps[i].empty()) continue;
      const size_t inside = i;
      while (i > 1 && steps[i - 1].empty()) --i;
      steps[i - 1].push_back(end(group(steps[inside]), std::span(loop.inner).subspan(i - 1, inside - i + 1)));
    }
    UOps closed = loop.ranges;
    for (const UOp& r : ranges_of(group(steps[0])))
      if (is_lane(r)) closed.push_back(r);
    return end(group(steps[0]), closed);
  }

  static UOp base_of(const UOp& place) { return place.src(0).src(0); }

  /// Makes the accumulators of one REDUCE and the stores that change them; the INDEX of each. Accumulators that start and step alike, as
  /// the maxima of several sums over the same values, are one.
  UOps accumulate(const UOp& reduce, const Loop& loop, std::vector<Accumulator>& alone, Steps& steps) {
    const ReduceStep step = step_of(reduce);
    const std::vector<bool> vectors = needs_lanes(reduce, step);
    const std::vector<size_t> depths = inner_depths(loop, step);
    UOps places;
    std::vector<bool> made;
    for (size_t i = 0; i < step.next.size(); ++i) {
      const std::optional<Accumulator> key = is_general_reduce(reduce) ? stepped_alone(step, i) : std::nullopt;
      const auto known = std::find_if(alone.begin(), alone.end(), [&](const Accumulator& a) {
        return key && a.next == key->next && a.identity == key->identity && a.values == key->values;
      });
      made.push_back(known == alone.end());
      places.push_back(made.back() ? new_accumulator(reduce, loop, step.identities[i], vectors[i], depths[i]) : known->place);
      if (key && made.back()) {
        alone.push_back(*key);
        alone.back().place = places.back();
      }
    }
    NodeMap<UOp> arguments;
    for (size_t i = 0; i < places.size(); ++i) arguments[step.carried[i]] = load(places[i]);
    for (size_t i = 0; i < step.values.size(); ++i) arguments[step.taken[i]] = step.values[i];
    const std::vector<UOp> next = substitute(step.next, arguments);
    for (size_t i = 0; i < places.size(); ++i)
      if (made[i]) steps[depths[i]].push_back(store(places[i], kept_where_nothing_is_added(arguments[step.carried[i]], next[i])));
    return places;
  }

  /// Which carried values differ along the vector axis: all if it is reduced, else those that depend on it.
  static std::vector<bool> needs_lanes(const UOp& reduce, const ReduceStep& step) {
    const auto closed = closed_ranges(reduce);
    std::vector<bool> out(step.next.size(), !is_general_reduce(reduce) || std::any_of(closed.begin(), closed.end(), is_lane));
    if (const std::optional<UOp> lane = lane_of(reduce)) add_dependent(step, std::span(&*lane, 1), out);
    return out;
  }

  /// The number of inner loops along which each carried value has elements.
  static std::vector<size_t> inner_depths(const Loop& loop, const ReduceStep& step) {
    std::vector<size_t> out(step.next.size(), 0);
    for (size_t depth = 1; depth <= loop.inner.size(); ++depth) {
      std::vector<bool> depends(step.next.size(), false);
      add_dependent(step, std::span(&loop.inner[depth - 1], 1), depends);
      for (size_t i = 0; i < out.size(); ++i)
        if (depends[i]) out[i] = depth;
    }
    return out;
  }

  /// The INDEX of memory that holds `identity` when the loop starts; of an element for each iteration of the first `depth` inner loops.
  UOp new_accumulator(const UOp& reduce, const Loop& loop, const UOp& identity, bool vector, size_t depth) {
    const std::optional<UOp> lane = vector ? lane_of(reduce) : std::nullopt;
    const std::span<const UOp> inner(loop.inner.begin(), depth);
    int64_t size = lane ? constant_size(*lane) : 1;
    UOps outside, fill;
    for (const UOp& r : ranges_of(reduce))
      if (std::find(loop.inner.begin(), loop.inner.end(), r) == loop.inner.end() && (vector || !is_lane(r))) outside.push_back(r);
    for (const UOp& r : inner) {
      size *= constant_size(r);
      fill.push_back(new_range_like(r));
    }
    const UOp memory = new_memory(identity.dtype(), size);
    UOp filled = store(index(after(memory, outside), place_in(fill, lane)), identity);
    if (!fill.empty()) filled = end(filled, fill);
    UOps inside{filled};
    inside.append(loop.ranges.begin(), loop.ranges.end());
    return index(after(memory, inside), place_in(inner, lane));
  }

  /// Row-major, the vector axis last.
  static UOp place_in(std::span<const UOp> loops, const std::optional<UOp>& lane) {
    UOp at;
    for (const UOp& r : loops) at = at ? at * constant_size(r) + r : r;
    if (lane) at = at ? at * constant_size(*lane) + *lane : *lane;
    return at ? at : index_const(0);
  }

  UOp new_memory(DType dtype, int64_t size) { return buffer(dtype, {.id = next_buffer_++, .size = size, .scope = Scope::reg}); }

  static std::optional<UOp> lane_of(const UOp& reduce) {
    for (const UOp& r : closed_ranges(reduce))
      if (is_lane(r)) return r;
    for (const UOp& r : ranges_of(reduce))
      if (is_lane(r)) return r;
    return std::nullopt;
  }

  /// Where the REDUCE is over lanes too: what all lanes have together. `whole` says that these are values still to be stepped over,
  /// otherwise they are partial results to be merged.
  UOps over_lanes(const UOp& reduce, UOps values, bool whole) {
    if (whole && is_general_reduce(reduce)) values = reduce_step(reduce, reduce_identities(reduce), values);
    const auto closed = closed_ranges(reduce);
    const auto lane = std::find_if(closed.begin(), closed.end(), is_lane);
    if (lane == closed.end()) return values;
    const bool by_words = is_long(reduce.dtype()) && !target_.has_int64();
    if (is_general_reduce(reduce) || by_words) return merge_lanes(reduce, std::move(values), *lane);
    const std::span<const UOp> lanes(&*lane, 1);
    return whole ? reduce_results(make_reduce(reduce, values, lanes)) : reduce_partials(reduce, values, lanes);
  }

  /// Merges halves of vectors until one lane is left, through memory of half the size each time: what merge does to vectors of any width
  /// is then written like everything else.
  UOps merge_lanes(const UOp& reduce, UOps values, UOp lane) {
    const UOps open = ranges_of(reduce);
    for (int64_t n = constant_size(lane); n > 1; n /= 2) {
      UOps memories, stores;
      for (const UOp& v : values) {
        memories.push_back(new_memory(v.dtype(), n));
        stores.push_back(store(index(after(memories.back(), open), lane), v));
      }
      const UOp done = end(group(stores), std::span(&lane, 1));
      for (UOp& m : memories) m = after(m, std::span(&done, 1));
      held_.push_back(lane);
      RangeArg half = lane.arg_as<RangeArg>();
      half.id = next_range_++;
      lane = n == 2 ? index_const(0) : range(index_const(n / 2), half);
      values = merge_partials(reduce, loads(memories, lane), loads(memories, n == 2 ? index_const(1) : lane + n / 2));
    }
    return values;
  }

  static UOps loads(const UOps& memories, const UOp& at) {
    UOps out;
    for (const UOp& m : memories) out.push_back(load(index(m, at)));
    return out;
  }

  const UOp sink_;
  const Target& target_;
  UOps tile_;
  int32_t next_range_;
  uint64_t next_buffer_ = 0;
  std::vector<std::vector<UOp>> levels_;
  NodeMap<std::vector<UOp>> elements_;
  NodeMap<UOp> done_;
  NodeSet used_;
  std::vector<UOp> held_;  // that maps by identity stay valid
};

UOps upcast_of(const UOp& u) {
  UOps out;
  for (const UOp& r : ranges_of(u))
    if (kind_of(r) == AxisKind::upcast) out.push_back(r);
  return out;
}

/// True for a REDUCE that carries one value, which is in memory as the loop goes around others.
bool is_reduced_around_loops(const UOp& reduce) {
  if (is_general_reduce(reduce)) return false;
  const auto closed = closed_ranges(reduce);
  const auto outer = std::find_if(closed.begin(), closed.end(), is_outer);
  if (outer == closed.end()) return false;
  const auto open = ranges_of(reduce);
  return std::any_of(open.begin(), open.end(), [&](const UOp& r) { return goes_around(*outer, r); });
}

}  // namespace

UOp lower_tiled_reduces(const UOp& sink, const Target& target) {
  std::vector<UOp> tiled;
  for (const UOp& u : toposort_where(std::span(&sink, 1), [](const UOp& v) { return !v.is(Op::REDUCE); }))
    if (u.is(Op::REDUCE) && !upcast_of(u).empty()) tiled.push_back(u);
  const bool alike =
      std::ranges::all_of(tiled, [&](const UOp& u) { return is_reduced_around_loops(u) && upcast_of(u) == upcast_of(tiled[0]); });
  return tiled.empty() || !alike ? sink : Lowering(sink, target).run_tiled(tiled, upcast_of(tiled[0]));
}

UOp lower_reduces(const UOp& sink, const Target& target) { return Lowering(sink, target).run(); }

}  // namespace tinygrad::codegen
