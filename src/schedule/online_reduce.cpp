#include "schedule/online_reduce.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "rewrite/rewrite.h"
#include "schedule/cost.h"
#include "shape/device.h"
#include "shape/ranges.h"
#include "shape/shape.h"
#include "shape/sint.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

bool is_reduce(const UOp& u, Op op) { return u.is(Op::REDUCE) && u.arg_as<ReduceArg>().op == op; }

bool is_float_cast(const UOp& u) { return u.is(Op::CAST) && is_float(u.dtype()) && is_float(u.src(0).dtype()); }

/// exp2(scale * (x - max)). With `or_lowest`, max is the greater of it and a finite number, so that a difference of -inf and it is -inf.
struct Exponential {
  UOp node, x, max;
  double scale = 1;
  bool or_lowest = false;
};

/// With `below` to pass through what may stand between the difference and its sides.
template <class Below>
std::optional<Exponential> exponential(const UOp& u, Below&& below) {
  if (!u.is(Op::EXP2)) return {};
  Exponential e{u, {}, {}, 1};
  const UOp* at = &below(u.src(0));
  for (;; at = &below(at->src(0))) {
    if (is_float_cast(*at)) continue;
    if (!at->is(Op::MUL) || !const_value(at->src(1))) break;
    e.scale *= const_value(at->src(1))->as_double();
  }
  if (!at->is(Op::SUB) || !(e.scale > 0)) return {};
  e.x = below(at->src(0));
  e.max = below(at->src(1));
  if (e.max.is(Op::MAX) && const_value(e.max.src(1)) && const_value(e.max.src(1))->is_finite()) {
    e.or_lowest = true;
    e.max = below(e.max.src(0));
  }
  if (!is_reduce(e.max, Op::MAX)) return {};
  return e;
}

/// Ranges a..b in the place of others, and the ranges that REDUCEs inside close numbered in walking order: equal expressions are one node.
UOp canonical(const UOp& u, const UOps& from, const UOps& to) {
  NodeMap<UOp> map;
  UOps held;
  int32_t next = -1;
  for (size_t i = 0; i < from.size(); ++i) map[from[i]] = to[i];
  for (const UOp& n : toposort(u))
    for (const UOp& r : closed_ranges(n))
      if (!map.contains(r)) {
        held.push_back(range(r.src(0), {.id = next--, .kind = AxisKind::reduce}));
        map[r] = held.back();
      }
  static const auto& rules = *new rewrite::Rules<>(symbolic::index_rules() + symbolic::data_rules());
  return rewrite::graph_rewrite(substitute(u, map), rules, {.name = "canonical"});
}

/// The maximum is over the same values as the sum takes.
bool is_maximum_of(const UOp& max, const UOp& x, const UOps& ranges) {
  const UOps own(closed_ranges(max));
  if (own.size() != ranges.size()) return false;
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i].src(0) != ranges[i].src(0)) return false;
  if (own == ranges && max.src(0) == x) return true;
  return canonical(max.src(0), own, ranges) == canonical(x, ranges, ranges);
}

/// The way from a term down to its exponential, through ops that are linear in it.
struct Spine {
  std::vector<UOp> nodes;      ///< outermost first, the exponential last
  std::vector<size_t> source;  ///< of each node but the last: which source is next
  Exponential exp;
};

/// where(x != x, 0, x), which takes 0 for a NaN.
bool replaces_nan(const UOp& u) {
  return u.is(Op::WHERE) && u.src(0).is(Op::CMPNE) && u.src(0).src(0) == u.src(0).src(1) && u.src(0).src(0) == u.src(2) &&
         is_const(u.src(1), 0);
}

std::optional<size_t> linear_source(const UOp& u, const NodeMap<bool>& holds) {
  const auto held = [&](size_t i) { return *holds.find(u.src(i)); };
  switch (u.op()) {
    case Op::MUL:
      if (held(0) != held(1)) return held(0) ? 0 : 1;
      return {};
    case Op::FDIV: return held(0) && !held(1) ? std::optional<size_t>(0) : std::nullopt;
    case Op::NEG: return 0;
    case Op::CAST: return is_float_cast(u) ? std::optional<size_t>(0) : std::nullopt;
    case Op::WHERE:
      if (replaces_nan(u) && held(2)) return 2;
      if (held(0)) return {};
      if (held(1) && is_const(u.src(2), 0)) return 1;
      if (held(2) && is_const(u.src(1), 0)) return 2;
      return {};
    default: return {};
  }
}

std::optional<Spine> spine_of(const UOp& sum, const UOps& ranges) {
  NodeMap<bool> holds;
  bool any = false;
  Spine s;
  const std::vector<UOp> nodes =
      toposort_where(std::span(&sum.src(0), 1), [](const UOp& u) { return !u.is(Op::REDUCE) && !u.is(Op::INDEX); });
  NodeMap<Exponential> found;
  for (const UOp& u : nodes) {
    bool holding = false;
    if (!u.is(Op::REDUCE) && !u.is(Op::INDEX))
      for (const UOp& v : u.src())
        if (const bool* h = holds.find(v)) holding = holding || *h;
    if (auto e = exponential(u, std::identity()); e && is_open_over(e->x, ranges) && is_maximum_of(e->max, e->x, ranges)) {
      found[u] = *e;
      holding = any = true;
    }
    holds[u] = holding;
  }
  if (!any) return {};
  UOp at = sum.src(0);
  bool replaced = false;  // below it all terms of a sum are NaN, or none, but for what differs between them
  while (!found.contains(at)) {
    const auto next = linear_source(at, holds);
    if (!next) return {};
    for (size_t i = 0; replaced && i < at.src_count(); ++i)
      if (i != *next && !replaces_nan(at) && is_open_over(at.src(i), ranges)) return {};
    replaced = replaced || replaces_nan(at);
    s.nodes.push_back(at);
    s.source.push_back(*next);
    at = at.src(*next);
  }
  s.nodes.push_back(at);
  s.exp = *found.find(at);
  return s;
}

/// The least number that is finite in both dtypes.
UOp lowest(DType dtype, DType other) { return constant(dtype, -std::min(greatest_finite(dtype), greatest_finite(other))); }

UOp argument(const UOps& all, DType dtype) { return UOp(Op::PARAM, dtype, {}, ParamArg{.slot = int32_t(all.size())}); }

UOp function(std::initializer_list<UOp> values) {
  return UOp(Op::FUNCTION, DType::void_, {UOp(Op::TUPLE, DType::void_, values)}, FunctionArg{"online"});
}

/// The joined form of one sum.
class Join {
 public:
  Join(const UOp& sum, const Spine& spine) : sum_(sum), spine_(spine), ranges_(closed_ranges(sum)) {}

  UOp reduce() {
    const DType acc = sum_.dtype(), in = spine_.exp.x.dtype();
    const UOp m = add_argument(in), s = add_argument(acc), x = add_argument(in);
    values_.push_back(spine_.exp.x);
    const Shares at = shares(m, x);
    const UOp step = function({max(m, x), s * at.carried + cast(term(at.added), acc)});
    const UOp m2 = UOp(Op::PARAM, in, {}, ParamArg{.slot = 2}), s2 = UOp(Op::PARAM, acc, {}, ParamArg{.slot = 3});
    const Shares of = shares(m, m2);
    const UOp merge = function({max(m, m2), s * of.carried + s2 * of.added});
    UOps sources{UOp(Op::TUPLE, DType::void_, values_), UOp(Op::TUPLE, DType::void_, {constant(min_value(in)), constant(acc, 0)}), step,
                 merge};
    sources.append(ranges_.begin(), ranges_.end());
    return UOp(Op::REDUCE, DType::void_, sources, ReduceArg{Op::FUNCTION, {}});
  }

  /// What the sum was. If the maximum is infinite some term was exp(inf - inf), unless that of -inf was a finite number.
  UOp result(const UOp& joined) const {
    const DType acc = sum_.dtype();
    const UOp m = maximum(joined), least = constant(min_value(m.dtype()));
    const UOp raw = UOp(Op::GETTUPLE, acc, {joined}, TupleArg{1}), none = constant(acc, 0);
    UOp out = raw;
    const UOp infinite = spine_.exp.or_lowest ? eq(m, -least) : eq(m, least) | eq(m, -least);
    const UOp nan = constant(acc, std::numeric_limits<double>::quiet_NaN());
    out = where(infinite, nan, out);
    // Zeros times what else the terms have: NaN where that is not finite.
    const UOp zeros = where(m < -least, raw * none, none);
    UOp greatest = where(infinite, nan, constant(acc, 1));  // what becomes of the exponential of the maximum
    for (const Outside& o : outside_) {
      if (!o.value) {
        out = where(ne(greatest, greatest), zeros, out);
        greatest = where(ne(greatest, greatest), none, greatest);
        continue;
      }
      const UOp zero = o.holds_all ? none : zeros;
      out = o.op == Op::WHERE ? gated(o, out, zero) : alu(o.op, {out, cast(o.value, acc)});
      greatest = o.op == Op::WHERE ? gated(o, greatest, none) : alu(o.op, {greatest, cast(o.value, acc)});
    }
    return out;
  }

  UOp maximum(const UOp& joined) const { return UOp(Op::GETTUPLE, spine_.exp.x.dtype(), {joined}, TupleArg{0}); }

 private:
  UOp add_argument(DType dtype) {
    arguments_.push_back(argument(arguments_, dtype));
    return arguments_.back();
  }

  /// By which factors a sum measured from `m` and one measured from `x` go into one that is measured from the larger of both. One of them
  /// is 1: a single exponential gives the other. An m of -inf, of nothing so far, counts as the least finite number, so that a difference
  /// of two infinities makes no NaN of what is 0.
  struct Shares {
    UOp carried, added;
  };
  Shares shares(const UOp& m, const UOp& x) const {
    const DType acc = sum_.dtype();
    const UOp from = max(m, lowest(m.dtype(), acc)), grows = from < x;
    const UOp difference = cast(x, acc) - cast(from, acc);
    UOp below = where(grows, -difference, difference);
    if (spine_.exp.scale != 1) below = below * constant(acc, spine_.exp.scale);
    const UOp e(Op::EXP2, acc, {below}), one = constant(acc, 1);
    return {where(grows, e, one), where(grows, one, e)};
  }

  /// The term with `exponential` in its place. What changes with the ranges is an argument, what does not is left for result().
  UOp term(const UOp& exponential) {
    UOp out = cast(exponential, spine_.exp.node.dtype());
    bool varies = false;
    for (size_t i = spine_.source.size(); i-- > 0;) {
      const UOp& u = spine_.nodes[i];
      const bool product = u.is(Op::MUL) || u.is(Op::FDIV);
      if (product && !is_open_over(u.src(1 - spine_.source[i]), ranges_)) {
        outside_.push_back({u.op(), u.src(1 - spine_.source[i])});
        continue;
      }
      if (replaces_nan(u)) {
        outside_.push_back({Op::WHERE, {}});
        continue;
      }
      // A sum of nothing but zeros depends neither on the maximum nor on what it is divided by.
      if (u.is(Op::WHERE) && !is_open_over(u.src(0), ranges_)) {
        outside_.push_back({Op::WHERE, u.src(0), spine_.source[i] == 1, varies});
        continue;
      }
      varies = varies || product;
      UOps sources;
      for (size_t k = 0; k < u.src_count(); ++k)
        sources.push_back(k == spine_.source[i] ? out : u.src(k).is(Op::CONST) ? u.src(k) : passed(u.src(k)));
      out = u.with_src(sources);
    }
    return out;
  }

  /// What is behind the sum: a factor, or the test of a WHERE that takes the sum or 0. Without a value 0 is taken for NaN: each term of the
  /// sum was NaN where that of the maximum was.
  struct Outside {
    Op op;
    UOp value;
    bool where_true = true;
    bool holds_all = false;  ///< the factors of the terms are in what it takes 0 for
  };
  static UOp gated(const Outside& o, const UOp& sum, const UOp& zero) {
    return o.where_true ? where(o.value, sum, zero) : where(o.value, zero, sum);
  }

  UOp passed(const UOp& value) {
    values_.push_back(value);
    return add_argument(value.dtype());
  }

  const UOp& sum_;
  const Spine& spine_;
  const UOps ranges_;
  UOps arguments_, values_;
  std::vector<Outside> outside_;
};

bool has_maximum_and_exponential(const std::vector<UOp>& nodes) {
  bool max = false, exp = false;
  for (const UOp& u : nodes) {
    max = max || is_reduce(u, Op::MAX);
    exp = exp || u.is(Op::EXP2);
  }
  return max && exp;
}

/// A sum of nothing is 0 whatever it is divided by behind it. The sizes are numbers, or known when the kernel is launched.
bool have_steps(const UOps& ranges) {
  const auto has_some = [](const UOp& r) { return SInt(r.src(0)).min() > 0 && ranges_of(r.src(0)).empty(); };
  return !ranges.empty() && std::ranges::all_of(ranges, has_some);
}

/// What is carried is rescaled at each step, and partial results are merged with exponentials. That pays where x costs more to compute once
/// more, or where all that is read for one maximum has left the caches before the sum would read it again.
bool worth_joining(const UOp& x, const UOps& ranges, const Target& target) {
  const Costs& costs = general_costs();
  if (scalar_cost(x, costs) > costs.ops.exponential.fused) return true;
  double bytes = 0, steps = 1;
  for (const UOp& u : toposort(x))
    if (u.is(Op::LOAD)) bytes += itemsize(u.dtype());
  for (const UOp& r : ranges) steps *= double(SInt(r.src(0)).max());
  return bytes * steps > double(std::max(target.l2_bytes, target.l3_bytes));
}

/// Joins the first sum that can be; false if there is none.
bool join_one(std::vector<UOp>& values, const Target& target, std::vector<std::pair<UOp, UOp>>& joined) {
  for (const UOp& u : toposort(values)) {
    if (!is_reduce(u, Op::ADD) || !u.arg_as<ReduceArg>().axes.empty()) continue;
    const UOps ranges(closed_ranges(u));
    if (!have_steps(ranges)) continue;
    const std::optional<Spine> spine = spine_of(u, ranges);
    if (!spine || !worth_joining(spine->exp.x, ranges, target)) continue;
    Join join(u, *spine);
    const UOp reduce = join.reduce();
    joined.emplace_back(spine->exp.max, join.maximum(reduce));
    NodeMap<UOp> map;
    map[u] = join.result(reduce);
    values = substitute(values, map);
    return true;
  }
  return false;
}

/// Whether a range is closed by several REDUCEs, which may be one in the other.
bool are_shared(const std::vector<UOp>& values) {
  NodeSet closed;
  for (const UOp& u : toposort(values))
    if (u.is(Op::REDUCE))
      for (const UOp& r : closed_ranges(u))
        if (!closed.insert(r)) return true;
  return false;
}

/// Inner REDUCEs over a range that a REDUCE around them closes too.
void separate_ranges(std::vector<UOp>& values, int32_t& next_range) {
  for (bool changed = are_shared(values); changed;) {
    changed = false;
    for (const UOp& outer : toposort(values)) {
      if (!outer.is(Op::REDUCE)) continue;
      const auto own = closed_ranges(outer);
      const size_t parts = outer.src_count() - own.size();
      NodeMap<UOp> map;
      for (const UOp& inner : toposort(outer.src().first(parts))) {
        if (!inner.is(Op::REDUCE)) continue;
        NodeMap<UOp> fresh;
        UOps made;
        for (const UOp& r : closed_ranges(inner))
          if (std::find(own.begin(), own.end(), r) != own.end()) {
            made.push_back(range(r.src(0), {.id = next_range++, .kind = r.arg_as<RangeArg>().kind, .order = r.arg_as<RangeArg>().order}));
            fresh[r] = made.back();
          }
        if (made.empty()) continue;
        map[inner] = substitute(inner, fresh);
        values = substitute(values, map);
        changed = true;
        break;
      }
      if (changed) break;
    }
  }
}

}  // namespace

int32_t next_range_of(std::span<const UOp> values) {
  int32_t next = 0;
  for (const UOp& u : toposort(values))
    if (u.is(Op::RANGE)) next = std::max(next, u.arg_as<RangeArg>().id + 1);
  return next;
}

void join_reduces(std::vector<UOp>& values, const Target& target, int32_t& next_range) {
  if (has_maximum_and_exponential(toposort(values))) {
    std::vector<std::pair<UOp, UOp>> joined;
    while (join_one(values, target, joined)) {}
    // Others that use the maximum read it from what it was joined with, if that is in the same loops.
    NodeMap<UOp> maxima;
    for (const auto& [max, element] : joined)
      if (!maxima.contains(max) && ranges_of(max) == ranges_of(element)) maxima[max] = element;
    if (maxima.size() != 0) values = substitute(values, maxima);
  }
  separate_ranges(values, next_range);
}

namespace {

const UOp& below_movement(const UOp& u) {
  const UOp* x = &u;
  while (x->in(Group::movement) || is_float_cast(*x)) x = &x->src(0);
  return *x;
}

/// What `x` is made of by operations on elements, and how many elements of each are needed; at most a few hundred.
template <class Visit>
void walk_down(const UOp& x, Visit&& visit) {
  constexpr size_t most = 400;
  NodeMap<double> seen;  // the elements that are needed of each
  std::vector<const UOp*> stack{&x};
  seen[x] = most_elements(x);
  while (!stack.empty() && seen.size() < most) {
    const UOp& u = *stack.back();
    stack.pop_back();
    const double needed = *seen.find(u);
    if (!(u.in(Group::movement) || u.in(Group::elementwise))) {
      visit(u, needed);
      continue;
    }
    for (const UOp& s : u.in(Group::movement) ? u.src().first(1) : u.src()) {
      if (seen.contains(s)) continue;
      seen[s] = std::min(needed, most_elements(s));
      stack.push_back(&s);
    }
  }
}

/// Whether each element of a factor of the sums that x is made of, the scores of attention, is used in so few of them that they fill half
/// of a vector at most.
bool has_few_rows(const UOp& x, const Target& target) {
  if (target.has_groups) return false;
  bool any = false, few = true;
  walk_down(x, [&](const UOp& scores, double) {
    if (!is_reduce(scores, Op::ADD)) return;
    double factor = 1;  // the largest
    walk_down(scores.src(0), [&](const UOp&, double needed) { factor = std::max(factor, needed); });
    any = true;
    few = few && 2 * most_elements(scores.src(0)) <= factor * double(target.lanes(DType::float32));
  });
  return any && few;
}

}  // namespace

std::vector<const UOp*> joinable_reduces(const std::vector<UOp>& order, const TargetOf& target_of) {
  std::vector<const UOp*> out(order.size(), nullptr);
  bool any = false;
  for (const UOp& u : order) any = any || u.is(Op::EXP2);
  if (!any) return out;
  NodeMap<const UOp*> factor;  // the maximum of an exponential that a value is linear in
  NodeMap<size_t> numbers(order.size());
  for (size_t i = 0; i < order.size(); ++i) numbers[order[i]] = i;
  for (size_t i = 0; i < order.size(); ++i) {
    const UOp& u = order[i];
    if (const auto e = exponential(u, below_movement); e && below_movement(e->max.src(0)) == e->x) {
      if (const Symbol device = devices_of(u).first(); !device.empty() && has_few_rows(e->x, target_of(device))) continue;
      factor[u] = &order[*numbers.find(e->max)];
      continue;
    }
    const bool linear = u.is(Op::MUL) || u.is(Op::FDIV) || u.is(Op::NEG) || u.is(Op::WHERE) || u.is(Op::CAST) || u.in(Group::movement);
    const bool sum = is_reduce(u, Op::ADD);
    if (!linear && !sum) continue;
    for (const UOp& s : u.src())
      if (const UOp* const* max = factor.find(s)) {
        if (sum) {
          out[i] = out[*numbers.find(**max)] = *max;
        } else {
          factor[u] = *max;
        }
        break;
      }
  }
  return out;
}

}  // namespace tinygrad::schedule
