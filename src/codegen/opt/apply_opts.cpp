#include "codegen/opt/apply_opts.h"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "codegen/kernel_axes.h"
#include "codegen/lower/bound_loops.h"
#include "codegen/opt/opt_error.h"
#include "codegen/opt/stage_operand.h"
#include "codegen/opt/tensor_core.h"
#include "codegen/prepare/merge_ranges.h"
#include "codegen/rebuild.h"
#include "codegen/reduce_op.h"
#include "codegen/simplify.h"
#include "codegen/split_range.h"
#include "shape/ranges.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

bool has_kind(const UOp& sink, AxisKind kind) {
  for (const UOp& u : toposort(sink))
    if (u.is(Op::RANGE) && u.arg_as<RangeArg>().kind == kind) return true;
  return false;
}

bool is_lane(const UOp& r) { return r.arg_as<RangeArg>().kind == AxisKind::lane; }

/// True if some value depends on the range and on a vector axis, or is added up over one and depends on the other.
bool meets_lane(const UOp& sink, const UOp& range) {
  for (const UOp& u : toposort(sink)) {
    const OpenRanges open = ranges_of(u);
    const std::span<const UOp> closed = u.is(Op::REDUCE) ? closed_ranges(u) : std::span<const UOp>();
    const auto any = [&](auto&& holds) {
      return std::any_of(open.begin(), open.end(), holds) || std::any_of(closed.begin(), closed.end(), holds);
    };
    if (any(is_lane) && any([&](const UOp& r) { return r == range; })) return true;
  }
  return false;
}

/// The range of work-items that share another reduction already and can share the one over `range`: they are as many, and no value depends
/// on both.
UOp items_to_reuse(const UOp& sink, const UOp& range, const UOp& items) {
  std::vector<UOp> known;
  for (const UOp& r : item_ranges(sink))
    if (r.arg_as<RangeArg>().kind == AxisKind::group && r.src(0) == items.src(0)) known.push_back(r);
  std::erase_if(known, [&](const UOp& r) { return meet(sink, range, r); });
  return known.empty() ? items : known.front();
}

/// The kind of the part that an opt takes from an axis.
AxisKind kind_of_part(const Opt& opt, bool reduced) {
  switch (opt.op) {
    case OptOp::UPCAST:
      if (reduced) opt_error(opt, "the axis is reduced; use UNROLL");
      return AxisKind::upcast;
    case OptOp::UNROLL:
      if (!reduced) opt_error(opt, "the axis is not reduced; use UPCAST");
      return AxisKind::unroll;
    case OptOp::LANE: return AxisKind::lane;
    case OptOp::LOCAL:
      if (reduced) opt_error(opt, "the axis is reduced; use GROUP");
      return AxisKind::local;
    case OptOp::GROUP:
    case OptOp::GROUPTOP:
      if (!reduced) opt_error(opt, "the axis is not reduced; use LOCAL");
      return AxisKind::group;
    case OptOp::THREAD:
      if (reduced) opt_error(opt, "the axis is reduced");
      return AxisKind::thread;
    default: opt_error(opt, "not an opt that splits an axis");
  }
}

/// A REDUCE becomes two where `split` parts its loops: one over the loops inside, and one around it that adds up its results.
template <class Split>
UOp split_reduces(const UOp& sink, Split&& split) {
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    UOp reduce = u.with_src(sources);
    if (!u.is(Op::REDUCE)) return reduce;
    UOps around, inside;
    if (!split(closed_ranges(reduce), around, inside)) return reduce;
    const UOp first = reduce_partials(reduce, reduce_results(make_reduce(reduce, reduced_values(reduce), inside)), around)[0];
    return is_general_reduce(reduce) ? first.src(0) : first;
  });
}

/// The loops of a REDUCE that are inside of `outer` become a REDUCE of their own, whose results the outer one adds up.
UOp split_reduce(const UOp& sink, const UOp& outer) {
  return split_reduces(sink, [&](std::span<const UOp> closed, UOps& around, UOps& inside) {
    bool closes = false, loops = false;
    for (const UOp& r : closed) {
      closes = closes || r == outer;
      const bool within = r.arg_as<RangeArg>().order > outer.arg_as<RangeArg>().order && !is_lane(r);
      loops = loops || (within && is_reduced(r));
      (within ? inside : around).push_back(r);
    }
    return closes && loops;
  });
}

/// The sums that one work-item has are added up before the group adds up the sums of its items.
UOp join_sums_of_items(const UOp& sink) {
  return split_reduces(sink, [](std::span<const UOp> closed, UOps& around, UOps& inside) {
    bool unrolled = false;
    for (const UOp& r : closed) {
      const AxisKind kind = r.arg_as<RangeArg>().kind;
      unrolled = unrolled || kind == AxisKind::unroll;
      (kind == AxisKind::group ? around : inside).push_back(r);
    }
    return unrolled && !around.empty();
  });
}

class Application {
 public:
  Application(const UOp& sink, const Target& target) : kernel_(sink), target_(target) {}

  UOp run(std::span<const Opt> opts) {
    for (const Opt& opt : opts) apply(opt);
    kernel_ = join_sums_of_items(kernel_);
    // Tiles are made behind all other opts, as their own loops have no numbers.
    std::vector<std::pair<Opt, UOp>> loaded, computed;
    for (const Opt& opt : opts)
      if (opt.op == OptOp::STAGE) (StageOpt::of(opt.arg).computed ? computed : loaded).emplace_back(opt, axis(opt));
    stage(loaded);
    // Nothing is computed that no iteration uses.
    if (!computed.empty()) kernel_ = bound_loops(kernel_);
    stage(computed);
    const UOp staged = stage_memory_operands(kernel_, opts, target_);
    const bool has_tiles = !loaded.empty() || !computed.empty() || staged != kernel_;
    kernel_ = expand_elements(staged);
    // Loops that read a tile are often one run through it, and become one loop.
    return has_tiles ? merge_ranges(simplify(kernel_)) : kernel_;
  }

 private:
  void stage(std::span<const std::pair<Opt, UOp>> stages) {
    for (const auto& [opt, range] : stages) {
      const std::vector<UOp> axes = kernel_axes(kernel_);
      const auto now = std::ranges::find_if(axes, [&](const UOp& r) { return r.arg() == range.arg(); });  // its size may be another
      kernel_ = stage_operand(kernel_, now == axes.end() ? range : *now, opt, target_);
    }
  }

  void apply(const Opt& opt) {
    switch (opt.op) {
      case OptOp::NOLOCALS:
        if (!item_ranges(kernel_).empty()) opt_error(opt, "the kernel has work-items already");
        no_locals_ = true;
        break;
      case OptOp::STAGE: axis(opt); break;
      case OptOp::TC: tensor_core(opt); break;
      case OptOp::SWAP: swap(opt, axis(opt)); break;
      case OptOp::PADTO: pad(opt, axis(opt)); break;
      case OptOp::BLOCK: block(opt, axis(opt)); break;
      case OptOp::OUTER: outer(opt, axis(opt)); break;
      default: split(opt, axis(opt));
    }
  }

  UOp axis(const Opt& opt) const {
    const std::vector<UOp> axes = kernel_axes(kernel_);
    if (opt.axis < 0 || size_t(opt.axis) >= axes.size()) opt_error(opt, fmt::format("the kernel has {} axes", axes.size()));
    return axes[size_t(opt.axis)];
  }

  void tensor_core(const Opt& opt) {
    target_.has_groups ? check_items(opt) : check_one_nest(opt);
    kernel_ = apply_tensor_core(kernel_, opt, target_);
    if (target_.has_groups) check_group_size(opt);
  }

  void split(const Opt& opt, const UOp& range) {
    const AxisKind kind = kind_of_part(opt, is_reduced(range));
    if (kind == AxisKind::lane) check_lanes(opt, range);
    if (kind == AxisKind::thread && !target_.has_threads) opt_error(opt, "the target has no threads");
    if (kind == AxisKind::thread && has_kind(kernel_, kind)) opt_error(opt, "the kernel has a thread axis");
    // Each chunk would run the other nests, too.
    if (kind == AxisKind::thread) check_one_nest(opt);
    const bool items = kind == AxisKind::local || kind == AxisKind::group;
    if (items) check_items(opt);
    // One item would store while others still read.
    if (kind == AxisKind::group && updates_in_place(kernel_)) opt_error(opt, "the kernel stores to an argument that it loads from");
    kernel_ = apply_split(kernel_, make_split(opt, range, kind));
    if (items) check_group_size(opt);
  }

  void check_lanes(const Opt& opt, const UOp& range) const {
    if (!std::has_single_bit(uint32_t(opt.arg))) opt_error(opt, "the number of lanes is not a power of two");
    if (has_tensor_core(kernel_)) opt_error(opt, "tensor cores have vectors of their own");
    if (meets_lane(kernel_, range)) opt_error(opt, "a value would have two vector axes");
  }

  void check_items(const Opt& opt) const {
    if (!target_.has_groups) opt_error(opt, "the target has no work-groups");
    if (no_locals_) opt_error(opt, "the kernel is to have no work-items (NOLOCALS)");
    check_one_nest(opt);
  }

  void check_one_nest(const Opt& opt) const {
    if (kernel_.src_count() != 1) opt_error(opt, fmt::format("the kernel has {} loop nests, this is for one", kernel_.src_count()));
  }

  void check_group_size(const Opt& opt) const {
    int64_t items = 1;
    for (const UOp& r : item_ranges(kernel_)) items *= constant_size(r);
    if (items > target_.max_group_items)
      opt_error(opt, fmt::format("a group would have {} work-items, the target takes {}", items, target_.max_group_items));
  }

  Split make_split(const Opt& opt, const UOp& range, AxisKind kind) const {
    // THREAD and GROUPTOP take the outer part of an axis, and the inner part stays a loop; all others take the inner part.
    const bool outside = kind == AxisKind::thread || opt.op == OptOp::GROUPTOP;
    const int64_t size = constant_size(range);
    if (size == 0 && kind == AxisKind::thread && opt.arg == 0) {  // a chunk for each iteration
      const UOp chunks =
          tinygrad::range(range.src(0), {.id = range.arg_as<RangeArg>().id, .kind = kind, .order = range.arg_as<RangeArg>().order});
      return {.range = range, .parts = {chunks}, .value = chunks, .valid = {}};
    }
    if (size == 0 && (outside || opt.arg == 0)) opt_error(opt, "the size of the axis is not known before launch");
    const int64_t arg = opt.arg == 0 ? size : opt.arg;
    // Some lanes of a vector may be masked, less than half of them.
    const int64_t most = kind == AxisKind::lane ? 2 * size - 1 : size;
    if (arg < 0 || (size != 0 && arg > most)) opt_error(opt, fmt::format("the axis has size {}", size));
    const RangeArg& old = range.arg_as<RangeArg>();
    const RangeArg other{.id = next_range_id(kernel_), .kind = kind, .order = old.order};

    Split split{.range = range, .parts = {}, .value = {}, .valid = {}};
    const int64_t inner = outside ? (size + arg - 1) / arg : arg;
    const UOp rounds = rounds_of(range, inner);
    const UOp kept(Op::RANGE, DType::index, {outside ? index_const(inner) : rounds}, old);
    UOp made = tinygrad::range(outside ? rounds : index_const(inner), other);
    if (kind == AxisKind::group) made = items_to_reuse(kernel_, range, made);
    const UOp &first = outside ? made : kept, &second = outside ? kept : made;
    split.parts = {first, second};
    split.value = first * inner + second;
    if (size == 0 || size % inner != 0) split.valid = split.value < range.src(0);
    // A mask would be in the inner loop of each copy.
    if (size == 0 && kind == AxisKind::upcast) {
      split.value = min(split.value, range.src(0) - 1);
      split.repeats_last = true;
    }
    return split;
  }

  void pad(const Opt& opt, const UOp& range) {
    if (opt.arg < 1) opt_error(opt, "expects a size to pad to a multiple of, from 1");
    if (has_kind(kernel_, AxisKind::lane) || has_tensor_core(kernel_)) opt_error(opt, "stands before opts that make vectors");
    const int64_t most = most_iterations(range);
    if (most < 1 || most > int64_t{1} << 40) opt_error(opt, fmt::format("the axis has up to {} elements", most));
    const int64_t padded = (most + opt.arg - 1) / opt.arg * opt.arg;
    if (padded == constant_size(range)) return;
    const UOp wider(Op::RANGE, DType::index, {index_const(padded)}, range.arg());
    kernel_ = apply_split(kernel_, {.range = range, .parts = {wider}, .value = wider, .valid = wider < range.src(0)});
  }

  void block(const Opt& opt, const UOp& range) {
    check_one_nest(opt);
    const int64_t size = constant_size(range), n = opt.arg;
    if (size == 0) opt_error(opt, "the size of the axis is not known before launch");
    if (n < 1 || n > size) opt_error(opt, fmt::format("the axis has size {}", size));
    if (size % n != 0 && is_reduced(range)) opt_error(opt, fmt::format("{} does not divide the reduced axis of size {}", n, size));
    if (size % n != 0 && target_.has_groups) opt_error(opt, fmt::format("{} does not divide the axis of size {}", n, size));
    if (size % n != 0 && updates_in_place(kernel_)) opt_error(opt, "the kernel stores to an argument that it loads from");
    const UOp outer = make_room_behind(range);
    RangeArg inside = outer.arg_as<RangeArg>();
    ++inside.order;
    inside.id = next_range_id(kernel_);
    Split split{.range = outer, .parts = {}, .value = {}, .valid = {}};
    const UOp blocks(Op::RANGE, DType::index, {rounds_of(outer, n)}, outer.arg()), in_block = tinygrad::range(index_const(n), inside);
    const UOp first = blocks * n;
    split.parts = {blocks, in_block};
    split.value = (size % n == 0 ? first : min(first, index_const(size - n))) + in_block;
    kernel_ = apply_split(kernel_, split);
  }

  /// Renumbers the nesting order of the axes, so that the place behind `range` is free. Returns the range with its new order.
  UOp make_room_behind(const UOp& range) {
    std::vector<UOp> axes = nested_axes(kernel_);
    axes.insert(std::find(axes.begin(), axes.end(), range) + 1, UOp());
    return nest(axes, range);
  }

  /// Orders the loops as listed; null stands for one to come. Returns `range` with its new order.
  UOp nest(std::span<const UOp> axes, UOp range) {
    NodeMap<UOp> map;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i]) continue;
      RangeArg arg = axes[i].arg_as<RangeArg>();
      arg.order = int32_t(i);
      map[axes[i]] = axes[i].with_arg(arg);
    }
    range = map[range];
    kernel_ = substitute(kernel_, map);
    return range;
  }

  void outer(const Opt& opt, const UOp& range) {
    if (target_.has_groups) opt_error(opt, "the target runs output loops as work-groups");
    check_one_nest(opt);
    const UOp loop = axis({opt.op, opt.arg, 0});
    if (!is_reduced(range) || is_reduced(loop)) opt_error(opt, "expects the loop of a reduction and one over outputs");
    std::vector<UOp> axes = nested_axes(kernel_);
    const auto first = std::find(axes.begin(), axes.end(), loop), last = std::find(axes.begin(), axes.end(), range);
    for (auto inside = first; inside < last; ++inside)
      if (!is_reduced(*inside) && constant_size(*inside) == 0) opt_error(opt, "the size of a loop inside is not known before launch");
    if (first < last) std::stable_partition(first, last + 1, [&](const UOp& r) { return is_reduced(r); });
    const UOp placed = nest(axes, range);
    RangeArg arg = placed.arg_as<RangeArg>();
    arg.kind = AxisKind::outer;
    NodeMap<UOp> map;
    map[placed] = placed.with_arg(arg);
    kernel_ = split_reduce(substitute(kernel_, map), map[placed]);
  }

  /// Loops of one END or one REDUCE.
  bool are_of_one_nest(const UOp& a, const UOp& b) const {
    bool together = false;
    for (const UOp& u : toposort(kernel_)) {
      const auto closed = closed_ranges(u);
      const bool has_a = std::find(closed.begin(), closed.end(), a) != closed.end();
      const bool has_b = std::find(closed.begin(), closed.end(), b) != closed.end();
      if (has_a != has_b) return false;
      together = together || has_a;
    }
    return together;
  }

  void swap(const Opt& opt, const UOp& a) {
    const UOp b = axis({opt.op, opt.arg, 0});
    if (a == b || !are_of_one_nest(a, b)) opt_error(opt, "expects two loops of one nest");
    if (is_open_over(a.src(0), std::span(&b, 1)) || is_open_over(b.src(0), std::span(&a, 1)))
      opt_error(opt, "the size of one loop depends on the other");
    const UOp new_a = a.with_arg(b.arg()), new_b = b.with_arg(a.arg());
    NodeMap<UOp> map;
    map[a] = new_a;
    map[b] = new_b;
    kernel_ = substitute(kernel_, map);
  }

  UOp kernel_;
  const Target& target_;
  bool no_locals_ = false;
};

}  // namespace

void opt_error(const Opt& opt, std::string_view why) { throw ValueError(fmt::format("opt {}: {}", to_string(opt), why)); }

UOp apply_opts(const UOp& sink, std::span<const Opt> opts, const Target& target) { return Application(sink, target).run(opts); }

}  // namespace tinygrad::codegen
