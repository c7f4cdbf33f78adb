#include "codegen/lower/bound_loops.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "codegen/kernel_axes.h"
#include "codegen/online_step.h"
#include "codegen/rebuild.h"
#include "codegen/reduce_op.h"
#include "codegen/simplify.h"
#include "codegen/split_range.h"
#include "schedule/idle_terms.h"
#include "shape/ranges.h"
#include "symbolic/bounds.h"
#include "symbolic/mean.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

using schedule::add_conditions;
using schedule::add_tests;
using schedule::Condition;
using schedule::Conditions;
using schedule::Idle;

/// Innermost loops that compilers may write out.
constexpr int64_t short_loop = 8;

Conditions conditions(const UOp& reduce) {
  Conditions out;
  if (online_step(reduce)) {
    add_conditions(reduced_values(reduce)[0], Idle::least, out);
  } else if (!is_general_reduce(reduce)) {
    const Op op = reduce.arg_as<ReduceArg>().op;
    if (op == Op::ADD) add_conditions(reduce.src(0), Idle::zero, out);
    if (op == Op::MAX) add_conditions(reduce.src(0), Idle::least, out);
  }
  return out;
}

/// The only user of each node that has just one.
NodeMap<UOp> only_users(const std::vector<UOp>& nodes) {
  NodeMap<UOp> out(nodes.size());
  NodeSet several;
  for (const UOp& u : nodes)
    for (const UOp& s : u.src())
      if (const UOp* other = out.find(s); !other) {
        out[s] = u;
      } else if (!(*other == u)) {
        several.insert(s);
      }
  for (const UOp& u : nodes)
    if (several.contains(u)) out[u] = UOp();
  return out;
}

/// Adds the conditions under which the value is used: those of each WHERE above it, as far up as each node has one user.
void add_uses(UOp value, const NodeMap<UOp>& only_user, Conditions& out) {
  for (const UOp* user = only_user.find(value); user && *user && (user->in(Group::alu) || user->is(Op::CAST));
       user = only_user.find(value)) {
    const bool is = user->src_count() > 1 && user->src(1) == value;
    if (user->is(Op::WHERE) && user->src(0) != value && user->src(is ? 2 : 1) != value) add_tests(user->src(0), is, out);
    value = *user;
  }
}

/// The value of an integer that does not wrap, as an index.
std::optional<UOp> as_index(const UOp& u) {
  if (u.dtype() == DType::index) return u;
  if (const Scalar* c = const_value(u)) return index_const(c->as_int());
  if (!is_int(u.dtype())) return {};
  std::optional<UOp> out;
  if (u.is(Op::CAST)) {
    if (is_int(u.src(0).dtype()) || u.src(0).dtype() == DType::index) out = as_index(u.src(0));
  } else if (u.is(Op::ADD) || u.is(Op::SUB) || u.is(Op::MUL)) {
    const auto a = as_index(u.src(0)), b = as_index(u.src(1));
    if (a && b) out = alu(u.op(), {*a, *b});
  }
  if (!out) return {};
  const symbolic::Bounds may = symbolic::bounds(*out);
  const Scalar least = min_value(u.dtype()), most = max_value(u.dtype());
  const bool fits = may.has_min() && may.has_max() && may.min >= least.as_int() && (u.dtype() == DType::uint64 || may.max <= most.as_int());
  return fits ? out : std::nullopt;
}

/// An index expression that is not negative exactly where the condition holds.
std::optional<UOp> margin(const Condition& c) {
  if (!c.test.is(Op::CMPLT)) return {};
  const auto a = as_index(c.test.src(0)), b = as_index(c.test.src(1));
  if (!a || !b) return {};
  return simplify(c.is ? *b - *a - 1 : *a - *b);
}

/// Where a loop may begin, and behind which iteration it may end.
struct Limits {
  UOps begins, ends;
  bool empty() const { return begins.empty() && ends.empty(); }
  friend bool operator==(const Limits&, const Limits&) = default;
};

/// Whether `r` is a loop around those of the REDUCE.
bool is_around(const UOp& r, const UOp& reduce) {
  const auto is_outer = [](const UOp& c) { return c.arg_as<RangeArg>().kind == AxisKind::outer; };
  const auto closed = closed_ranges(reduce);
  const auto outer = std::find_if(closed.begin(), closed.end(), is_outer);
  const RangeArg& arg = r.arg_as<RangeArg>();
  if (arg.kind == AxisKind::loop) return outer == closed.end() || arg.order < outer->arg_as<RangeArg>().order;
  return arg.kind == AxisKind::thread || is_reduced(r);
}

/// The margin's largest value over the loops inside of `loop` and over elements that are computed side by side.
std::optional<UOp> largest(const UOp& margin, const UOp& reduce, const UOp& loop) {
  const UOps open = ranges_of(reduce);
  NodeMap<UOp> at;
  for (const UOp& r : ranges_of(margin)) {
    if (r == loop || (std::find(open.begin(), open.end(), r) != open.end() && is_around(r, reduce))) continue;
    const std::optional<int64_t> stride = stride_of(margin, r);
    if (!stride || constant_size(r) == 0) return {};
    at[r] = index_const(*stride > 0 ? constant_size(r) - 1 : 0);
  }
  return simplify(substitute(margin, at));
}

bool is_outermost(const UOp& loop, const UOp& reduce) {
  return std::ranges::all_of(closed_ranges(reduce),
                             [&](const UOp& r) { return !is_reduced(r) || r.arg_as<RangeArg>().order >= loop.arg_as<RangeArg>().order; });
}

UOps margins(const UOp& reduce, const NodeMap<UOp>& only_user) {
  Conditions needed = conditions(reduce);
  add_uses(reduce, only_user, needed);
  UOps out;
  for (const Condition& c : needed)
    if (const std::optional<UOp> m = margin(c)) out.push_back(*m);
  return out;
}

Limits limits(const UOp& reduce, const UOp& loop, const UOps& margins) {
  Limits out;
  for (const UOp& m : margins) {
    const std::optional<UOp> slack = largest(m, reduce, loop);
    const std::optional<int64_t> step = slack ? stride_of(*slack, loop) : std::nullopt;
    if (!step) continue;
    NodeMap<UOp> first;
    first[loop] = index_const(0);
    const UOp rest = substitute(*slack, first);
    if (*step == 0) {
      if (is_outermost(loop, reduce)) out.ends.push_back(where(rest < 0, index_const(0), index_const(constant_size(loop))));
    } else if (*step < 0) {
      out.ends.push_back(floor_div(rest, -*step) + 1);
    } else {
      out.begins.push_back(-floor_div(rest, *step));
    }
  }
  return out;
}

/// With loops over the values of variables, all equally likely, in their place, where those are not so many that counting overflows.
UOp with_any_variables(const UOp& u) {
  constexpr int64_t most_values = int64_t{1} << 40;
  NodeMap<UOp> loops;
  std::vector<UOp> held;
  int32_t id = next_range_id(u);
  for (const UOp& v : toposort(u)) {
    if (!v.is(Op::VAR)) continue;
    const auto& bounds = v.arg_as<VarArg>();
    if (bounds.min < -most_values || bounds.max > most_values) continue;
    held.push_back(range(bounds.max - bounds.min + 1, id++) + bounds.min);
    loops[v] = held.back();
  }
  return substitute(u, loops);
}

/// The lesser, in a form that no simplification hides the upper bounds of: what is made for a loop has room for as many iterations.
UOp lesser(const UOp& a, const UOp& b) { return -max(-a, -b); }

std::optional<Split> bounded(const UOp& loop, const Limits& limits) {
  const UOp all = index_const(constant_size(loop));
  UOp begin = index_const(0), end = all;
  for (const UOp& b : limits.begins) begin = max(begin, b);
  for (const UOp& e : limits.ends) end = lesser(e, end);
  const UOp size = simplify(max(end - begin, index_const(0)));
  constexpr int64_t fraction = 64;
  const UOp kept = symbolic::mean(with_any_variables(size * fraction));
  const Scalar* n = const_value(kept);
  if (!n || n->as_double() / fraction > worth_bounding * double(constant_size(loop))) return {};
  const UOp shorter(Op::RANGE, DType::index, {size}, loop.arg());
  // What moves with a loop of at most one iteration no longer depends on it and may be computed where there is none: at an iteration that
  // the loop had, so that what is loaded is there.
  const UOp first = simplify(min(begin, all - 1));
  return Split{.range = loop, .parts = {shorter}, .value = shorter + first, .valid = {}};
}

/// Iterations of the loop run others.
bool has_loops_inside(const UOp& loop, const std::vector<UOp>& axes) {
  return std::ranges::any_of(axes,
                             [&](const UOp& r) { return is_reduced(r) && r.arg_as<RangeArg>().order > loop.arg_as<RangeArg>().order; });
}

/// The result of use(REDUCE, its margins) for the REDUCEs that close a loop, if it is equal for all of them; none for loops that stay
/// whole.
template <class Use>
auto in_common(const UOp& sink, Use&& use) {
  using Result = std::invoke_result_t<Use, const UOp&, const UOp&, const UOps&>;
  std::vector<std::pair<UOp, Result>> out;
  const std::vector<UOp> nodes = toposort(sink), axes = kernel_axes(sink);
  const NodeMap<UOp> only_user = only_users(nodes);
  for (const UOp& loop : axes) {
    if (!is_reduced(loop) || constant_size(loop) < (has_loops_inside(loop, axes) ? 2 : short_loop)) continue;
    std::optional<Result> common;
    for (const UOp& u : nodes) {
      const auto closed = closed_ranges(u);
      if (std::find(closed.begin(), closed.end(), loop) == closed.end()) continue;
      const Result own = u.is(Op::REDUCE) ? use(u, loop, margins(u, only_user)) : Result{};
      if (common && !(*common == own)) common = Result{};
      if (!common) common = own;
    }
    if (common && !common->empty()) out.emplace_back(loop, *std::move(common));
  }
  return out;
}

/// The first loop that can be shorter, and what it becomes.
std::optional<Split> find_loop(const UOp& sink) {
  for (const auto& [loop, common] : in_common(sink, limits))
    if (auto split = bounded(loop, common)) return split;
  return {};
}

/// Copies that are made ahead count the iterations.
bool copies_ahead(const UOp& sink) {
  return std::ranges::any_of(toposort(sink), [](const UOp& u) { return u.is(Op::STAGE) && u.arg_as<StageArg>().depth > 1; });
}

}  // namespace

UOp bound_loops(const UOp& sink) {
  UOp out = sink;
  while (const auto split = copies_ahead(out) ? std::nullopt : find_loop(out)) out = apply_split(out, *split);
  return rebuild(out, [](const UOp& u, const UOps& sources) {
    return u.is(Op::WEIGHT) ? where(sources[1], sources[0], constant(u.dtype(), 0)) : u.with_src(sources);
  });
}

std::vector<BoundedLoop> loops_to_bound(const UOp& sink) {
  std::vector<BoundedLoop> out;
  for (auto& [loop, common] : in_common(sink, [](const UOp&, const UOp&, const UOps& margins) { return margins; }))
    out.push_back({loop, std::move(common)});
  return out;
}

bool may_bound_loops(const UOp& sink) { return find_loop(sink).has_value(); }

}  // namespace tinygrad::codegen
