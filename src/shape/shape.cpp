#include "shape/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include <algorithm>

#include "shape/bottom_up.h"
#include "shape/device.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad {

namespace {

/// Nodes share the shape of their source where it is the same: a chain of a million additions has one.
struct ShapeBox {
  explicit ShapeBox(Shape s) : shape(std::move(s)) {}
  void retain() const noexcept { count.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (count.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  const Shape shape;
  mutable std::atomic<uint32_t> count{0};
};
using Boxed = IntrusivePtr<const ShapeBox>;

struct ShapeFact final : CachedFact {
  explicit ShapeFact(Boxed b) : box(std::move(b)) {}
  Boxed box;
};

const Boxed& box_of(const UOp& u) { return static_cast<const ShapeFact*>(u->fact(FactSlot::shape))->box; }
const Shape& done_shape(const UOp& u) { return box_of(u)->shape; }
Boxed box(Shape shape) { return Boxed(new ShapeBox(std::move(shape))); }
const Boxed& scalar_box() {
  static const Boxed& empty = *new Boxed(new ShapeBox({}));  // never destroyed: users have global tensors
  return empty;
}

template <class... Args>
[[noreturn]] void fail(const UOp& u, fmt::format_string<Args...> format, Args&&... args) {
  throw ShapeError(fmt::format("{}: {}", name(u.op()), fmt::format(format, std::forward<Args>(args)...)));
}

/// The sources after the first as sizes.
Shape trailing_sizes(const UOp& u, size_t first) { return make_shape(u.src().subspan(first)); }

/// No size is negative, and the elements can be counted.
void check_sizes(const UOp& u, const Shape& shape) {
  int64_t count = 1;
  bool overflows = false, none = false;
  for (const SInt& s : shape) {
    if (surely_less(s, 0)) fail(u, "the shape {} has a negative size", to_string(shape));
    none = none || s == 0;
    overflows = overflows || (s.known() && __builtin_mul_overflow(count, s.value(), &count));
  }
  if (overflows && !none) fail(u, "the shape {} has more elements than 64 bits can count", to_string(shape));
}

void check_axes(const UOp& u, const Axes& axes, size_t rank) {
  uint64_t seen = 0;
  if (rank > 64) fail(u, "{} axes, expects at most 64", rank);
  for (int a : axes) {
    if (a < 0 || size_t(a) >= rank) fail(u, "axis {} is not one of the {} axes of {}", a, rank, to_string(done_shape(u.src(0))));
    if (seen >> a & 1) fail(u, "axis {} is given twice", a);
    seen |= uint64_t(1) << a;
  }
}

bool may_be_equal(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (surely_differ(a[i], b[i])) return false;
  return true;
}

/// The one shape of several sources, where () stands for every element.
Boxed common(const UOp& u, std::span<const UOp> sources) {
  const UOp* first = nullptr;
  for (const UOp& s : sources) {
    if (done_shape(s).empty()) continue;
    if (!first) {
      first = &s;
    } else if (box_of(*first) != box_of(s) && !may_be_equal(done_shape(*first), done_shape(s))) {
      fail(u, "the sources have the shapes {} and {}; reshape and expand them to one shape first", to_string(done_shape(*first)),
           to_string(done_shape(s)));
    }
  }
  return first ? box_of(*first) : scalar_box();
}

Boxed reshape_rule(const UOp& u) {
  const Shape& in = done_shape(u.src(0));
  Shape out = trailing_sizes(u, 1);
  check_sizes(u, out);
  if (surely_differ(numel(in), numel(out)))
    fail(u, "cannot view {} as {}: {} elements against {}", to_string(in), to_string(out), to_string(numel(in)), to_string(numel(out)));
  return box(std::move(out));
}

Boxed expand_rule(const UOp& u) {
  const Shape& in = done_shape(u.src(0));
  Shape out = trailing_sizes(u, 1);
  check_sizes(u, out);
  if (in.empty()) return box(std::move(out));
  if (in.size() != out.size()) fail(u, "cannot expand {} to {}: the number of axes differs; reshape first", to_string(in), to_string(out));
  for (size_t i = 0; i < in.size(); ++i)
    if (surely_differ(in[i], 1) && surely_differ(in[i], out[i]))
      fail(u, "cannot expand {} to {}: axis {} has size {}, only an axis of size 1 can grow", to_string(in), to_string(out), i,
           to_string(in[i]));
  return box(std::move(out));
}

Boxed permute_rule(const UOp& u) {
  const Shape& in = done_shape(u.src(0));
  const Axes& axes = u.arg_as<AxesArg>().axes;
  check_axes(u, axes, in.size());
  if (axes.size() != in.size()) fail(u, "({}) does not list every axis of {}", fmt::join(axes, ", "), to_string(in));
  Shape out;
  for (int a : axes) out.push_back(in[size_t(a)]);
  return box(std::move(out));
}

void check_pairs(const UOp& u, const Shape& in, const Shape& pairs) {
  if (pairs.size() != 2 * in.size()) fail(u, "{} needs two numbers an axis, got {} for {} axes", to_string(in), pairs.size(), in.size());
}

Boxed pad_rule(const UOp& u) {
  const Shape& in = done_shape(u.src(0));
  const Shape pairs = trailing_sizes(u, 1);
  check_pairs(u, in, pairs);
  Shape out;
  for (size_t i = 0; i < in.size(); ++i) {
    const SInt &before = pairs[2 * i], &after = pairs[2 * i + 1];
    if (surely_less(before, 0) || surely_less(after, 0))
      fail(u, "negative padding ({}, {}) of axis {}; use shrink to cut", to_string(before), to_string(after), i);
    out.push_back(before + in[i] + after);
  }
  return box(std::move(out));
}

Boxed shrink_rule(const UOp& u) {
  const Shape& in = done_shape(u.src(0));
  const Shape pairs = trailing_sizes(u, 1);
  check_pairs(u, in, pairs);
  Shape out;
  for (size_t i = 0; i < in.size(); ++i) {
    const SInt &begin = pairs[2 * i], &stop = pairs[2 * i + 1];
    if (surely_less(begin, 0) || surely_less(stop, begin) || surely_less(in[i], stop))
      fail(u, "[{}, {}) is not within axis {} of {}", to_string(begin), to_string(stop), i, to_string(in));
    out.push_back(stop - begin);
  }
  return box(std::move(out));
}

Boxed without_axes(const UOp& u, const Boxed& in, const Axes& axes) {
  check_axes(u, axes, in->shape.size());
  if (axes.empty()) return in;
  Shape out;
  for (size_t i = 0; i < in->shape.size(); ++i)
    if (std::find(axes.begin(), axes.end(), int(i)) == axes.end()) out.push_back(in->shape[i]);
  return box(std::move(out));
}

Boxed reduce_rule(const UOp& u) {
  const Axes& axes = u.arg_as<ReduceArg>().axes;
  if (!is_general_reduce(u)) return without_axes(u, box_of(u.src(0)), axes);
  Boxed out = without_axes(u, common(u, u.src(0).src()), axes);
  for (const UOp& identity : u.src(1).src())
    if (!done_shape(identity).empty() && !may_be_equal(done_shape(identity), out->shape))
      fail(u, "an identity has the shape {}, the carried values {}", to_string(done_shape(identity)), to_string(out->shape));
  return out;
}

Boxed index_rule(const UOp& u) {
  const Boxed& at = box_of(u.src(1));
  if (u.src_count() > 2 && !done_shape(u.src(2)).empty() && !may_be_equal(at->shape, done_shape(u.src(2))))
    fail(u, "the index has the shape {}, its validity {}", to_string(at->shape), to_string(done_shape(u.src(2))));
  const int width = u.arg_as<IndexArg>().width;
  if (width == 1) return at;
  Shape out = at->shape;
  out.push_back(width);
  return box(std::move(out));
}

Boxed stack_rule(const UOp& u) {
  const Shape& in = done_shape(u.src(0));
  for (const UOp& s : u.src())
    if (!may_be_equal(in, done_shape(s))) fail(u, "the sources have the shapes {} and {}", to_string(in), to_string(done_shape(s)));
  Shape out{SInt(u.src_count())};
  out.append(in.begin(), in.end());
  return box(std::move(out));
}

/// What STORE, LOAD's alternative and the like may put in the place of `target`.
void check_fits(const UOp& u, const UOp& target, const UOp& value, std::string_view what) {
  if (!done_shape(value).empty() && !may_be_equal(done_shape(target), done_shape(value)))
    fail(u, "{} has the shape {}, the place for it {}", what, to_string(done_shape(value)), to_string(done_shape(target)));
}

Boxed store_rule(const UOp& u) {
  check_fits(u, u.src(0), u.src(1), "the value");
  if (u.src_count() > 2) check_fits(u, u.src(0), u.src(2), "the gate");
  return scalar_box();
}

Boxed load_rule(const UOp& u) {
  if (u.src_count() > 1) check_fits(u, u.src(0), u.src(1), "the alternative");
  if (u.src_count() > 2) check_fits(u, u.src(0), u.src(2), "the gate");
  return box_of(u.src(0));
}

/// One element per point of the ranges: their sizes come first. Without ranges it is x.
Boxed stage_rule(const UOp& u) {
  if (u.src_count() == 1) return box_of(u.src(0));
  Shape out;
  for (const UOp& r : closed_ranges(u)) out.push_back(r.src(0));
  out.append(done_shape(u.src(0)).begin(), done_shape(u.src(0)).end());
  return box(std::move(out));
}

void check_sharded(const UOp& u, const Shape& shape) {
  const ShardingArg& arg = u.arg_as<ShardingArg>();
  const auto shards = int64_t(arg.devices.size());
  for (const ShardedAxis& a : arg.axes) {
    if (a.axis < 0 || size_t(a.axis) >= shape.size())
      fail(u, "axis {} is not one of the {} axes of {}", a.axis, shape.size(), to_string(shape));
    if (!shape[size_t(a.axis)].known()) fail(u, "axis {} of {} has no size that is known before launch", a.axis, to_string(shape));
    if (a.mesh.count < 1 || a.mesh.stride < 1 || shards % (int64_t(a.mesh.count) * a.mesh.stride) != 0)
      fail(u, "{} shards are no mesh with a direction of {} of stride {}", shards, a.mesh.count, a.mesh.stride);
  }
}

Boxed shard_rule(const UOp& u) {
  check_sharded(u, done_shape(u.src(0)));
  return box_of(u.src(0));
}

Boxed unshard_rule(const UOp& u) {
  Shape out = trailing_sizes(u, 1);
  check_sharded(u, out);
  Shape local = out;
  for (const ShardedAxis& a : u.arg_as<ShardingArg>().axes) {
    SInt& n = local[size_t(a.axis)];
    n = ceil_div(n.value(), a.mesh.count);
  }
  const SInt have = numel(done_shape(u.src(0))), needed = numel(local);
  if (surely_differ(have, needed))
    fail(u, "parts of {} elements for {}, which has parts of {}", to_string(have), to_string(out), to_string(local));
  return box(std::move(out));
}

Boxed collective_rule(const UOp& u) {
  const CollectiveArg& arg = u.arg_as<CollectiveArg>();
  const Shape& in = done_shape(u.src(0));
  switch (arg.kind) {
    case Collective::allreduce: return box_of(u.src(0));
    case Collective::allgather:
    case Collective::gather: {
      Shape out{SInt(arg.count())};
      out.append(in.begin(), in.end());
      return box(std::move(out));
    }
    case Collective::reducescatter:
    case Collective::scatter:
      if (in.empty() || surely_differ(in[0], arg.count())) fail(u, "{} are no parts for {} shards", to_string(in), arg.count());
      return box(Shape(in.begin() + 1, in.end()));
  }
  return box_of(u.src(0));
}

/// The shape of a FUNCTION's value with its index PARAMs replaced by the call's arguments.
Boxed in_call(const UOp& call, const Boxed& value) {
  if (all_known(value->shape)) return value;
  Shape out;
  for (const SInt& s : value->shape) {
    NodeMap<UOp> args;
    for (const UOp& p : toposort(s.uop()))
      if (p.is(Op::PARAM)) args[p] = call.src(size_t(p.arg_as<ParamArg>().slot) + 1);
    out.push_back(SInt(substitute(s.uop(), args)));
  }
  return box(std::move(out));
}

Boxed tuple_element(const UOp& u) {
  const UOp& from = u.src(0);
  const auto i = size_t(u.arg_as<TupleArg>().index);
  const bool called = from.is(Op::CALL) && from.src(0).is(Op::FUNCTION);
  const UOp& tuple = called ? from.src(0).src(0) : from;
  if (is_general_reduce(from)) {
    if (i < from.src(1).src_count()) return box_of(from);
    fail(u, "no element {} in a reduction that carries {} values", i, from.src(1).src_count());
  }
  if (!tuple.is(Op::TUPLE)) fail(u, "{} has no elements; it takes a TUPLE, a CALL that gives one or a general REDUCE", name(from.op()));
  if (i >= tuple.src_count()) fail(u, "no element {} in a tuple of {}", i, tuple.src_count());
  return called ? in_call(from, box_of(tuple.src(i))) : box_of(tuple.src(i));
}

Boxed infer(const UOp& u) {
  switch (u.op()) {
    case Op::BUFFER: return box(Shape{SInt(u.arg_as<BufferArg>().size)});
    case Op::IOTA: return box(trailing_sizes(u, 0));
    case Op::PARAM: return u.src().empty() ? scalar_box() : box(trailing_sizes(u, 0));
    case Op::RESHAPE: return reshape_rule(u);
    case Op::PERMUTE: return permute_rule(u);
    case Op::EXPAND: return expand_rule(u);
    case Op::PAD: return pad_rule(u);
    case Op::SHRINK: return shrink_rule(u);
    case Op::FLIP: check_axes(u, u.arg_as<AxesArg>().axes, done_shape(u.src(0)).size()); return box_of(u.src(0));
    case Op::REDUCE: return reduce_rule(u);
    case Op::INDEX: return index_rule(u);
    case Op::LOAD: return load_rule(u);
    case Op::STORE: return store_rule(u);
    case Op::STAGE: return stage_rule(u);
    case Op::STACK: return stack_rule(u);
    case Op::SHARD: return shard_rule(u);
    case Op::UNSHARD: return unshard_rule(u);
    case Op::COLLECTIVE: return collective_rule(u);
    case Op::GETTUPLE: return tuple_element(u);
    case Op::CALL: return u.src(0).is(Op::FUNCTION) ? in_call(u, box_of(u.src(0))) : scalar_box();
    case Op::WMMA: return box_of(u.src(2));
    case Op::MSTACK: return common(u, u.src());
    case Op::COPY:
    case Op::CONTIGUOUS:
    case Op::CONTIGUOUS_BACKWARD:
    case Op::WEAK:
    case Op::DETACH:
    case Op::TENSOR:
    case Op::REALIZED:
    case Op::KNOWN:
    case Op::WEIGHT:
    case Op::AFTER:
    case Op::FUNCTION: return box_of(u.src(0));
    default: return u.in(Group::elementwise) ? common(u, u.src()) : scalar_box();
  }
}

/// Bodies of FUNCTIONs have shapes that their CALLs need; those of kernels do not.
std::span<const UOp> shape_sources(const UOp& u) { return u.is(Op::CALL) && !u.src(0).is(Op::FUNCTION) ? u.src().subspan(1) : u.src(); }

}  // namespace

const Shape& shape_of(const UOp& u) {
  const CachedFact* fact = shape::fact_bottom_up(u, FactSlot::shape, shape_sources, [](const UOp& n) { return new ShapeFact(infer(n)); });
  return static_cast<const ShapeFact*>(fact)->box->shape;
}

namespace {

/// The number if the node is one, else -1.
int64_t number_or_none(const UOp& u) {
  const Scalar* value = const_value(u);
  return value ? value->as_int() : -1;
}

/// The axis that `pad` adds to, at its end only, and by how much; -1 if there is another.
std::pair<int, int64_t> padded_end(const UOp& pad) {
  std::pair<int, int64_t> found{-1, 0};
  for (size_t i = 0; 2 * i + 2 < pad.src_count(); ++i) {
    const int64_t before = number_or_none(pad.src(1 + 2 * i)), after = number_or_none(pad.src(2 + 2 * i));
    if (before == 0 && after == 0) continue;
    if (before != 0 || after < 0 || found.first >= 0) return {-1, 0};
    found = {int(i), after};
  }
  return found;
}

/// Whether a SHRINK takes the first of each row of more than `padding` elements along the axis in front of `axis`, and all else.
bool takes_first_of_rows(const UOp& shrink, size_t axis, int64_t padding) {
  const Shape& in = shape_of(shrink.src(0));
  for (size_t i = 0; i < in.size(); ++i) {
    const UOp &begin = shrink.src(1 + 2 * i), &end = shrink.src(2 + 2 * i);
    if (!is_const(begin, 0)) return false;
    if (i == axis ? !is_const(end, 1) || !in[i].known() || in[i].value() <= padding : !(SInt(end) == in[i])) return false;
  }
  return true;
}

}  // namespace

const UOp& below_view(const UOp& u) {
  if (!u.is(Op::SHRINK) || !u.src(0).is(Op::RESHAPE) || !u.src(0).src(0).is(Op::PAD)) return u.src(0);
  const UOp& pad = u.src(0).src(0);
  const auto [axis, padding] = padded_end(pad);
  if (axis < 0) return u.src(0);
  Shape rows = shape_of(pad);
  const Shape& split = shape_of(u.src(0));
  const auto a = size_t(axis);
  if (split.size() != rows.size() + 1 || !(split[a] * split[a + 1] == rows[a])) return u.src(0);
  for (size_t i = 0; i < split.size(); ++i)
    if (i != a && i != a + 1 && !(split[i] == rows[i < a ? i : i - 1])) return u.src(0);
  return takes_first_of_rows(u, a + 1, padding) ? pad.src(0) : u.src(0);
}

Shape make_shape(std::initializer_list<int64_t> sizes) { return Shape(sizes.begin(), sizes.end()); }

Shape make_shape(std::span<const UOp> sizes) { return Shape(sizes.begin(), sizes.end()); }

UOps size_nodes(const Shape& shape) {
  UOps out;
  for (const SInt& s : shape) out.push_back(s.uop());
  return out;
}

SInt numel(const Shape& shape) {
  // An empty shape has no elements, even if the product of its other sizes exceeds 64 bits.
  if (std::any_of(shape.begin(), shape.end(), [](const SInt& s) { return s.known() && s.value() == 0; })) return 0;
  SInt n = 1;
  for (const SInt& s : shape) n *= s;
  return n;
}

bool is_empty(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](const SInt& s) { return s == 0; });
}

bool all_known(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const SInt& s) { return s.known(); });
}

SmallVector<int64_t, 6> known_sizes(const Shape& shape) {
  SmallVector<int64_t, 6> out;
  for (const SInt& s : shape) out.push_back(s.value());
  return out;
}

SmallVector<int64_t, 6> max_sizes(const Shape& shape) {
  SmallVector<int64_t, 6> out;
  for (const SInt& s : shape) out.push_back(s.max());
  return out;
}

SmallVector<int64_t, 6> row_major_strides(const Shape& shape) {
  SmallVector<int64_t, 6> sizes = max_sizes(shape), out(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= sizes[i]) out[i] = stride;
  return out;
}

std::string to_string(const Shape& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

UOp reshape(const UOp& x, const Shape& shape) { return reshape(x, size_nodes(shape)); }
UOp expand(const UOp& x, const Shape& shape) { return expand(x, size_nodes(shape)); }

namespace {
UOps pair_nodes(std::span<const std::pair<SInt, SInt>> pairs) {
  UOps out;
  for (const auto& [a, b] : pairs) {
    out.push_back(a.uop());
    out.push_back(b.uop());
  }
  return out;
}
}  // namespace

UOp pad(const UOp& x, std::span<const std::pair<SInt, SInt>> before_after) { return pad(x, pair_nodes(before_after)); }
UOp shrink(const UOp& x, std::span<const std::pair<SInt, SInt>> begin_end) { return shrink(x, pair_nodes(begin_end)); }

}  // namespace tinygrad
