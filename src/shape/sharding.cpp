#include "shape/sharding.h"

#include <algorithm>

#include <fmt/core.h>

#include "shape/device.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad {

ShardedAxes stored_axes(const ShardingArg& arg) {
  ShardedAxes out = arg.axes;
  for (ShardedAxis& a : out) a.is_gathered = false;
  return out;
}

ShardedAxes read_axes(const ShardingArg& arg) {
  ShardedAxes out;
  for (const ShardedAxis& a : arg.axes)
    if (!a.is_gathered) out.push_back(a);
  return out;
}

bool has_gathered_axes(const ShardingArg& arg) { return std::ranges::any_of(arg.axes, &ShardedAxis::is_gathered); }

Shape shard_shape(const Shape& shape, std::span<const ShardedAxis> axes) {
  Shape out = shape;
  for (const ShardedAxis& a : axes) {
    SInt& n = out[size_t(a.axis)];
    n = ceil_div(n, SInt(a.mesh.count));
  }
  return out;
}

int64_t size_before_cut(const Shape& shape, std::span<const ShardedAxis> axes, size_t number) {
  int64_t n = shape[size_t(axes[number].axis)].value();
  for (const ShardedAxis& a : axes.first(number))
    if (a.axis == axes[number].axis) n = (n + a.mesh.count - 1) / a.mesh.count;
  return n;
}

bool overlap(const MeshAxis& a, const MeshAxis& b) {
  return a.stride < b.stride * b.count && b.stride < a.stride * a.count && a.count > 1 && b.count > 1;
}

namespace {

bool is_one(const SInt& n) { return n.known() && n.value() == 1; }

int64_t cuts_of(const ShardedAxes& axes, int axis) {
  int64_t n = 1;
  for (const ShardedAxis& a : axes)
    if (a.axis == axis) n *= a.mesh.count;
  return n;
}

/// Those for whose axis `f` has a place; it gives -1 for one that has none.
template <class F>
ShardedAxes renamed(const ShardedAxes& axes, F&& f) {
  ShardedAxes out;
  for (const ShardedAxis& a : axes)
    if (const int now = f(a.axis); now >= 0) out.push_back({now, a.mesh});
  return out;
}

template <class F>
ShardedAxes kept(const ShardedAxes& axes, F&& f) {
  return renamed(axes, [&](int axis) { return f(axis) ? axis : -1; });
}

/// Of several values of one shape: what the first is divided by, and what others are besides where nothing is in the way.
ShardedAxes joined(std::span<const ShardedAxes* const> all) {
  ShardedAxes out;
  for (const ShardedAxes* axes : all) {
    const ShardedAxes before = out;
    for (const ShardedAxis& a : *axes) {
      const auto is_in_the_way = [&](const ShardedAxis& o) { return o.axis == a.axis || overlap(o.mesh, a.mesh); };
      if (std::ranges::none_of(before, is_in_the_way)) out.push_back(a);
    }
  }
  return out;
}

/// How many elements there are in what a view shows.
double weight_of(const UOp& u) {
  const UOp* x = &u;
  while (x->in(Group::movement) || x->in(Group::identity) || x->in(Group::convert) || x->is(Op::SHARD)) {
    if (x->is(Op::UNSHARD)) break;
    x = &x->src(0);
  }
  double n = 1;
  for (const SInt& s : shape_of(*x)) n *= double(s.max());
  return n;
}

/// Sources of one shape; what has most elements is not moved.
Spread spread_elementwise(const UOp& u, std::span<const ShardedAxes> sources) {
  std::vector<size_t> order;
  for (size_t i = 0; i < sources.size(); ++i)
    if (!sources[i].empty()) order.push_back(i);
  if (order.size() > 1) {
    std::vector<double> weights;
    for (const UOp& s : u.src()) weights.push_back(weight_of(s));
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  }
  std::vector<const ShardedAxes*> all;
  for (size_t i : order) all.push_back(&sources[i]);
  Spread out{.sources = {}, .result = joined(all)};
  for (const UOp& s : u.src()) {
    const bool is_whole = s.dtype() == DType::void_ || shape_of(s).empty();
    out.sources.push_back(is_whole ? ShardedAxes() : out.result);
  }
  return out;
}

/// Axes of one place in memory that a RESHAPE makes other axes of.
struct Run {
  size_t in, in_end, out, out_end;
};

std::vector<Run> runs_of(const Shape& in, const Shape& out) {
  std::vector<Run> runs;
  size_t i = 0, j = 0;
  while (i < in.size() || j < out.size()) {
    Run run{i, i, j, j};
    SInt a = 1, b = 1;
    if (i < in.size()) a = in[i++];
    if (j < out.size()) b = out[j++];
    while (a != b) {
      const bool more_in = i < in.size(), more_out = j < out.size();
      if (!more_in && !more_out) break;
      const bool take_in = a.known() && b.known() ? a.value() < b.value() : more_in;
      if (more_in && (take_in || !more_out))
        a = a * in[i++];
      else
        b = b * out[j++];
    }
    run.in_end = i;
    run.out_end = j;
    runs.push_back(run);
  }
  return runs;
}

/// The axis of `out` whose equal parts are those of the axis of `in`; -1 if there is none.
int reshaped_axis(const Shape& in, const Shape& out, int axis, int64_t cuts) {
  const auto at = size_t(axis);
  for (const Run& run : runs_of(in, out)) {
    if (at < run.in || at >= run.in_end) continue;
    for (size_t i = run.in; i < at; ++i)
      if (!is_one(in[i])) return -1;
    size_t to = run.out;
    const auto fits = [&](size_t j) {
      if (!out[j].known() || !in[at].known()) return false;
      return out[j] == in[at] || (in[at].value() % cuts == 0 && out[j].value() % cuts == 0);
    };
    while (to < run.out_end && is_one(out[to]) && !fits(to)) ++to;
    return to < run.out_end && fits(to) ? int(to) : -1;
  }
  return -1;
}

Spread of_one(ShardedAxes source, ShardedAxes result, size_t count) {
  Spread out{.sources = {std::move(source)}, .result = std::move(result)};
  out.sources.resize(count);
  return out;
}

Spread spread_reshape(const UOp& u, const ShardedAxes& x) {
  const Shape &in = shape_of(u.src(0)), &out = shape_of(u);
  const auto place = [&](int axis) { return reshaped_axis(in, out, axis, cuts_of(x, axis)); };
  return of_one(kept(x, [&](int axis) { return place(axis) >= 0; }), renamed(x, place), u.src_count());
}

Spread spread_reduce(const UOp& u, const ShardedAxes& x) {
  const Axes& axes = u.arg_as<ReduceArg>().axes;
  const auto is_reduced = [&](int axis) { return std::ranges::find(axes, axis) != axes.end(); };
  const auto place = [&](int axis) {
    return is_reduced(axis) ? -1 : axis - int(std::ranges::count_if(axes, [&](int a) { return a < axis; }));
  };
  Spread out = of_one(x, renamed(x, place), u.src_count());
  for (const ShardedAxis& a : x)
    if (is_reduced(a.axis)) out.reduced.push_back(a.mesh);
  return out;
}

Spread spread_kept(const UOp& u, const ShardedAxes& x, FunctionRef<bool(int axis)> keeps) {
  const ShardedAxes axes = kept(x, keeps);
  return of_one(axes, axes, u.src_count());
}

/// New in front of all axes.
Spread spread_stack(const UOp& u, std::span<const ShardedAxes> sources) {
  Spread out = spread_elementwise(u, sources);
  out.result = renamed(out.result, [](int axis) { return axis + 1; });
  return out;
}

}  // namespace

Spread spread(const UOp& u, std::span<const ShardedAxes> sources) {
  const ShardedAxes none;
  const ShardedAxes& x = sources.empty() ? none : sources[0];
  switch (u.op()) {
    case Op::SHARD: return of_one(stored_axes(u.arg_as<ShardingArg>()), stored_axes(u.arg_as<ShardingArg>()), u.src_count());
    case Op::UNSHARD: return of_one(read_axes(u.arg_as<ShardingArg>()), read_axes(u.arg_as<ShardingArg>()), u.src_count());
    case Op::COPY: return of_one(x, {}, 1);
    case Op::RESHAPE: return spread_reshape(u, x);
    case Op::REDUCE: return spread_reduce(u, x);
    case Op::STACK: return spread_stack(u, sources);
    case Op::PERMUTE: {
      const Axes& axes = u.arg_as<AxesArg>().axes;
      return of_one(x, renamed(x, [&](int axis) { return int(std::ranges::find(axes, axis) - axes.begin()); }), 1);
    }
    case Op::EXPAND: {
      const Shape &in = shape_of(u.src(0)), &out = shape_of(u);
      return spread_kept(u, x, [&](int axis) { return in[size_t(axis)] == out[size_t(axis)]; });
    }
    case Op::FLIP: {
      const Axes& axes = u.arg_as<AxesArg>().axes;
      return spread_kept(u, x, [&](int axis) { return std::ranges::find(axes, axis) == axes.end(); });
    }
    case Op::PAD:
    case Op::SHRINK: {
      const Shape &in = shape_of(u.src(0)), &out = shape_of(u);
      return spread_kept(u, x, [&](int axis) { return in[size_t(axis)] == out[size_t(axis)]; });
    }
    default: break;
  }
  if (u.in(Group::identity) || u.is(Op::REALIZED) || u.is(Op::AFTER)) return of_one(x, x, u.src_count());
  return spread_elementwise(u, sources);
}

std::optional<ShardedAxes> below_view(const UOp& view, const ShardedAxes& axes) {
  const Shape &in = shape_of(view.src(0)), &out = shape_of(view);
  switch (view.op()) {
    case Op::EXPAND:
      if (in.empty()) return ShardedAxes();
      return kept(axes, [&](int axis) { return in[size_t(axis)] == out[size_t(axis)]; });
    case Op::PERMUTE: return renamed(axes, [&](int axis) { return view.arg_as<AxesArg>().axes[size_t(axis)]; });
    case Op::RESHAPE: {
      ShardedAxes below = renamed(axes, [&](int axis) { return reshaped_axis(out, in, axis, cuts_of(axes, axis)); });
      return below.size() == axes.size() ? std::optional(std::move(below)) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

const ShardedAxes& Shardings::of(const UOp& root) {
  if (const ShardedAxes* known = known_.find(root)) return *known;
  for (const UOp& u : toposort_where(std::span(&root, 1), [&](const UOp& n) { return !known_.contains(n) && !n.is(Op::UNSHARD); })) {
    if (known_.contains(u)) continue;
    ShardedAxes result;
    if (u.is(Op::UNSHARD)) {
      result = read_axes(u.arg_as<ShardingArg>());
    } else if (u.dtype() != DType::void_ && devices_of(u).are_several()) {
      std::vector<ShardedAxes> sources;
      for (const UOp& s : scope_sources(u)) {
        const ShardedAxes* known = known_.find(s);
        sources.push_back(known && s.dtype() != DType::index ? *known : ShardedAxes());
      }
      result = spread(u, sources).result;
    }
    known_[u] = std::move(result);
  }
  return *known_.find(root);
}

std::string to_string(std::span<const ShardedAxis> axes) {
  std::string out;
  for (const ShardedAxis& a : axes)
    out += fmt::format("{}axis {} over {}{}", out.empty() ? "" : ", ", a.axis, a.mesh.count, a.is_gathered ? ", gathered by readers" : "");
  return out.empty() ? "copies" : out;
}

}  // namespace tinygrad
