#include "codegen/lower/peel_ends.h"

#include <algorithm>
#include <utility>

#include "codegen/kernel_axes.h"
#include "codegen/rebuild.h"
#include "codegen/simplify.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr size_t most_nodes = 600;  // of a body that is written twice

const RangeArg& arg_of(const UOp& range) { return range.arg_as<RangeArg>(); }
bool is_lane(const UOp& range) { return arg_of(range).kind == AxisKind::lane; }

/// The innermost loop that an END closes; null if it has no known number of iterations, or is no loop of the kernel's own.
UOp innermost_loop(const UOp& loop) {
  const auto place = [](const UOp& r) { return std::pair(arg_of(r).order, arg_of(r).id); };
  UOp out;
  for (const UOp& r : closed_ranges(loop))
    if (!is_lane(r) && (!out || place(out) < place(r))) out = r;
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

  /// The loop without its last iteration, and that; the same where some iteration before it would need a mask, too.
  UOp peeled(const UOp& loop) {
    const UOp r = innermost_loop(loop);
    if (!r) return loop;
    const UOp& body = loop.src(0);
    const UOps ranges{r};
    const int64_t size = constant_size(r);
    const UOp shorter = range(index_const(size - 1), RangeArg{.id = next_id_, .kind = arg_of(r).kind, .order = arg_of(r).order});
    NodeMap<UOp> rest, last;
    rest[r] = shorter;
    last[r] = index_const(size - 1);
    std::vector<UOp> states;  // of memory, where an iteration begins
    bool saves = false;
    size_t nodes = 0;
    for (const UOp* u : borrowed_toposort(body)) {
      if (*u == r || !is_open_over(*u, ranges)) continue;
      if (++nodes > most_nodes || u->is(Op::END)) return loop;
      if (std::ranges::find(u->src(), r) != u->src().end()) {
        const bool is_state =
            u->is(Op::AFTER) && std::ranges::none_of(u->src(), [&](const UOp& s) { return s != r && is_open_over(s, ranges); });
        if (is_state)
          states.push_back(*u);
        else if (!u->in(Group::elementwise))
          return loop;
      }
      if (!u->is(Op::CMPLT) || u->src(0).dtype() != DType::index || const_value(simplify(*u))) continue;
      if (!const_value(simplify(substitute(*u, rest)))) return loop;
      saves = true;
    }
    if (!saves) return loop;
    ++next_id_;

    UOps inner{shorter}, lanes, around;
    for (const UOp& x : closed_ranges(loop))
      if (x != r) (is_lane(x) ? lanes : around).push_back(x);
    inner.append(lanes.begin(), lanes.end());
    const UOp before = end(substitute_open(std::span(&body, 1), ranges, rest)[0], inner);
    for (const UOp& s : states) last[s] = after(s.src(0), std::span(&before, 1));
    const UOp end_of_it = substitute_open(std::span(&body, 1), ranges, last)[0];
    const UOp both = group(UOps{before, lanes.empty() ? end_of_it : end(end_of_it, lanes)});
    return around.empty() ? both : end(both, around);
  }

 private:
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
