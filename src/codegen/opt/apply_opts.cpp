#include "codegen/opt/apply_opts.h"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "codegen/opt/kernel_axes.h"
#include "codegen/rebuild.h"
#include "codegen/reduce_op.h"
#include "shape/ranges.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

/// A loop and what takes its place.
struct Split {
  UOp range;
  UOps parts;  ///< the new loops, outermost first
  UOp value;   ///< the old index
  UOp valid;   ///< where the old index is within its loop; null: everywhere
};

bool is_open(const UOp& u, const UOp& range) {
  for (const UOp& r : ranges_of(u))
    if (r == range) return true;
  return false;
}

/// INDEX and STORE sources see `valid` where the access moves with the old loop.
UOp mask_index(const UOp& index, const UOp& valid) {
  UOps s(index.src().begin(), index.src().end());
  if (s.size() > 2)
    s[2] = s[2] & valid;
  else
    s.push_back(valid);
  return index.with_src(s);
}

/// A step that keeps what is carried where a further value, a bool, is false.
UOp masked_step(const UOp& reduce, const UOps& values, const UOps& identities) {
  const auto param_like = [](const UOp& value, size_t slot) { return UOp(Op::PARAM, value.dtype(), {}, ParamArg{.slot = int32_t(slot)}); };
  UOps carried, x;
  for (const UOp& v : identities) carried.push_back(param_like(v, carried.size()));
  for (const UOp& v : values) x.push_back(param_like(v, carried.size() + x.size()));
  const UOp flag = UOp(Op::PARAM, DType::bool_, {}, ParamArg{.slot = int32_t(carried.size() + x.size())});
  UOps stepped = reduce_step(reduce, carried, x);
  for (size_t i = 0; i < stepped.size(); ++i) stepped[i] = where(flag, stepped[i], carried[i]);
  return UOp(Op::FUNCTION, DType::void_, {UOp(Op::TUPLE, DType::void_, stepped)}, reduce.src(2).arg());
}

UOp mask_reduce(const UOp& reduce, const UOp& valid) {
  UOps values = reduced_values(reduce);
  const UOps identities = reduce_identities(reduce);
  if (!is_general_reduce(reduce)) {
    values[0] = where(valid, values[0], identities[0]);
    return make_reduce(reduce, values, closed_ranges(reduce));
  }
  const UOp step = masked_step(reduce, values, identities);
  values.push_back(valid);
  UOps sources{UOp(Op::TUPLE, DType::void_, values), reduce.src(1), step, reduce.src(3)};
  sources.append(closed_ranges(reduce).begin(), closed_ranges(reduce).end());
  return reduce.with_src(sources);
}

/// Replaces a range among the closed ones of END, REDUCE by its parts.
UOp close_parts(const UOp& u, const UOps& sources, const Split& split) {
  const size_t first = sources.size() - closed_ranges(u).size();
  UOps out(sources.begin(), sources.begin() + first);
  for (size_t i = first; i < sources.size(); ++i) {
    if (u.src(i) == split.range)
      out.append(split.parts.begin(), split.parts.end());
    else
      out.push_back(sources[i]);
  }
  return u.with_src(out);
}

UOp apply_split(const UOp& sink, const Split& split) {
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    if (u == split.range) return split.value;
    const auto closed = closed_ranges(u);
    const bool closes = std::find(closed.begin(), closed.end(), split.range) != closed.end();
    UOp out = closes ? close_parts(u, sources, split) : u.with_src(sources);
    if (!split.valid) return out;
    if (closes && u.is(Op::REDUCE)) return mask_reduce(out, split.valid);
    if ((u.is(Op::LOAD) && is_open(u.src(0), split.range)) || (u.is(Op::STORE) && is_open(u, split.range))) {
      UOps s(out.src().begin(), out.src().end());
      s[0] = mask_index(s[0], split.valid);
      return out.with_src(s);
    }
    return out;
  });
}

[[noreturn]] void fail(const Opt& opt, std::string_view why) { throw ValueError(fmt::format("opt {}: {}", to_string(opt), why)); }

AxisKind inner_kind(const Opt& opt, bool reduce_axis) {
  switch (opt.op) {
    case OptOp::UPCAST:
      if (reduce_axis) fail(opt, "the axis is reduced; use UNROLL");
      return AxisKind::upcast;
    case OptOp::UNROLL:
      if (!reduce_axis) fail(opt, "the axis is not reduced; use UPCAST");
      return AxisKind::unroll;
    case OptOp::LANE: return AxisKind::lane;
    case OptOp::LOCAL:
      if (reduce_axis) fail(opt, "the axis is reduced");
      return AxisKind::local;
    case OptOp::THREAD:
      if (reduce_axis) fail(opt, "the axis is reduced");
      return AxisKind::thread;
    default: fail(opt, "not an opt that this code generator has");
  }
}

/// True if some value depends on the range and on a vector axis.
bool meets_lane(const UOp& sink, const UOp& range) {
  for (const UOp& u : toposort(sink)) {
    const UOps open = ranges_of(u);
    const auto is_lane = [](const UOp& r) { return r.arg_as<RangeArg>().kind == AxisKind::lane; };
    if (std::any_of(open.begin(), open.end(), is_lane) && is_open(u, range)) return true;
  }
  return false;
}

void check_kernel(const UOp& sink, const UOp& range, const Opt& opt, const Target& target) {
  const auto has = [&](AxisKind kind) {
    for (const UOp& u : toposort(sink))
      if (u.is(Op::RANGE) && u.arg_as<RangeArg>().kind == kind) return true;
    return false;
  };
  if (opt.op == OptOp::LANE && !std::has_single_bit(uint32_t(opt.arg))) fail(opt, "the number of lanes is not a power of two");
  if (opt.op == OptOp::LANE && meets_lane(sink, range)) fail(opt, "a value would have two vector axes");
  if (opt.op == OptOp::THREAD && !target.has_threads) fail(opt, "the target has no threads");
  if (opt.op == OptOp::THREAD && has(AxisKind::thread)) fail(opt, "the kernel has a thread axis");
  if (opt.op == OptOp::LOCAL && !target.has_groups) fail(opt, "the target has no work-groups");
}

Split make_split(const UOp& sink, const UOp& range, const Opt& opt, AxisKind kind) {
  const int64_t size = constant_size(range);
  if (size == 0) fail(opt, "the size of the axis is not known before launch");
  const int64_t arg = opt.arg == 0 ? size : opt.arg;
  if (arg < 0 || arg > size) fail(opt, fmt::format("the axis has size {}", size));
  const RangeArg& old = range.arg_as<RangeArg>();
  RangeArg other{.id = next_range_id(sink), .kind = kind, .order = old.order};

  Split split{.range = range, .parts = {}, .value = {}, .valid = {}};
  // Of a thread axis the chunks are outside and the rest stays a loop; all other opts take the inner part.
  const int64_t inner = kind == AxisKind::thread ? (size + arg - 1) / arg : arg, outer = (size + inner - 1) / inner;
  const UOp kept_size = index_const(kind == AxisKind::thread ? inner : outer);
  const UOp kept = UOp(Op::RANGE, DType::index, {kept_size}, old);
  const UOp made = tinygrad::range(index_const(kind == AxisKind::thread ? outer : inner), other);
  const UOp &first = kind == AxisKind::thread ? made : kept, &second = kind == AxisKind::thread ? kept : made;
  split.parts = {first, second};
  split.value = first * inner + second;
  if (outer * inner != size) split.valid = split.value < size;
  return split;
}

}  // namespace

UOp apply_opts(const UOp& sink, std::span<const Opt> opts, const Target& target) {
  UOp kernel = sink;
  for (const Opt& opt : opts) {
    const std::vector<UOp> axes = kernel_axes(kernel);
    if (opt.axis < 0 || size_t(opt.axis) >= axes.size()) fail(opt, fmt::format("the kernel has {} axes", axes.size()));
    const UOp& range = axes[size_t(opt.axis)];
    const AxisKind kind = inner_kind(opt, range.arg_as<RangeArg>().kind == AxisKind::reduce);
    check_kernel(kernel, range, opt, target);
    kernel = apply_split(kernel, make_split(kernel, range, opt, kind));
  }
  return kernel;
}

}  // namespace tinygrad::codegen
