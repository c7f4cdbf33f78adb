#include "codegen/lower/pipeline_stages.h"

#include <algorithm>
#include <ranges>

#include "codegen/kernel_axes.h"
#include "codegen/lower/stage_memory.h"
#include "codegen/rebuild.h"
#include "shape/ranges.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

bool contains(std::span<const UOp> list, const UOp& u) { return std::find(list.begin(), list.end(), u) != list.end(); }

bool is_lane(const UOp& r) { return r.arg_as<RangeArg>().kind == AxisKind::lane; }

bool is_around(const UOp& a, const UOp& b) {
  const auto &x = a.arg_as<RangeArg>(), &y = b.arg_as<RangeArg>();
  return std::pair(x.order, x.id) < std::pair(y.order, y.id);
}

bool is_filled_ahead(const UOp& u) { return u.is(Op::STAGE) && u.arg_as<StageArg>().depth >= 2; }

/// A loop, and the STAGEs whose tiles are filled ahead in it.
struct Ahead {
  UOp end;
  UOps outer, inner, lanes;  ///< other ranges that the END closes
  UOp loop;
  std::vector<UOp> stages;
  int64_t depth = 0;
};

class Pipelining {
 public:
  Pipelining(const UOp& sink, const Target& target)
      : target_(target), next_range_(next_range_id(sink)), next_buffer_(next_memory_id(sink)), items_(item_ranges(sink)) {}

  UOp run(const UOp& sink) {
    return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
      UOp out = u.with_src(sources);
      if (!out.is(Op::END)) return out;
      const Ahead ahead = find(out);
      return ahead.stages.empty() ? out : pipelined(ahead);
    });
  }

 private:
  /// The innermost loop of the END that moves STAGEs of depth > 1, with these STAGEs.
  Ahead find(const UOp& end) const {
    // Vector axes are not loops: they end with the iteration.
    UOps closed, lanes;
    for (const UOp& r : closed_ranges(end)) (is_lane(r) ? lanes : closed).push_back(r);
    std::sort(closed.begin(), closed.end(), is_around);
    const UOps around = ranges_of(end);
    Ahead out{.end = end, .outer = {}, .inner = {}, .lanes = {}, .loop = {}, .stages = {}};
    for (const UOp& u : toposort(end.src(0))) {
      if (!is_filled_ahead(u)) continue;
      const size_t at = innermost(u, closed, around);
      if (at == closed.size() || (out.loop && out.loop != closed[at])) continue;
      const int64_t depth = u.arg_as<StageArg>().depth;
      if (constant_size(closed[at]) <= depth) continue;  // there would be no steady state
      out.loop = closed[at];
      out.outer = UOps(closed.begin(), closed.begin() + at);
      out.inner = UOps(closed.begin() + at + 1, closed.end());
      out.lanes = lanes;
      out.stages.push_back(u);
      out.depth = std::max(out.depth, depth);
    }
    if (out.loop && constant_size(out.loop) <= out.depth) out.stages.clear();
    return out;
  }

  /// The innermost closed loop that moves the STAGE; none if a loop further inside moves it too.
  size_t innermost(const UOp& stage, const UOps& closed, const UOps& around) const {
    size_t at = closed.size();
    for (const UOp& r : ranges_of(stage)) {
      const size_t i = size_t(std::find(closed.begin(), closed.end(), r) - closed.begin());
      if (i < closed.size())
        at = at == closed.size() ? i : std::max(at, i);
      else if (!contains(around, r) && !contains(items_, r) && !is_lane(r))
        return closed.size();
    }
    return at;
  }

  /// A copy of the END's effect for one iteration of the prologue or epilogue, or for the steady state.
  struct Copy {
    UOp at;                   ///< instead of the loop's index
    UOp behind;               ///< what comes before it, instead of the loop
    std::vector<UOp> states;  ///< of the memory of each STAGE
    bool own_loops;           ///< its inner loops are new ones, as another copy has the old ones
  };

  UOp copied(const Ahead& a, const std::vector<StageMemory>& memories, const Copy& c) {
    const UOp body = a.inner.empty() ? a.end.src(0) : end(a.end.src(0), a.inner);
    NodeMap<UOp> fresh;
    std::vector<UOp> held;
    if (c.own_loops) {
      // Outer loops come first, since a loop inside of a new loop is a new one as well.
      UOps others{a.loop};
      const std::vector<UOp> nodes = toposort(body);
      for (const UOp& u : std::views::reverse(nodes))
        if (u.is(Op::END) && is_open_over(u, others))
          for (const UOp& r : closed_ranges(u))
            if (own_range(r, fresh, held)) others.push_back(r);
    }
    const UOp copy = floor_mod(c.at, a.depth);
    return rebuild(body, [&](const UOp& u, const UOps& sources) -> UOp {
      if (u == a.loop) return c.at;
      if (const UOp* f = fresh.find(u)) return *f;
      if (u.is(Op::INDEX)) {
        const auto stage = std::find(a.stages.begin(), a.stages.end(), u.src(0));
        const auto i = size_t(stage - a.stages.begin());
        if (stage != a.stages.end()) return memories[i].read(c.states[i], copy, sources[1]);
      }
      if (!u.is(Op::AFTER) && !u.is(Op::BARRIER) && !u.is(Op::WAIT)) return u.with_src(sources);
      UOps ordered = sources;
      for (size_t i = 0; i < ordered.size(); ++i)
        if (u.src(i) == a.loop) ordered[i] = c.behind;
      return u.with_src(ordered);
    });
  }

  bool own_range(const UOp& r, NodeMap<UOp>& fresh, std::vector<UOp>& held) {
    if (contains(items_, r) || is_lane(r) || fresh.contains(r)) return false;
    RangeArg arg = r.arg_as<RangeArg>();
    arg.id = next_range_++;
    held.push_back(range(r.src(0), arg));
    fresh[r] = held.back();
    return true;
  }

  /// Fills the tile of the iteration `at`.
  UOp filled(const Ahead& a, size_t stage, const StageMemory& memory, const UOp& at, const UOp& state) {
    NodeMap<UOp> map;
    map[a.loop] = at;
    return memory.fill(substitute(a.stages[stage].src(0), map), floor_mod(at, a.depth), state, next_range_);
  }

  UOp pipelined(const Ahead& a) {
    const int64_t ahead = a.depth - 1, steady = constant_size(a.loop) - ahead;
    const UOp loop(Op::RANGE, DType::index, {index_const(steady)}, a.loop.arg());
    std::vector<StageMemory> memories;
    for (const UOp& stage : a.stages) memories.emplace_back(stage, items_, target_, next_buffer_++, a.depth);
    Copy main{.at = loop, .behind = loop, .states = filled_ahead(a, memories, loop), .own_loops = false};
    Fills fills;
    for (size_t s = 0; s < a.stages.size(); ++s) fills.add(memories[s], filled(a, s, memories[s], loop + ahead, main.states[s]));
    UOps effects = fills.begun();
    effects.push_back(copied(a, memories, main));
    effects.append(fills.others.begin(), fills.others.end());
    UOps closed = a.lanes;
    closed.insert(closed.begin(), loop);
    UOp done = end(group(effects), closed);
    std::vector<UOp> states;
    for (const StageMemory& m : memories) states.push_back(m.after(std::vector{m.is_fetched() ? wait(std::vector{done}, 0) : done}, {}));
    for (int64_t i = steady; i < steady + ahead; ++i) {
      done = copied(a, memories, {.at = index_const(i), .behind = done, .states = states, .own_loops = true});
      if (!a.lanes.empty()) done = end(done, a.lanes);
    }
    return a.outer.empty() ? done : end(done, a.outer);
  }

  /// The fills of one iteration's tiles. FETCHes are one set of asynchronous copies, which begins before the iteration's own work.
  struct Fills {
    UOps fetched, others;
    void add(const StageMemory& memory, const UOp& fill) { (memory.is_fetched() ? fetched : others).push_back(fill); }
    UOps begun() const { return fetched.empty() ? UOps() : UOps(1, commit(group(fetched))); }
  };

  /// The memories behind the prologue, inside of the loop. An iteration waits for all sets of copies but the last depth - 2.
  std::vector<UOp> filled_ahead(const Ahead& a, const std::vector<StageMemory>& memories, const UOp& loop) {
    // The loop overwrites what the prologue filled: each time the loop begins, the prologue runs, whatever its values depend on.
    UOps around = a.outer;
    for (const UOp& r : ranges_of(a.end))
      if (!contains(items_, r) && !is_lane(r)) around.push_back(r);
    UOp begun;  // the set before
    std::vector<UOps> prologues(memories.size());
    for (int64_t i = 0; i < a.depth - 1; ++i) {
      Fills fills;
      for (size_t s = 0; s < memories.size(); ++s) {
        UOp state = memories[s].after({}, around);
        if (memories[s].is_fetched() && begun) state = after(state, std::span(&begun, 1));
        prologues[s].push_back(filled(a, s, memories[s], index_const(i), state));
        fills.add(memories[s], prologues[s].back());
      }
      if (!fills.fetched.empty()) begun = fills.begun()[0];
    }
    std::vector<UOp> states;
    for (size_t s = 0; s < memories.size(); ++s) {
      const StageMemory& m = memories[s];
      if (!m.is_fetched()) {
        states.push_back(m.after(prologues[s], std::span(&loop, 1)));
        continue;
      }
      const UOp waited = wait(std::vector{begun, loop}, int32_t(a.depth - 2));
      states.push_back(after(m.memory(), std::vector{UOp(Op::BARRIER, DType::void_, {waited}), loop}));
    }
    return states;
  }

  const Target& target_;
  int32_t next_range_;
  uint64_t next_buffer_;
  std::vector<UOp> items_;
};

}  // namespace

UOp pipeline_stages(const UOp& sink, const Target& target) {
  const bool any = std::ranges::any_of(borrowed_toposort(sink), [](const UOp* u) { return is_filled_ahead(*u); });
  return any ? Pipelining(sink, target).run(sink) : sink;
}

}  // namespace tinygrad::codegen
