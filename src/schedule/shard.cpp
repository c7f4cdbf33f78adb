#include "schedule/shard.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "shape/device.h"
#include "shape/sharding.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/reduce.h"

namespace tinygrad::schedule {

namespace {

UOp place_along(const Devices& devices, const MeshAxis& m) {
  const Devices places = devices.apart().with_values([&](size_t s) { return uint64_t(m.at(s)); });
  return UOp(Op::VAR, DType::index, {}, VarArg{Symbol(fmt::format("_shard_{}_{}", m.count, m.stride)), 0, m.count - 1, places});
}

/// The first n along an axis.
UOp first_of(const UOp& x, int axis, int64_t n) {
  SmallVector<std::pair<SInt, SInt>, 6> box;
  for (const SInt& s : shape_of(x)) box.push_back({0, s});
  if (box[size_t(axis)].second == n) return x;
  box[size_t(axis)].second = n;
  return tinygrad::shrink(x, box);
}

UOp padded_to(const UOp& x, int axis, int64_t n) {
  const Shape& shape = shape_of(x);
  const int64_t have = shape[size_t(axis)].value();
  if (have == n) return x;
  SmallVector<std::pair<SInt, SInt>, 6> box(shape.size(), {0, 0});
  box[size_t(axis)].second = n - have;
  return tinygrad::pad(x, box);
}

UOp collective(const UOp& x, CollectiveArg arg) {
  const UOp out(Op::COLLECTIVE, x.dtype(), {x}, std::move(arg));
  const Shape& shape = shape_of(out);
  return is_empty(shape) ? tinygrad::expand(constant(x.dtype(), 0), shape) : out;  // nothing moves
}

/// The parts along one cut, which are the axis `from`, one after another along `axis` of the rest.
UOp joined(const UOp& x, int from, int axis, int64_t n) {
  Axes order;
  const int rank = int(shape_of(x).size());
  for (int i = 0, rest = 0; i < rank; ++i) {
    if (i == from) continue;
    if (rest++ == axis) order.push_back(from);
    order.push_back(i);
  }
  const UOp moved = permute(x, order);
  Shape shape;
  const Shape& apart = shape_of(moved);
  for (int i = 0; i < rank; ++i) {
    if (i == axis) {
      shape.push_back(apart[size_t(i)] * apart[size_t(i) + 1]);
      ++i;
    } else {
      shape.push_back(apart[size_t(i)]);
    }
  }
  return first_of(tinygrad::reshape(moved, shape), axis, n);
}

/// The other way: cut into `count` parts, which become the axis `to`.
UOp taken_apart(const UOp& x, int axis, int to, int64_t count) {
  const int64_t part = (shape_of(x)[size_t(axis)].value() + count - 1) / count;
  const UOp even = padded_to(x, axis, part * count);
  Shape shape = shape_of(even);
  shape[size_t(axis)] = count;
  shape.insert(shape.begin() + axis + 1, SInt(part));
  Axes order;
  for (int i = 0; i < int(shape.size()); ++i)
    if (i != axis) order.push_back(i);
  order.insert(order.begin() + to, axis);
  return permute(tinygrad::reshape(even, shape), order);
}

/// Without the last cut of the list along its axis.
UOp gathered(const UOp& x, const Shape& shape, const ShardedAxes& axes, size_t number, const Devices& devices, bool is_transient) {
  const ShardedAxis& a = axes[number];
  const UOp all = collective(x, {.kind = Collective::allgather, .is_transient = is_transient, .devices = devices, .along = {a.mesh}});
  return joined(all, 0, a.axis, size_before_cut(shape, axes, number));
}

/// With one cut more than those before it. Of a sum over the shards each needs its part alone.
UOp cut(const UOp& x, const ShardedAxis& a, const Devices& devices) {
  if (x.is(Op::COLLECTIVE)) {
    CollectiveArg arg = x.arg_as<CollectiveArg>();
    if (arg.kind == Collective::allreduce && arg.along.size() == 1 && arg.along[0] == a.mesh) {
      arg.kind = Collective::reducescatter;
      // The terms are computed as for an all-reduce, so that they are the same.
      const UOp terms(Op::CONTIGUOUS, x.dtype(), {x.src(0)});
      return collective(taken_apart(terms, a.axis, 0, a.mesh.count), std::move(arg));
    }
  }
  const int64_t n = shape_of(x)[size_t(a.axis)].value(), part = (n + a.mesh.count - 1) / a.mesh.count;
  const UOp even = padded_to(x, a.axis, part * a.mesh.count);
  const SInt begin = SInt(place_along(devices, a.mesh)) * part;
  SmallVector<std::pair<SInt, SInt>, 6> box;
  for (const SInt& s : shape_of(even)) box.push_back({0, s});
  box[size_t(a.axis)] = {begin, begin + part};
  return tinygrad::shrink(even, box);
}

/// How many of the cuts along an axis both lists begin with.
size_t common_cuts(const ShardedAxes& a, const ShardedAxes& b, int axis) {
  const auto along = [axis](const ShardedAxes& axes) {
    SmallVector<MeshAxis, 2> out;
    for (const ShardedAxis& x : axes)
      if (x.axis == axis) out.push_back(x.mesh);
    return out;
  };
  const auto mine = along(a), theirs = along(b);
  size_t n = 0;
  while (n < mine.size() && n < theirs.size() && mine[n] == theirs[n]) ++n;
  return n;
}

/// Divided in another way, on the same devices.
UOp resharded(UOp x, const Shape& shape, const ShardedAxes& from, const ShardedAxes& to, const Devices& devices,
              bool is_transient = false) {
  ShardedAxes have = from;
  for (size_t i = have.size(); i-- > 0;) {
    const int axis = have[i].axis;
    const auto cuts_before = size_t(std::count_if(have.begin(), have.begin() + i, [&](const ShardedAxis& a) { return a.axis == axis; }));
    if (cuts_before < common_cuts(have, to, axis)) continue;
    x = gathered(x, shape, have, i, devices, is_transient);
    have.erase(have.begin() + i);
  }
  SmallVector<size_t, 6> seen(shape.size(), 0);
  for (const ShardedAxis& a : to)
    if (seen[size_t(a.axis)]++ >= common_cuts(from, to, a.axis)) x = cut(x, a, devices);
  return x;
}

class Sharder {
 public:
  UOp of(const UOp& root) {
    roots_.push_back(root);
    for (const UOp& u : toposort(root))
      if (!done_.contains(u)) {
        UOp local = make(u);
        done_[u] = std::move(local);
      }
    return done_[root];
  }

 private:
  UOp make(const UOp& u) {
    const Devices devices = devices_of(u);
    if (u.is(Op::COPY) && devices_of(u.src(0)).are_several()) return on_one(u.src(0), u.arg_as<DeviceArg>().device);
    if (!devices.are_several() || u.is(Op::VAR)) return u.with_src(done(u.src()));
    if (u.is(Op::MSTACK)) return memory(u);
    if (is_memory(u)) return u.with_src(done(u.src()));
    if (u.is(Op::STORE)) return store(u, devices);
    if (u.in(Group::effect)) return u.with_src(done(u.src()));
    return value(u, devices);
  }

  /// What is on several devices below an UNSHARD: parts already.
  static bool is_memory(const UOp& u) { return u.is(Op::AFTER) && (u.src(0).is(Op::MSTACK) || is_memory(u.src(0))); }

  UOp memory(const UOp& u) {
    const int32_t first = done_[u.src(0)].arg_as<ParamArg>().slot;
    for (size_t i = 0; i < u.src_count(); ++i)
      if (done_[u.src(i)].arg_as<ParamArg>().slot != first + int32_t(i)) throw InternalError("shard: the parts of memory are not in order");
    return UOp(Op::PARAM, u.dtype(), done_[u.src(0)].src(), ParamArg{.slot = first, .device = u.arg_as<ShardingArg>().devices});
  }

  UOp value(const UOp& u, const Devices& devices) {
    std::vector<ShardedAxes> given;
    for (const UOp& s : u.src()) {
      const ShardedAxes* known = axes_.find(s);
      given.push_back(known ? *known : ShardedAxes());
    }
    const Spread how = spread(u, given);
    axes_[u] = how.result;
    if (u.is(Op::SHARD)) return divided(u.src(0), devices, how.result);
    if (u.is(Op::UNSHARD)) return read(u, devices, how.result);
    UOps sources;
    for (size_t i = 0; i < u.src_count(); ++i) sources.push_back(divided(u.src(i), devices, how.sources[i]));
    switch (u.op()) {
      case Op::KNOWN: return sources[0];
      case Op::RESHAPE: return tinygrad::reshape(sources[0], shard_shape(shape_of(u), how.result));
      case Op::EXPAND: return tinygrad::expand(sources[0], shard_shape(shape_of(u), how.result));
      case Op::SHRINK:
        for (size_t i = 0; i < shape_of(u).size(); ++i)
          if (shape_of(u)[i] == shape_of(u.src(0))[i]) sources[2 + 2 * i] = shape_of(sources[0])[i].uop();
        break;
      case Op::REDUCE: return reduced(u, sources, how);
      default: break;
    }
    return u.with_src(sources);
  }

  /// What the shards have of memory.
  UOp shards_of(const UOp& memory) {
    return tinygrad::reshape(done_[memory.src(0)], shard_shape(shape_of(memory), stored_axes(memory.arg_as<ShardingArg>())));
  }

  UOp read(const UOp& memory, const Devices& devices, const ShardedAxes& axes) {
    return resharded(shards_of(memory), shape_of(memory), stored_axes(memory.arg_as<ShardingArg>()), axes, devices, true);
  }

  /// Of the shards, then of all of them. What is no element of the value does not count.
  UOp reduced(const UOp& u, UOps& sources, const Spread& how) {
    const ReduceArg& arg = u.arg_as<ReduceArg>();
    const Shape& shape = shape_of(u.src(0));
    const Devices devices = devices_of(u);
    for (int axis : arg.axes) {
      ShardedAxes cuts;
      for (const ShardedAxis& a : how.sources[0])
        if (a.axis == axis) cuts.push_back({0, a.mesh});
      if (cuts.empty()) continue;
      const Shape line{shape[size_t(axis)]};
      UOp inside = resharded(tinygrad::expand(bool_const(true), line), line, {}, cuts, devices);
      if (is_padded(line, cuts)) {
        Shape rank(shape.size(), 1);
        rank[size_t(axis)] = shape_of(inside)[0];
        inside = tinygrad::expand(tinygrad::reshape(inside, rank), shape_of(sources[0]));
        const UOp nothing = reduce_identity(arg.op, u.dtype());
        sources[0] = where(inside, sources[0], nothing);
      }
    }
    const UOp part = reduced_here(u, sources);
    return how.reduced.empty() ? part
                               : collective(part, {.kind = Collective::allreduce, .op = arg.op, .devices = devices, .along = how.reduced});
  }

  /// A shard may have one element of an axis: then there is nothing to reduce, and what it has is moved as it lies in memory.
  static UOp reduced_here(const UOp& u, const UOps& sources) {
    const ReduceArg& arg = u.arg_as<ReduceArg>();
    UOp all = u.with_src(sources);
    if (sources.size() > 1 || arg.op == Op::FUNCTION) return all;
    Axes axes;
    for (const int axis : arg.axes)
      if (!(shape_of(sources[0])[size_t(axis)] == 1)) axes.push_back(axis);
    if (axes.size() == arg.axes.size()) return all;
    return tinygrad::reshape(axes.empty() ? sources[0] : tinygrad::reduce(arg.op, sources[0], axes), shape_of(all));
  }

  static bool is_padded(const Shape& line, const ShardedAxes& cuts) {
    for (size_t i = 0; i < cuts.size(); ++i)
      if (size_before_cut(line, cuts, i) % cuts[i].mesh.count != 0) return true;
    return false;
  }

  /// What has the same value and is computed where it is used.
  static const UOp& value_of(const UOp& u) {
    const UOp* x = &u;
    while (x->in(Group::identity) && !x->is(Op::CONTIGUOUS)) x = &x->src(0);
    return *x;
  }

  /// A source as the shards need it.
  UOp divided(const UOp& u, const Devices& devices, const ShardedAxes& axes) {
    const UOp& local = done_[u];
    if (u.dtype() == DType::void_ || u.dtype() == DType::index) return local;
    const Devices from = devices_of(u);
    if (from.empty()) return resharded(local, shape_of(u), {}, axes, devices);
    if (!from.are_several()) return scattered(local, devices, axes);
    if (from.has_same_shards(devices)) return moved(u, devices, axes);
    return scattered(on_one(u, from.first()), devices, axes);
  }

  /// Divided in another way, on the same devices. What a view shows is moved before it is shown several times.
  UOp moved(const UOp& u, const Devices& devices, const ShardedAxes& axes) {
    const ShardedAxes& from = axes_[u];
    if (from == axes) return done_[u];
    const UOp& x = value_of(u);
    if (x.is(Op::UNSHARD)) return read(x, devices, axes);
    UOps sources(x.src());
    if (is_by_element(x) && has_sums(x, 6)) {
      for (UOp& s : sources) s = divided(s, devices, shape_of(s).empty() ? ShardedAxes() : axes);
      return x.with_src(sources);
    }
    if (const std::optional<ShardedAxes> below = below_view(x, axes)) {
      sources[0] = divided(x.src(0), devices, *below);
      if (x.is(Op::PERMUTE)) return x.with_src(sources);
      const Shape shape = shard_shape(shape_of(x), axes);
      return x.is(Op::EXPAND) ? tinygrad::expand(sources[0], shape) : tinygrad::reshape(sources[0], shape);
    }
    return resharded(done_[u], shape_of(u), from, axes, devices);
  }

  /// Whether sums over the shards are in it, of which each shard that needs a part of it needs that part alone.
  bool has_sums(const UOp& u, int depth) const {
    const UOp& x = value_of(u);
    const UOp* local = done_.find(x);
    if (local && local->is(Op::COLLECTIVE) && local->arg_as<CollectiveArg>().kind == Collective::allreduce) return true;
    const bool is_looked_into = is_by_element(x) || x.is(Op::PERMUTE) || x.is(Op::RESHAPE);
    return is_looked_into && depth > 0 && std::ranges::any_of(x.src(), [&](const UOp& s) { return has_sums(s, depth - 1); });
  }
  static bool is_by_element(const UOp& u) { return u.in(Group::alu) || u.is(Op::CAST); }

  static UOp scattered(const UOp& x, const Devices& devices, const ShardedAxes& axes) {
    CollectiveArg arg{.kind = Collective::scatter, .devices = devices};
    UOp apart = x;
    for (size_t i = 0; i < axes.size(); ++i) {
      apart = taken_apart(apart, axes[i].axis + int(i), int(i), axes[i].mesh.count);
      arg.along.push_back(axes[i].mesh);
    }
    Shape shape{SInt(arg.count())};
    shape.append(shape_of(apart).begin() + axes.size(), shape_of(apart).end());
    return collective(tinygrad::reshape(apart, shape), std::move(arg));
  }

  /// A value of several devices, all of it.
  UOp on_one(const UOp& u, Symbol device) {
    const UOp& value = value_of(u);
    const bool is_memory = value.is(Op::UNSHARD);
    const ShardedAxes axes = is_memory ? stored_axes(value.arg_as<ShardingArg>()) : axes_[u];
    CollectiveArg arg{.kind = Collective::gather, .devices = device};
    Shape shape;
    for (const ShardedAxis& a : axes) {
      arg.along.push_back(a.mesh);
      shape.push_back(a.mesh.count);
    }
    const UOp local = is_memory ? shards_of(value) : done_[u];
    shape.append(shape_of(local).begin(), shape_of(local).end());
    UOp out = tinygrad::reshape(collective(local, std::move(arg)), shape);
    for (size_t i = axes.size(); i-- > 0;) out = joined(out, int(i), int(i) + axes[i].axis, size_before_cut(shape_of(u), axes, i));
    return out;
  }

  UOp store(const UOp& u, const Devices& devices) {
    const UOp &target = u.src(0), &written = u.src(1);
    const bool is_all = target.is(Op::UNSHARD);
    if (is_all || is_of_each_shard(target)) {
      const ShardedAxes axes = is_all ? stored_axes(target.arg_as<ShardingArg>()) : axes_[target];
      return tinygrad::store(is_all ? shards_of(target) : done_[target],
                             divided(written, devices, shape_of(written).empty() ? ShardedAxes() : axes));
    }
    return of(whole_store(target, written));
  }

  /// Whether the elements of a view are those of the shards' memory, shard by shard.
  bool is_of_each_shard(const UOp& view) const {
    const UOp* u = &view;
    for (; !u->is(Op::UNSHARD); u = &u->src(0)) {
      const ShardedAxes& below = *axes_.find(u->src(0));
      if (spread(*u, std::span(&below, 1)).sources[0] != below) return false;
    }
    return !has_gathered_axes(u->arg_as<ShardingArg>());
  }

  /// The store into a view as one of all that the view shows elements of.
  static UOp whole_store(const UOp& target, const UOp& written) {
    const Shape& shape = shape_of(target);
    UOp all = shape_of(written).empty() && !shape.empty() ? tinygrad::expand(written, shape) : written;
    UOp inside = shape.empty() ? bool_const(true) : tinygrad::expand(bool_const(true), shape);
    const UOp* u = &target;
    for (; !u->is(Op::UNSHARD); u = &u->src(0)) {
      all = below(*u, all);
      inside = below(*u, inside);
    }
    const ShardingArg& arg = u->arg_as<ShardingArg>();
    const UOp before(Op::SHARD, u->dtype(), {*u}, ShardingArg{arg.devices, stored_axes(arg)});
    return tinygrad::store(*u, where(inside, all, before));
  }

  /// Where the elements of a view's value are in what it shows; 0 elsewhere.
  static UOp below(const UOp& link, const UOp& x) {
    const Shape& in = shape_of(link.src(0));
    SmallVector<std::pair<SInt, SInt>, 6> box;
    switch (link.op()) {
      case Op::RESHAPE: return tinygrad::reshape(x, in);
      case Op::FLIP: return flip(x, link.arg_as<AxesArg>().axes);
      case Op::PERMUTE: {
        const Axes& axes = link.arg_as<AxesArg>().axes;
        Axes inverse(axes.size(), 0);
        for (size_t i = 0; i < axes.size(); ++i) inverse[size_t(axes[i])] = int(i);
        return permute(x, inverse);
      }
      case Op::SHRINK:
        for (size_t i = 0; i < in.size(); ++i) box.push_back({SInt(link.src(1 + 2 * i)), in[i] - SInt(link.src(2 + 2 * i))});
        return tinygrad::pad(x, box);
      case Op::PAD:
        for (size_t i = 0; i < in.size(); ++i) box.push_back({SInt(link.src(1 + 2 * i)), SInt(link.src(1 + 2 * i)) + in[i]});
        return tinygrad::shrink(x, box);
      default: throw InternalError(fmt::format("shard: a store through a {}", name(link.op())));
    }
  }

  UOps done(std::span<const UOp> sources) {
    UOps out;
    for (const UOp& s : sources) {
      const UOp* d = done_.find(s);  // none inside a closed scope
      out.push_back(d ? *d : s);
    }
    return out;
  }

  std::vector<UOp> roots_;  // hold the keys
  NodeMap<UOp> done_;
  NodeMap<ShardedAxes> axes_;
};

}  // namespace

UOp shard(const UOp& sink) {
  const auto is_several = [](const UOp* u) { return u->dtype() != DType::void_ && devices_of(*u).are_several(); };
  return std::ranges::any_of(borrowed_toposort(sink), is_several) ? Sharder().of(sink) : sink;
}

}  // namespace tinygrad::schedule
