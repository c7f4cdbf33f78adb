#include "codegen/lower/peel_ends.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/kernel_axes.h"
#include "codegen/rebuild.h"
#include "codegen/simplify.h"
#include "codegen/split_range.h"
#include "kernel/accessed_memory.h"
#include "shape/ranges.h"
#include "target/costs.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr double most_weight = 1200;  // of all copies of a body, in operations of a target that has few

const RangeArg& arg_of(const UOp& range) { return range.arg_as<RangeArg>(); }
bool is_lane(const UOp& range) { return arg_of(range).kind == AxisKind::lane; }

/// The innermost loop that an END closes, but for the one that threads share out; null if it has no known number of iterations, or is no
/// loop of the kernel's own.
UOp innermost_loop(const UOp& loop) {
  const auto place = [](const UOp& r) { return std::pair(arg_of(r).order, arg_of(r).id); };
  UOp out;
  for (const UOp& r : closed_ranges(loop))
    if (!is_lane(r) && arg_of(r).kind != AxisKind::thread && (!out || place(out) < place(r))) out = r;
  if (!out || constant_size(out) < 2) return {};
  const AxisKind kind = arg_of(out).kind;
  return kind == AxisKind::loop || kind == AxisKind::reduce ? out : UOp();
}

class Peeling {
 public:
  explicit Peeling(const UOp& sink) {
    for (const UOp* u : borrowed_toposort(sink))
      if (u->is(Op::RANGE)) next_id_ = std::max(next_id_, arg_of(*u).id + 1);
  }

  /// The loop without its first iteration or its last ones, and these by themselves; the same where iterations between them would need a
  /// mask, too.
  UOp peeled(const UOp& loop) {
    const UOp r = innermost_loop(loop);
    if (!r) return loop;
    const UOp& body = loop.src(0);
    const std::optional<Body> of = look_at(body, r);
    if (!of) return loop;
    UOps lanes, around;
    for (const UOp& x : closed_ranges(loop))
      if (x != r) (is_lane(x) ? lanes : around).push_back(x);

    UOps parts;  // in their order
    const auto add = [&](const UOp& iteration, const UOp& inner, const std::vector<UOp>& known = {}) {
      NodeMap<UOp> map;
      map[r] = iteration;
      for (const UOp& mask : known) map[mask] = constant(DType::bool_, true);
      if (of->whole && !parts.empty())
        for (const UOp& memory : of->updated) map[memory] = after(memory, parts);
      const bool at_most_once = inner && most_iterations(inner) <= 1;
      for (const UOp& s : of->states) map[s] = state_behind(s, r, parts, at_most_once ? UOp() : inner);
      UOp effect = substitute_open(std::span(&body, 1), UOps{r}, std::move(map))[0];
      UOps closed;
      if (at_most_once)
        effect = if_any(effect, inner);
      else if (inner)
        closed.push_back(inner);
      closed.append(lanes.begin(), lanes.end());
      parts.push_back(closed.empty() ? effect : end(effect, closed));
    };
    const int64_t size = constant_size(r);
    if (of->whole) {
      const UOp whole = loop_like(r, of->whole), rest = loop_like(r, r.src(0) - of->whole);
      add(whole, whole, of->masks);
      add(rest + of->whole, rest);
    }
    for (int64_t i = 0; i < of->peels.first; ++i) add(index_const(i), {});
    if (const int64_t left = of->whole ? 0 : of->peels.left(size)) {
      const UOp rest = loop_like(r, index_const(left));
      add(rest + of->peels.first, rest);
    }
    for (int64_t i = of->peels.last; i > 0; --i) add(index_const(size - i), {});
    const UOp all = group(parts);
    return around.empty() ? all : end(all, around);
  }

 private:
  struct Peels {
    int64_t first = 0, last = 0;  ///< iterations
    int64_t left(int64_t size) const { return size - first - last; }
    int64_t copies() const { return first + 1 + last; }
  };
  struct Body {
    Peels peels;
    std::vector<UOp> states;   ///< of memory, where an iteration begins
    UOp whole;                 ///< where it depends on the chunk: how many iterations need no masks, the first ones
    std::vector<UOp> masks;    ///< that these do not need
    std::vector<UOp> updated;  ///< states of arguments that an iteration both loads and stores
  };

  UOp loop_like(const UOp& r, const UOp& size) {
    return range(size, RangeArg{.id = next_id_++, .kind = arg_of(r).kind, .order = arg_of(r).order});
  }

  /// Nothing if the loop stays as it is.
  std::optional<Body> look_at(const UOp& body, const UOp& r) const {
    Body out;
    const UOps ranges{r};
    std::vector<Peels> choices{{0, 1}, {1, 0}, {1, 1}, {0, 2}, {1, 2}};  // those that write the least first
    std::erase_if(choices, [&](const Peels& p) { return p.left(constant_size(r)) < 0; });
    bool saves = false, in_chunk = true;
    std::vector<UOp> loaded, stored;
    double weight = 0;
    for (const UOp* u : borrowed_toposort(body)) {
      if (*u == r || !is_open_over(*u, ranges)) continue;
      if (u->is(Op::END)) return {};
      weight += u->in(Group::alu) ? general_costs().ops.of(u->op()).compiled : 1;
      std::erase_if(choices, [&](const Peels& p) { return weight * double(p.copies()) > most_weight; });
      in_chunk = in_chunk && weight * 2 <= most_weight;
      if (choices.empty() && !in_chunk) return {};
      if (u->is(Op::LOAD) || u->is(Op::STORE)) (u->is(Op::LOAD) ? loaded : stored).push_back(u->src(0));
      if (std::ranges::find(u->src(), r) != u->src().end()) {
        const bool is_state =
            u->is(Op::AFTER) && std::ranges::none_of(u->src(), [&](const UOp& s) { return s != r && is_open_over(s, ranges); });
        if (is_state)
          out.states.push_back(*u);
        else if (!u->in(Group::elementwise))
          return {};
      }
      if (!u->is(Op::CMPLT) || u->src(0).dtype() != DType::index || const_value(simplify(*u))) continue;
      std::erase_if(choices, [&](const Peels& p) { return !is_known_between(*u, r, p); });
      saves = true;
      in_chunk = in_chunk && add_mask(*u, r, out);
    }
    if (!saves || (choices.empty() && !in_chunk)) return {};
    out.whole = choices.empty() ? simplify(max(out.whole, index_const(0))) : UOp();
    if (!choices.empty()) out.peels = choices.front();
    const auto accesses = [](const std::vector<UOp>& places, const UOp& memory) {
      return std::ranges::any_of(places, [&](const UOp& p) { return memory_of(p) == memory; });
    };
    for (const auto* places : {&loaded, &stored})
      for (const UOp& p : *places)
        if (memory_of(p).is(Op::PARAM) && !is_open_over(p.src(0), ranges) && accesses(loaded, memory_of(p)) &&
            accesses(stored, memory_of(p)))
          out.updated.push_back(p.src(0));
    return out;
  }

  /// Adds a mask that holds for the first iterations of a chunk and for no others; false for other masks.
  static bool add_mask(const UOp& condition, const UOp& r, Body& of) {
    const UOp margin = condition.src(1) - condition.src(0) - 1;  // not negative where the condition holds
    const std::optional<int64_t> stride = stride_of(margin, r);
    if (!stride || *stride >= 0) return false;
    NodeMap<UOp> first;
    first[r] = index_const(0);
    bool is_of_chunk = false;
    for (const UOp& other : ranges_of(margin)) {
      if (other == r) continue;
      is_of_chunk = is_of_chunk || arg_of(other).kind == AxisKind::thread;
      if (arg_of(other).kind == AxisKind::thread) continue;
      const std::optional<int64_t> step = stride_of(margin, other);
      if (!is_lane(other) || !step || constant_size(other) == 0) return false;
      first[other] = index_const(*step < 0 ? constant_size(other) - 1 : 0);
    }
    if (!is_of_chunk) return false;
    const UOp count = floor_div(simplify(substitute(margin, first)), -*stride) + 1;
    of.whole = min(of.whole ? of.whole : r.src(0), count);
    of.masks.push_back(condition);
    return true;
  }

  bool is_known_between(const UOp& condition, const UOp& r, const Peels& p) const {
    if (p.left(constant_size(r)) == 0) return true;
    const UOp rest =
        range(index_const(p.left(constant_size(r))), RangeArg{.id = next_id_, .kind = arg_of(r).kind, .order = arg_of(r).order});
    NodeMap<UOp> map;
    map[r] = rest + p.first;
    return const_value(simplify(substitute(condition, map))) != nullptr;
  }

  /// What a loop of at most one iteration does, masked where there is none: its index is always 0, so nothing would stay in the loop.
  static UOp if_any(const UOp& effect, const UOp& r) {
    return apply_split(effect, {.range = r, .parts = {}, .value = index_const(0), .valid = index_const(0) < r.src(0)});
  }

  /// A state of memory that the loop carries along, behind the parts before; `loop` of the part that it is for, if that is one.
  static UOp state_behind(const UOp& state, const UOp& r, const UOps& parts, const UOp& loop) {
    UOps behind;
    if (!parts.empty()) {
      behind.push_back(parts.back());
    } else {
      for (const UOp& s : state.src().subspan(1))
        if (s != r) behind.push_back(s);
    }
    if (loop) behind.push_back(loop);
    return behind.empty() ? UOp(state.src(0)) : after(state.src(0), behind);
  }

  int32_t next_id_ = 0;
};

}  // namespace

UOp peel_ends(const UOp& sink, const Target& target) {
  if (target.has_groups || target.vector_bits == 0) return sink;
  Peeling peeling(sink);
  const UOp out = rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    const UOp same = u.with_src(sources);
    return u.is(Op::END) ? peeling.peeled(same) : same;
  });
  return out == sink ? sink : simplify(out);
}

}  // namespace tinygrad::codegen
