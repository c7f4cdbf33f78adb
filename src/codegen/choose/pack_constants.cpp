#include "codegen/choose/pack_constants.h"

#include <algorithm>

#include "codegen/kernel_axes.h"
#include "codegen/opt/tensor_core.h"
#include "codegen/rebuild.h"
#include "codegen/split_range.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr double least_gain = 0.97;
/// Uses of an element from which on a copy of its tile, made by the kernel itself, costs next to nothing beside them.
constexpr int64_t many_uses = 2048;
constexpr size_t most_parts = 8;  // loads of one argument, such as those of the gates of a recurrent layer

int32_t slot_of(const UOp& load) { return load.src(0).src(0).arg_as<ParamArg>().slot; }

/// The loads of the argument, if there is nothing else to them than places.
std::vector<UOp> plain_loads(std::span<const UOp> nodes, int32_t slot) {
  std::vector<UOp> found;
  for (const UOp& u : nodes) {
    if (!u.is(Op::LOAD) || !u.src(0).src(0).is(Op::PARAM) || slot_of(u) != slot) continue;
    if (u.src_count() > 1 || u.src(0).src_count() > 2) return {};
    found.push_back(u);
  }
  return found;
}

/// How often an element is used that moves with these loops, in its reduction.
int64_t uses_of(std::span<const UOp> axes, const OpenRanges& moves) {
  int64_t n = 1;
  for (const UOp& r : axes)
    if (!is_reduced(r) && std::ranges::find(moves, r) == moves.end()) n *= most_iterations(r);
  return n;
}

/// A kernel, and its loop over the terms that a tensor core adds at once; null where there is none.
struct Terms {
  UOp sink, loop;
};

/// The kernel as it is, and with the terms of each tensor core of a CPU as a loop of their own: the core reads them as neighbours.
std::vector<Terms> terms_of(const UOp& sink, const Target& target) {
  std::vector<Terms> out{{sink, {}}};
  for (const TensorCore& core : target.tensor_cores) {
    const auto use = tensor_core_axes(sink, core);
    if (!use || core.k < 2 || constant_size(use->k) <= core.k || constant_size(use->k) % core.k != 0) continue;
    RangeArg inner = use->k.arg_as<RangeArg>();
    inner.id = next_range_id(sink);
    const UOp rounds(Op::RANGE, DType::index, {rounds_of(use->k, core.k)}, use->k.arg()), terms = range(index_const(core.k), inner);
    out.push_back({apply_split(sink, {.range = use->k, .parts = {rounds, terms}, .value = rounds * core.k + terms, .valid = {}}), terms});
  }
  return out;
}

/// An axis over outputs in blocks, and copies of what is loaded along it in which what a block needs lies together.
class Packing {
 public:
  Packing(const Terms& kernel, std::span<const UOp> loads, const UOp& axis, int64_t n)
      : sink_(kernel.sink), terms_(kernel.loop), loads_(loads) {
    const RangeArg& old = axis.arg_as<RangeArg>();
    RangeArg inner = old;
    inner.id = next_range_id(sink_);
    blocks_ = UOp(Op::RANGE, DType::index, {rounds_of(axis, n)}, old);
    in_block_ = range(index_const(n), inner);
    split_ = {.range = axis, .parts = {blocks_, in_block_}, .value = blocks_ * n + in_block_, .valid = {}};
    if (constant_size(axis) % n != 0) split_.valid = split_.value < axis.src(0);
  }

  UOp sink() const {
    NodeMap<UOp> loaded;
    NodeCache<UOp> places;
    for (size_t i = 0; i < loads_.size(); ++i) {
      const UOp& l = loads_[i];
      const std::vector<UOp> loops = loops_of(l);
      const UOp part = param(l.dtype(), size_of(loops), {.slot = first_part + int32_t(i)});
      loaded[l] = load(index(part, split_.range));  // so that the split leaves it, and can be told from others
      places[part] = index(param(l.dtype(), size_of_copy(slot_of(l)), {.slot = slot_of(l)}), place(loops, begin_of(i)));
    }
    return rebuild(apply_split(substitute(sink_, loaded), split_), [&](const UOp& u, const UOps& sources) {
      const UOp* at = u.is(Op::INDEX) ? places.find(sources[0]) : nullptr;
      return at ? *at : u.with_src(sources);
    });
  }

  std::vector<PackedArgument> arguments() const {
    std::vector<PackedArgument> out;
    for (const UOp& l : loads_)
      if (std::ranges::none_of(out, [&](const PackedArgument& a) { return a.slot == slot_of(l); }))
        out.push_back({pack(slot_of(l)), slot_of(l), size_of_copy(slot_of(l))});
    return out;
  }

 private:
  static constexpr int32_t first_part = 1 << 16;  ///< the number that stands for the first load's part of a copy

  /// The loops that a load moves with, in the order of its copy.
  std::vector<UOp> loops_of(const UOp& load) const {
    std::vector<UOp> loops{blocks_};
    for (const UOp& r : nested_axes(sink_))
      if (r != split_.range && r != terms_ && is_open_over(load, std::span(&r, 1))) loops.push_back(r);
    loops.push_back(in_block_);
    if (terms_ && is_open_over(load, std::span(&terms_, 1))) loops.push_back(terms_);
    return loops;
  }
  static int64_t size_of(const std::vector<UOp>& loops) {
    int64_t n = 1;
    for (const UOp& r : loops) n *= constant_size(r);
    return n;
  }
  /// The parts of a copy, one for each load, lie one behind another.
  int64_t begin_of(size_t load) const {
    int64_t n = 0;
    for (size_t i = 0; i < load; ++i)
      if (slot_of(loads_[i]) == slot_of(loads_[load])) n += size_of(loops_of(loads_[i]));
    return n;
  }
  int64_t size_of_copy(int32_t slot) const {
    int64_t n = 0;
    for (const UOp& l : loads_)
      if (slot_of(l) == slot) n += size_of(loops_of(l));
    return n;
  }
  static UOp place(std::span<const UOp> loops, int64_t begin) {
    UOp at = index_const(0);
    for (const UOp& r : loops) at = at * constant_size(r) + r;
    return begin == 0 ? at : at + begin;
  }

  UOp pack(int32_t slot) const {
    UOps nests;
    int32_t ids = 0;
    for (size_t i = 0; i < loads_.size(); ++i) {
      const UOp& load = loads_[i];
      if (slot_of(load) != slot) continue;
      const UOp& memory = load.src(0).src(0);
      NodeMap<UOp> map;
      map[memory] = memory.with_arg(ParamArg{.slot = 1});
      UOps fresh;
      const std::vector<UOp> loops = loops_of(load);
      for (const UOp& r : loops) {
        fresh.push_back(range(index_const(constant_size(r)), {.id = ids++, .order = int32_t(fresh.size())}));
        map[r] = fresh.back();
      }
      const UOp value = substitute(apply_split(load, split_), map);
      const UOp copy = param(load.dtype(), size_of_copy(slot), {.slot = 0});
      UOps ended{store(index(copy, place(fresh, begin_of(i))), value)};
      ended.append(fresh.begin(), fresh.end());
      nests.push_back(UOp(Op::END, DType::void_, ended));
    }
    return UOp(Op::SINK, DType::void_, nests, KernelArg{.name = Symbol("pack")});
  }

  const UOp sink_, terms_;
  const std::span<const UOp> loads_;
  UOp blocks_, in_block_;
  Split split_;
};

/// Calls of one kernel that differ in variables would have copies of their own.
bool has_variables(const UOp& load) {
  return std::ranges::any_of(toposort(load), [](const UOp& u) { return u.is(Op::VAR); });
}

bool may_pack(const UOp& load, std::span<const UOp> axes) {
  if (has_variables(load)) return false;
  const OpenRanges moves = ranges_of(load);
  const bool known = std::ranges::all_of(moves, [](const UOp& r) { return constant_size(r) > 0; });
  const int64_t uses = uses_of(axes, moves);
  return known && std::ranges::any_of(moves, is_reduced) && uses > 1 && uses < many_uses;
}

/// What may be packed, of each argument all of its loads.
std::vector<std::vector<UOp>> loads_of(const UOp& sink, std::span<const UOp> axes, uint64_t slots) {
  const std::vector<UOp> nodes = toposort(sink);
  std::vector<std::vector<UOp>> out;
  for (int32_t slot = 0; slot < 64; ++slot) {
    std::vector<UOp> loads = slots >> slot & 1 ? plain_loads(nodes, slot) : std::vector<UOp>();
    if (!loads.empty() && loads.size() <= most_parts && std::ranges::all_of(loads, [&](const UOp& l) { return may_pack(l, axes); }))
      out.push_back(std::move(loads));
  }
  return out;
}

/// Of these arguments' loads, all of those that move along the axis; none of an argument of which another load does not.
std::vector<UOp> loads_along(std::span<const std::vector<UOp>> arguments, const UOp& axis) {
  std::vector<UOp> out;
  for (const std::vector<UOp>& loads : arguments)
    if (std::ranges::all_of(loads, [&](const UOp& l) { return is_open_over(l, std::span(&axis, 1)); }))
      out.insert(out.end(), loads.begin(), loads.end());
  return out;
}

}  // namespace

std::optional<PackedKernel> pack_constants(const UOp& sink, const Target& target, const CodegenOptions& options, uint64_t slots) {
  const auto* given = std::get_if<KernelArg>(&sink.arg());
  if (options.noopt || target.has_groups || (given && (given->optimized || !given->opts.empty())) || sink.src_count() != 1) return {};
  const UOp simple = simplified_kernel(sink);
  const Target usable = choices(target, options, simple);
  const bool may_pack_any = !loads_of(simple, kernel_axes(simple), slots).empty();
  const auto as_it_is = may_pack_any ? heuristic_cost(simple, usable) : std::nullopt;
  if (!as_it_is) return {};
  double best = *as_it_is * least_gain;
  std::optional<PackedKernel> out;
  for (const Terms& kernel : terms_of(simple, usable)) {
    const std::vector<UOp> axes = kernel_axes(kernel.sink);
    const std::vector<std::vector<UOp>> loads = loads_of(kernel.sink, axes, slots);
    for (const UOp& axis : axes) {
      const std::vector<UOp> along = is_reduced(axis) ? std::vector<UOp>() : loads_along(loads, axis);
      if (along.empty()) continue;
      const int64_t lanes = std::max(1, target.lanes(along[0].dtype()));
      for (const int64_t vectors : {1, 2, 3, 4, 6, 8}) {
        if (vectors * lanes > constant_size(axis)) break;
        const Packing packing(kernel, along, axis, vectors * lanes);
        const UOp packed = packing.sink();
        const auto cost = heuristic_cost(packed, usable);
        if (!cost || *cost >= best) continue;
        best = *cost;
        out = PackedKernel{packed, packing.arguments()};
      }
    }
  }
  return out;
}

}  // namespace tinygrad::codegen
