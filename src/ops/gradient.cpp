#include "ops/gradient.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <array>
#include <atomic>
#include <numbers>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/known.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "shape/device.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::ops {

namespace {

constexpr double ln2 = std::numbers::ln2;

/// The gradients of a node's sources, given its own: one a source, null where there is none. Shapes may be those of the node where a
/// source of shape () was broadcast.
using Rule = UOps (*)(const UOp& node, const Expr& g);

/// Where a gradient flows, a choice between it and 0.
Expr only(const UOp& condition, const UOp& g) { return ops::where(condition, g, 0); }

/// The greater takes the gradient, equals take half each.
Expr share(const UOp& x, const UOp& y, const Expr& g) { return ops::where(lt(y, x), g, only(ops::eq(x, y), g * 0.5)); }

UOps pow_rule(const UOp& u, const Expr& g) {
  const Expr b = u.src(0), e = u.src(1), value = u;
  const Expr to_base = ops::where(ops::eq(e, 0), 0, e * pow(b, e - 1));
  // d b^e / d e = b^e log(b); at b = 0 it is 0, or -inf where the power itself is infinite.
  const Expr at_zero = ops::where(lt(e, 0), -std::numeric_limits<double>::infinity(), as_node(0, u.dtype()));
  return {g * to_base, g * ops::where(ops::eq(b, 0), at_zero, value * log2(b) * ln2)};
}

UOps max_rule(const UOp& u, const Expr& g) { return {share(u.src(0), u.src(1), g), share(u.src(1), u.src(0), g)}; }

/// A reduced value given back its axes, of size 1.
UOp keep_axes(const UOp& reduced, const UOp& x, const Axes& axes) {
  Shape shape = shape_of(x);
  for (int a : axes) shape[size_t(a)] = 1;
  return ops::reshape(reduced, shape);
}

/// For each element of the last axis the product of those before it.
UOp product_before(const UOp& x) {
  const SInt& n = shape_of(x).back();
  if (n == 0) return x;
  return pad_axis(shrink_axis(cumprod(x, -1), -1, 0, n - 1), -1, 1, 0, Scalar::of(1).cast(x.dtype()));
}

/// The product of all but each element, as a polynomial in them.
UOp polynomial_of_others(const UOp& x, const Axes& axes) {
  const size_t rank = rank_of(x);
  Axes order, back(rank, 0);
  for (int a = 0; a < int(rank); ++a)
    if (std::ranges::find(axes, a) == axes.end()) order.push_back(a);
  const size_t others = order.size();
  order.append(axes.begin(), axes.end());
  for (size_t i = 0; i < rank; ++i) back[size_t(order[i])] = int(i);
  const UOp last = ops::permute(x, order);
  Shape rows(shape_of(last).begin(), shape_of(last).begin() + ptrdiff_t(others));
  rows.push_back(numel(Shape(shape_of(last).begin() + ptrdiff_t(others), shape_of(last).end())));
  const UOp flat = ops::reshape(last, rows), after = ops::flip(product_before(ops::flip(flat, {int(others)})), {int(others)});
  return ops::permute(ops::reshape(mul(product_before(flat), after), shape_of(last)), back);
}

/// prod(x) / x[i], by the product of the others: where x[i] is the only zero, that of the rest; where another is zero, 0. Derivatives of
/// that choice would miss what a second zero gives to the first: they are those of a polynomial.
Expr product_of_others(const UOp& u, const UOp& x, const Axes& axes) {
  const Expr zero = ops::eq(x, 0), safe = ops::where(zero, 1, x);
  const Expr zeros = count(zero, axes, true);
  const UOp rest = only(ops::eq(zeros, 1), prod(safe, axes, true));
  return known("equal", ops::where(zero, rest, Expr(keep_axes(u, x, axes)) / safe), polynomial_of_others(x, axes));
}

/// `x` with what its movement ops read taken from memory.
UOp stored_below_views(const UOp& x) {
  UOps views;
  UOp y = x;
  for (; y.in(Group::movement) || y.is(Op::TENSOR); y = UOp(y.src(0)))
    if (y.in(Group::movement)) views.push_back(y);
  for (y = contiguous(y); !views.empty(); views.pop_back()) {
    UOps sources(views.back().src().begin(), views.back().src().end());
    sources[0] = y;
    y = views.back().with_src(sources);
  }
  return y;
}

/// Elements that equal the greatest share its gradient. Both come from memory: computed at two places, the greatest element could be
/// rounded differently and equal none.
UOp max_reduce_rule(const UOp& x, const Axes& axes, const Expr& wide) {
  const UOp v = stored_below_views(x);
  const DType counts = least_upper_dtype(x.dtype(), DType::float32);
  const Expr best = tinygrad::cast(ops::eq(v, ops::max(v, axes, true)), counts);
  return tinygrad::cast(best * (Expr(tinygrad::cast(wide, counts)) / sum(best, axes, true)), x.dtype());
}

UOps reduce_rule(const UOp& u, const Expr& g) {
  const auto& [op, axes] = u.arg_as<ReduceArg>();
  if (u.src_count() != 1)
    throw ValueError("gradient: a general REDUCE, or one over ranges, has no gradient rule; differentiate before lowering");
  const UOp& x = u.src(0);
  const Expr wide = keep_axes(g, x, axes);
  if (op == Op::ADD) return {broadcast_to(wide, shape_of(x))};
  if (op == Op::MUL) return {wide * product_of_others(u, x, axes)};
  if (op != Op::MAX) throw ValueError(fmt::format("gradient: REDUCE by {} has no derivative", name(op)));
  return {max_reduce_rule(x, axes, wide)};
}

/// where(0 < x, x, 0), or where(x < c, 0, x) for a positive c, which keeps NaN: zero where x is dropped, and nowhere else.
bool is_rectifier(const UOp& u) {
  const UOp &yes = u.src(1), &no = u.src(2);
  UOp c = u.src(0);
  while (c.is(Op::TENSOR)) c = UOp(c.src(0));
  if (!c.is(Op::CMPLT)) return false;
  if (is_const(c.src(0), 0)) return c.src(1) == yes && is_const(no, 0);
  const Scalar* bound = const_value(c.src(1));
  return bound && bound->as_double() > 0 && c.src(0) == no && is_const(yes, 0);
}

/// Whoever keeps the result of a rectifier needs not keep x as well.
UOps where_rule(const UOp& u, const Expr& g) {
  const UOp& c = u.src(0);
  if (!is_rectifier(u)) return {UOp(), only(c, g), ops::where(c, 0, g)};
  const Expr dx = only(ops::ne(u, 0), g);
  return is_const(u.src(1), 0) ? UOps{UOp(), UOp(), dx} : UOps{UOp(), dx, UOp()};
}

Pairs pairs_of(const UOp& u) {
  Pairs out;
  for (size_t i = 1; i < u.src_count(); i += 2) out.emplace_back(SInt(u.src(i)), SInt(u.src(i + 1)));
  return out;
}

UOps pad_rule(const UOp& u, const Expr& g) {
  Pairs bounds = pairs_of(u);
  const Shape& in = shape_of(u.src(0));
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i].second = bounds[i].first + in[i];
  return {ops::shrink(g, bounds)};
}

UOps shrink_rule(const UOp& u, const Expr& g) {
  Pairs amounts = pairs_of(u);
  const Shape& in = shape_of(u.src(0));
  for (size_t i = 0; i < amounts.size(); ++i) amounts[i].second = in[i] - amounts[i].second;
  return {ops::pad(g, amounts)};
}

UOps permute_rule(const UOp& u, const Expr& g) {
  const Axes& axes = u.arg_as<AxesArg>().axes;
  Axes back(axes.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) back[size_t(axes[i])] = int(i);
  return {ops::permute(g, back)};
}

UOps stack_rule(const UOp& u, const Expr& g) {
  UOps out;
  for (size_t i = 0; i < u.src_count(); ++i) out.push_back(ops::reshape(shrink_axis(g, 0, i, i + 1), shape_of(u.src(i))));
  return out;
}

Rule rule_of(Op op);

/// A gradient where the value is.
UOp on_devices_of(const UOp& value, const UOp& g) {
  const Devices to = devices_of(value);
  if (to.empty() || to == devices_of(g)) return g;
  return to.are_several() ? UOp(Op::SHARD, g.dtype(), {g}, ShardingArg{to, {}}) : copy_to(g, to.only());
}

/// Memory without what is known of its history.
const UOp& memory_under(const UOp& state) {
  const UOp* u = &state;
  while (u->is(Op::REALIZED)) u = &u->src(0);
  return *u;
}

/// A gradient of the memory under a view as one of the view: the same elements of it.
UOp through_view(const UOp& view, const UOp& memory, const UOp& g) {
  if (memory_under(view) == memory || view.is(Op::UNSHARD)) return g;
  UOps sources(view.src().begin(), view.src().end());
  sources[0] = through_view(view.src(0), memory, g);
  return UOp(view.op(), g.dtype(), sources, view.arg());
}

/// A gradient of memory without the elements that the view shows.
UOp outside_of_view(const UOp& view, const UOp& memory, const UOp& g) {
  UOp written = broadcast_to(bool_const(true), shape_of(view));
  for (const UOp* u = &view; memory_under(*u) != memory; u = &u->src(0)) {
    if (u->is(Op::EXPAND) && shape_of(*u) != shape_of(u->src(0))) throw ValueError("gradient: a store into an expanded view");
    written = rule_of(u->op())(*u, Expr(written))[0];
  }
  return ops::where(written, 0, g);
}

bool shows_all(const UOp& view, const UOp& memory) {
  const UOp* u = &view;
  while (u->is(Op::RESHAPE) || u->is(Op::PERMUTE) || u->is(Op::FLIP) || u->is(Op::UNSHARD)) u = &u->src(0);
  return memory_under(*u) == memory;
}

/// AFTER(memory, STORE(view, x)): what the view shows comes from x, the rest is what was there before.
UOps after_rule(const UOp& u, const Expr& g) {
  UOps out(u.src_count());
  UOp left = g;
  const UOp& memory = memory_under(u.src(0));
  for (size_t i = u.src_count(); i-- > 1 && left;) {
    const UOp& effect = u.src(i);
    if (!effect.is(Op::STORE)) continue;
    const UOp& view = effect.src(0);
    out[i] = through_view(view, memory, left);
    left = shows_all(view, memory) ? UOp() : outside_of_view(view, memory, left);
  }
  out[0] = left;
  return out;
}

/// The gradient of element i of a tuple is a tuple with zeros for the others; those of several elements add up.
UOps element_rule(const UOp& u, const Expr& g) {
  const UOp& from = u.src(0);
  const UOp& tuple = from.is(Op::CALL) ? from.src(0).src(0) : from;
  if (!tuple.is(Op::TUPLE)) throw ValueError("gradient: a general REDUCE has no gradient rule; use detach() before it");
  const auto index = size_t(u.arg_as<TupleArg>().index);
  UOps parts;
  for (size_t i = 0; i < tuple.src_count(); ++i)
    parts.push_back(i == index ? UOp(g) : broadcast_to(constant(tuple.src(i).dtype(), 0), shape_of(tuple.src(i))));
  return {UOp(Op::TUPLE, DType::void_, parts)};
}

UOp add_up(const UOp& a, const UOp& b) {
  if (!a.is(Op::TUPLE)) return add(a, b);
  UOps parts;
  for (size_t i = 0; i < a.src_count(); ++i) parts.push_back(add(a.src(i), b.src(i)));
  return UOp(Op::TUPLE, DType::void_, parts);
}

UOps by_rule(const GradientRule& rule, const UOp& u, const UOp& g) {
  const bool tuple = u.src(0).src(0).is(Op::TUPLE);
  const std::vector<UOp> parts = rule.gradients(u, tuple ? g.src() : std::span(&g, 1));
  UOps out(u.src_count());
  for (size_t i = 0; i < parts.size(); ++i) out[i + 1] = parts[i];
  return out;
}

/// The gradient of a FUNCTION is a FUNCTION of its arguments and the gradients of its values, one for each argument that has a gradient.
UOps call_rule(const UOp& u, const Expr& g) {
  const UOp& function = u.src(0);
  if (!function.is(Op::FUNCTION)) throw ValueError(fmt::format("gradient: a CALL of a {} has no gradient", name(function.op())));
  const UOp& body = function.src(0);
  if (const auto& rule = function.arg_as<FunctionArg>().gradient) return by_rule(static_cast<const GradientRule&>(*rule), u, g);
  const auto args = int32_t(u.src_count() - 1);
  UOps given(u.src().begin() + 1, u.src().end()), seeds;
  const std::span<const UOp> values = body.is(Op::TUPLE) ? body.src() : std::span(&body, 1);
  for (const UOp& v : values) {
    seeds.push_back(param_like(v, args + int32_t(seeds.size())));
    given.push_back(body.is(Op::TUPLE) ? g.src(seeds.size() - 1) : g);
  }
  std::vector<UOp> params;
  for (const UOp& p : toposort(body))
    if (p.is(Op::PARAM) && is_float(p.dtype())) params.push_back(p);
  const UOp seed = body.is(Op::TUPLE) ? UOp(Op::TUPLE, DType::void_, seeds) : seeds[0];
  const std::vector<UOp> inside = gradient(body, seed, params);
  const Symbol backward_name(std::string(function.arg_as<FunctionArg>().name.str()) + "_backward");
  UOps out(u.src_count());
  for (size_t i = 0; i < params.size(); ++i) {
    if (!inside[i]) continue;
    UOps sources{UOp(Op::FUNCTION, inside[i].dtype(), {inside[i]}, FunctionArg{backward_name})};
    sources.append(given.begin(), given.end());
    UOp& total = out[size_t(params[i].arg_as<ParamArg>().slot) + 1];
    const UOp call(Op::CALL, inside[i].dtype(), sources);
    total = total ? add(total, call) : call;
  }
  return out;
}

UOps to_first(const UOp& u, const UOp& g) {
  UOps out(u.src_count());
  out[0] = g;
  return out;
}

Rule rule_of(Op op) {
  switch (op) {
    case Op::ADD: return [](const UOp&, const Expr& g) { return UOps{g, g}; };
    case Op::SUB: return [](const UOp&, const Expr& g) { return UOps{g, -g}; };
    case Op::MUL: return [](const UOp& u, const Expr& g) { return UOps{g * u.src(1), g * u.src(0)}; };
    case Op::FDIV:
      return [](const UOp& u, const Expr& g) {
        const Expr quotient = g / u.src(1);
        return UOps{quotient, -quotient * u};
      };
    case Op::MULACC: return [](const UOp& u, const Expr& g) { return UOps{g * u.src(1), g * u.src(0), g}; };
    case Op::NEG: return [](const UOp&, const Expr& g) { return UOps{-g}; };
    case Op::RECIPROCAL: return [](const UOp& u, const Expr& g) { return UOps{-g * u * u}; };
    case Op::SQRT: return [](const UOp& u, const Expr& g) { return UOps{g / (Expr(u) * 2)}; };
    case Op::EXP2: return [](const UOp& u, const Expr& g) { return UOps{g * u * ln2}; };
    case Op::LOG2: return [](const UOp& u, const Expr& g) { return UOps{g / (Expr(u.src(0)) * ln2)}; };
    case Op::SIN: return [](const UOp& u, const Expr& g) { return UOps{g * cos(u.src(0))}; };
    case Op::POW: return pow_rule;
    case Op::KNOWN: return [](const UOp& u, const Expr& g) { return UOps{UOp(), g * known_derivative(u)}; };
    case Op::MAX: return max_rule;
    case Op::WHERE: return where_rule;
    case Op::CAST: return [](const UOp& u, const Expr& g) { return UOps{tinygrad::cast(g, u.src(0).dtype())}; };
    case Op::REDUCE: return reduce_rule;
    case Op::RESHAPE: return [](const UOp& u, const Expr& g) { return to_first(u, ops::reshape(g, shape_of(u.src(0)))); };
    case Op::EXPAND: return [](const UOp& u, const Expr& g) { return to_first(u, g); };
    case Op::PAD: return pad_rule;
    case Op::SHRINK: return shrink_rule;
    case Op::PERMUTE: return permute_rule;
    case Op::FLIP: return [](const UOp& u, const Expr& g) { return UOps{ops::flip(g, u.arg_as<AxesArg>().axes)}; };
    case Op::STACK: return stack_rule;
    case Op::COPY:
    case Op::SHARD: return [](const UOp& u, const Expr& g) { return UOps{on_devices_of(u.src(0), g)}; };
    case Op::UNSHARD: return [](const UOp& u, const Expr& g) { return to_first(u, g); };
    case Op::WEAK:
    case Op::CONTIGUOUS:
    case Op::TENSOR: return [](const UOp&, const Expr& g) { return UOps{g}; };
    case Op::CONTIGUOUS_BACKWARD: return [](const UOp&, const Expr& g) { return UOps{contiguous(g)}; };
    case Op::AFTER: return after_rule;
    case Op::CALL: return call_rule;
    case Op::GETTUPLE: return element_rule;
    case Op::TUPLE: return [](const UOp&, const Expr& g) { return UOps(g.src()); };
    case Op::STORE:
    case Op::REALIZED: return [](const UOp&, const Expr& g) { return UOps{UOp(), g}; };
    default: return nullptr;
  }
}

/// What a gradient goes on to: of what is in memory, to what it was computed from.
std::span<const UOp> gradient_sources(const UOp& u) {
  if (stops_gradient(u)) return {};
  return u.is(Op::REALIZED) ? u.src().subspan(1) : scope_sources(u);
}

/// The gradient of a tensor on one device that was used beside those on several comes back to it.
UOp on_one_device_of(const UOp& value, const UOp& g) {
  const Devices to = devices_of(value);
  return to.empty() || to.are_several() || !devices_of(g).are_several() ? g : copy_to(g, to.only());
}

/// Memory on several devices, whose gradient is that of all that its parts are parts of.
bool is_memory_of_shards(const UOp& u) {
  const UOp* x = &u;
  while (x->is(Op::AFTER) || x->is(Op::REALIZED)) x = &x->src(0);
  return x->is(Op::MSTACK);
}

/// A gradient with the shape of its value: axes that were broadcast are summed.
UOp fitted(const UOp& g, const UOp& value) {
  if (value.dtype() == DType::void_ || is_memory_of_shards(value)) return g;  // of a STORE or a TUPLE, too
  const Shape &have = shape_of(g), &want = shape_of(value);
  if (have == want) return on_one_device_of(value, g);
  if (have.empty()) return broadcast_to(g, want);
  Axes axes;
  const size_t added = have.size() - want.size();
  for (size_t i = 0; i < have.size(); ++i)
    if (i < added || (want[i - added] == 1 && !(have[i] == 1))) axes.push_back(int(i));
  return on_one_device_of(value, ops::reshape(sum(g, axes), want));
}

/// The nodes to visit, sources before users: those that a target can be reached from without crossing one that stops gradients.
std::vector<UOp> nodes_on_paths(const UOp& root, const NodeSet& targets) {
  NodeSet reaching;
  std::vector<UOp> out;
  for (const UOp& u : gradient_nodes(root)) {
    bool reaches = targets.contains(u);
    for (const UOp& s : gradient_sources(u)) reaches = reaches || reaching.contains(s);
    if (reaches && reaching.insert(u)) out.push_back(u);
  }
  return out;
}

/// What is in memory is read there, not computed again; but stores that are still to run stay what they are to all others. Memory on
/// several devices is read as the whole that UNSHARD shows.
void read_realized(std::vector<UOp>& gradients, const std::vector<UOp>& path) {
  NodeMap<UOp> memory;
  for (const UOp& u : path) {
    const UOp& known = u.is(Op::UNSHARD) ? u.src(0) : u;
    if (!known.is(Op::REALIZED) || (known == u && devices_of(u).are_several())) continue;
    const UOp* x = &known.src(1);
    while (x->is(Op::RESHAPE)) x = &x->src(0);
    if (u.is(Op::UNSHARD) && x->is(Op::AFTER)) {  // stores to parts of the whole
      UOps before(u.src());
      before[0] = *x;
      memory[u.with_src(before)] = u;
      continue;
    }
    memory[*x] = shape_of(u) == shape_of(*x) ? u : ops::reshape(u, shape_of(*x));
  }
  if (memory.size() == 0) return;
  std::vector<UOp> given;
  for (const UOp& g : gradients)
    if (g) given.push_back(g);
  for (const UOp& u : toposort(given))
    if (u.is(Op::AFTER)) memory.insert(u, u);
  const std::vector<UOp> replaced = substitute(given, memory);
  size_t next = 0;
  for (UOp& g : gradients)
    if (g) g = replaced[next++];
}

}  // namespace

bool stops_gradient(const UOp& u) {
  if (u.is(Op::STORE) || u.is(Op::TUPLE) || u.is(Op::CALL)) return false;
  return u.is(Op::DETACH) || u.is(Op::TRUNC) || u.is(Op::BITCAST) || u.in(Group::comparison) || !is_float(u.dtype());
}

std::vector<UOp> gradient_nodes(const UOp& root) {
  struct Frame {
    UOp node;
    size_t next;
  };
  NodeSet seen;
  std::vector<Frame> stack;
  std::vector<UOp> out;
  const auto visit = [&](const UOp& u) {
    if (seen.insert(u)) stack.push_back({u, 0});
  };
  visit(root);
  while (!stack.empty()) {
    Frame& f = stack.back();
    const auto sources = gradient_sources(f.node);
    if (f.next < sources.size()) {
      visit(sources[f.next++]);
    } else {
      out.push_back(std::move(f.node));
      stack.pop_back();
    }
  }
  return out;
}

GradientRule::GradientRule()
    : id([] {
        static std::atomic<uint64_t> last{0};
        return ++last;
      }()) {}

UOp param_like(const UOp& u, int32_t slot) {
  return UOp(Op::PARAM, u.dtype(), size_nodes(shape_of(u)), ParamArg{.slot = slot, .device = devices_of(u)});
}

UOp call_function(const UOp& body, std::span<const UOp> args, Symbol name, const IntrusivePtr<GradientRule>& rule) {
  FunctionArg arg{.name = name, .gradient_id = rule ? rule->id : 0, .gradient = {}};
  if (rule) arg.gradient = IntrusivePtr<Resource>(rule.get());
  UOps sources{UOp(Op::FUNCTION, body.dtype(), {body}, arg)};
  sources.append(args.begin(), args.end());
  return UOp(Op::CALL, body.dtype(), sources);
}

std::vector<UOp> gradient(const UOp& root, const UOp& root_grad, std::span<const UOp> targets) {
  NodeSet wanted(targets.size());
  for (const UOp& t : targets) wanted.insert(t);
  const std::vector<UOp> path = nodes_on_paths(root, wanted);
  NodeSet on_path(path.size());
  for (const UOp& u : path) on_path.insert(u);
  NodeMap<UOp> grads(path.size());
  if (on_path.contains(root)) grads[root] = fitted(root_grad, root);

  for (size_t i = path.size(); i-- > 0;) {
    const UOp& u = path[i];
    const UOp* own = grads.find(u);
    if (!own || stops_gradient(u)) continue;
    bool needed = false;
    for (const UOp& s : gradient_sources(u)) needed = needed || on_path.contains(s);
    if (!needed) continue;  // a target that depends on no other
    const Rule rule = rule_of(u.op());
    if (!rule) throw ValueError(fmt::format("gradient: {} has no gradient rule; use detach() before it", name(u.op())));
    const UOps parts = rule(u, Expr(*own));
    for (size_t k = 0; k < parts.size(); ++k) {
      const UOp& s = u.src(k);
      if (!parts[k] || !on_path.contains(s)) continue;
      const UOp part = fitted(parts[k], s);
      UOp& total = grads[s];
      total = total ? add_up(total, part) : part;
    }
  }

  std::vector<UOp> out;
  for (const UOp& t : targets) {
    const UOp* g = grads.find(t);
    out.push_back(g ? *g : UOp());
  }
  read_realized(out, path);
  return out;
}

}  // namespace tinygrad::ops
