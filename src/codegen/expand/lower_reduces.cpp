#include "codegen/expand/lower_reduces.h"

#include <algorithm>
#include <map>
#include <optional>

#include "codegen/opt/kernel_axes.h"
#include "codegen/reduce_op.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

bool is_lane(const UOp& range) { return range.arg_as<RangeArg>().kind == AxisKind::lane; }

/// REDUCEs that share one loop.
struct Loop {
  UOps ranges;  ///< what the loop runs over, lanes left out
  UOps open;    ///< what it is inside of
  std::vector<UOp> reduces;
};

class Lowering {
 public:
  explicit Lowering(const UOp& sink) : sink_(sink), next_range_(next_range_id(sink)) {
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

 private:
  void lower_level(const std::vector<UOp>& reduces) {
    const std::vector<UOp> rebuilt = substitute_below(reduces);
    std::vector<Loop> loops;
    std::vector<std::vector<size_t>> members;
    for (size_t i = 0; i < reduces.size(); ++i) {
      UOps ranges;
      for (const UOp& r : closed_ranges(rebuilt[i]))
        if (!is_lane(r)) ranges.push_back(r);
      const UOps open = ranges_of(rebuilt[i]);
      size_t at = 0;
      while (at < loops.size() && !(loops[at].ranges == ranges && loops[at].open == open)) ++at;
      if (at == loops.size()) {
        loops.push_back({ranges, open, {}});
        members.emplace_back();
      }
      loops[at].reduces.push_back(rebuilt[i]);
      members[at].push_back(i);
    }
    for (size_t i = 0; i < loops.size(); ++i) {
      const std::vector<UOps> values = lower_loop(loops[i]);
      for (size_t k = 0; k < values.size(); ++k) set_result(reduces[members[i][k]], values[k]);
    }
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
    for (UOp& r : loop.ranges)
      if (!used_.insert(r)) r = fresh[r] = new_range_like(r);
    if (fresh.size() == 0) return;
    own_inner_loops(loop, fresh);
    for (UOp& reduce : loop.reduces) reduce = rename_open(reduce, fresh);
  }

  UOp new_range_like(const UOp& r) {
    RangeArg arg = r.arg_as<RangeArg>();
    arg.id = next_range_++;
    held_.push_back(range(r.src(0), arg));
    used_.insert(held_.back());
    return held_.back();
  }

  /// Loops inside that run once for each step of the renamed ones are loops of their own too, with accumulators of their own.
  void own_inner_loops(const Loop& loop, NodeMap<UOp>& fresh) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const UOp& u : toposort_where(loop.reduces, [&](const UOp& v) { return is_renamed(v, loop.reduces, fresh); })) {
        if (!u.is(Op::END) || !is_renamed(u, loop.reduces, fresh)) continue;
        for (const UOp& r : closed_ranges(u)) {
          if (fresh.contains(r)) continue;
          fresh[r] = new_range_like(r);
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

  /// The carried values of each REDUCE of the loop after it.
  std::vector<UOps> lower_loop(Loop& loop) {
    std::vector<UOps> out;
    if (loop.ranges.empty()) {
      for (const UOp& reduce : loop.reduces) out.push_back(over_lanes(reduce, reduced_values(reduce), true));
      return out;
    }
    own_ranges(loop);
    UOps steps;
    std::vector<UOps> places;
    for (const UOp& reduce : loop.reduces) places.push_back(accumulate(reduce, loop, steps));
    const UOp done = end(group(steps), loop.ranges);
    for (size_t i = 0; i < places.size(); ++i) {
      UOps values;
      for (const UOp& place : places[i]) values.push_back(load(index(after(place.src(0), std::span(&done, 1)), place.src(1))));
      out.push_back(over_lanes(loop.reduces[i], values, false));
    }
    return out;
  }

  /// Makes the accumulators of one REDUCE and the stores that change them; the INDEX of each, on memory without ordering.
  UOps accumulate(const UOp& reduce, const Loop& loop, UOps& steps) {
    const UOps x = reduced_values(reduce), identities = reduce_identities(reduce);
    const std::optional<UOp> lane = lane_of(reduce);
    const UOp at = lane ? *lane : index_const(0);
    UOps places, carried;
    for (const UOp& identity : identities) {
      const UOp memory = buffer(identity.dtype(), {.id = next_buffer_++, .size = lane ? constant_size(*lane) : 1, .scope = Scope::reg});
      UOps inside{store(index(after(memory, loop.open), at), identity)};
      inside.append(loop.ranges.begin(), loop.ranges.end());
      places.push_back(index(after(memory, inside), at));
      carried.push_back(load(places.back()));
    }
    const UOps next = reduce_step(reduce, carried, x);
    for (size_t i = 0; i < next.size(); ++i) steps.push_back(store(places[i], next[i]));
    for (UOp& place : places) place = index(place.src(0).src(0), at);
    return places;
  }

  static std::optional<UOp> lane_of(const UOp& reduce) {
    for (const UOp& r : closed_ranges(reduce))
      if (is_lane(r)) return r;
    for (const UOp& r : ranges_of(reduce))
      if (is_lane(r)) return r;
    return std::nullopt;
  }

  /// Where the REDUCE is over lanes too: a REDUCE over them of what each lane has. `whole` says that these are values still to be stepped
  /// over, otherwise they are partial results to be merged.
  static UOps over_lanes(const UOp& reduce, const UOps& values, bool whole) {
    const auto closed = closed_ranges(reduce);
    const auto lane = std::find_if(closed.begin(), closed.end(), is_lane);
    if (lane == closed.end()) return values;
    const std::span<const UOp> lanes(&*lane, 1);
    return whole ? reduce_results(make_reduce(reduce, values, lanes)) : reduce_partials(reduce, values, lanes);
  }

  const UOp sink_;
  int32_t next_range_;
  uint64_t next_buffer_ = 0;
  std::vector<std::vector<UOp>> levels_;
  NodeMap<std::vector<UOp>> elements_;
  NodeMap<UOp> done_;
  NodeSet used_;
  std::vector<UOp> held_;  // that maps by identity stay valid
};

}  // namespace

UOp lower_reduces(const UOp& sink) { return Lowering(sink).run(); }

}  // namespace tinygrad::codegen
