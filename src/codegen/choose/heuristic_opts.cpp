#include "codegen/choose/heuristic_opts.h"

#include <algorithm>
#include <utility>

#include "codegen/choose/choose_plan.h"
#include "codegen/choose/group_heuristic.h"
#include "codegen/choose/nest.h"
#include "codegen/choose/plan_opts.h"
#include "codegen/choose/tile_heuristic.h"
#include "codegen/kernel_axes.h"
#include "codegen/lower/bound_loops.h"
#include "codegen/opt/tensor_core.h"
#include "target/tensor_cores/registers.h"
#include "target/tensor_cores/tile_products.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr double tiny_kernel = 64;  // cycles below which a kernel is not worth vectors

/// The CPU's tensor cores that can compute the kernel's sum of products.
std::vector<CoreUse> usable_cores(const UOp& sink, const Nest& nest, const Target& target) {
  std::vector<CoreUse> out;
  if (sink.src_count() != 1 || nest.reduces != 1) return out;
  const auto place = [&](const UOp& range) {
    for (size_t i = 0; i < nest.axes.size(); ++i)
      if (nest.axes[i].range == range && nest.axes[i].is_known) return int(i);
    return -1;
  };
  for (size_t i = 0; i < target.tensor_cores.size(); ++i) {
    const TensorCore& core = target.tensor_cores[i];
    if (core.a.in_memory) continue;  // tile_heuristic.h is about these
    const auto use = tensor_core_axes(sink, core);
    if (!use || place(use->n) < 0 || place(use->k) < 0 || (core.m > 1 && place(use->m) < 0)) continue;
    const CoreCosts costs = costs_of(core);
    out.push_back({.number = int32_t(i),
                   .n = {place(use->n), core.n},
                   .k = {place(use->k), core.k},
                   .m = {place(use->m), core.m},
                   .casts = use->casts,
                   .sums = core.items,
                   .temporaries = costs.temporaries + int(use->shifts_a),  // the bits that are turned over
                   .steps = costs.steps + (use->shifts_a ? costs.shift_steps : 0)});
  }
  return out;
}

bool computes_floats(const UOp& sink) {
  const auto is_computed = [](const UOp& u) {
    return (u.in(Group::alu) || u.is(Op::REDUCE) || u.is(Op::CAST)) && (is_float(u.dtype()) || is_float(u.src(0).dtype()));
  };
  return std::ranges::any_of(toposort(sink), is_computed);
}

/// The target as a kernel can use it: without vectors where those hold no floats.
Target usable_target(const UOp& sink, const Target& target) {
  Target t = target;
  if (!t.vector_floats && computes_floats(sink)) t.vector_bits = 0;
  return t;
}

/// What `use` makes of a kernel of one nest on a CPU; nothing for other kernels, and for those that are not worth vectors.
template <class Use>
auto with_nest(const UOp& sink, const Target& whole, Use&& use) -> decltype(use(std::declval<const CpuNest&>())) {
  if (whole.has_groups || sink.src_count() != 1) return {};
  const Target target = usable_target(sink, whole);
  const Nest nest = analyze_nest(sink, sink.src(0), true);
  if (nest.total_cost < tiny_kernel) return {};
  return use(CpuNest(
      nest, target,
      {.cores = usable_cores(sink, nest, target), .updates_in_place = updates_in_place(sink), .bounds_loops = may_bound_loops(sink)}));
}

/// The opts of a product of tiles; empty for other kernels.
std::vector<Opt> tiles_of(const UOp& sink, const Target& target) {
  if (target.has_groups || sink.src_count() != 1 || !std::ranges::any_of(target.tensor_cores, multiplies_tiles)) return {};
  return tile_heuristic(sink, analyze_nest(sink, sink.src(0), true), target);
}

}  // namespace

std::vector<Opt> heuristic_opts(const UOp& sink, const Target& whole, bool pads) {
  const Target target = usable_target(sink, whole);
  std::vector<Opt> opts;
  const bool one_nest = sink.src_count() == 1, bounded = !target.has_groups && may_bound_loops(sink);
  for (const UOp& effect : sink.src()) {
    const Nest nest = analyze_nest(sink, effect, !target.has_groups);
    if (target.has_groups) {
      if (one_nest) opts = group_heuristic(sink, nest, target, pads);
      continue;
    }
    if (nest.total_cost < tiny_kernel) continue;
    if (std::vector<Opt> of_tiles = tile_heuristic(sink, nest, target); !of_tiles.empty()) return of_tiles;
    const CpuNest in(nest, target,
                     {.chosen = opts,
                      .cores = usable_cores(sink, nest, target),
                      .is_kernel = one_nest,
                      .updates_in_place = updates_in_place(sink),
                      .bounds_loops = bounded});
    const std::vector<Opt> more = opts_of(in, choose_plan(in).plan);
    opts.insert(opts.end(), more.begin(), more.end());
  }
  return opts;
}

std::optional<double> heuristic_cost(const UOp& sink, const Target& target) {
  if (!tiles_of(sink, target).empty()) return std::nullopt;
  return with_nest(sink, target, [](const CpuNest& in) {
    return in.nest.reduces == 0 || in.is_joined() ? std::nullopt : std::optional(choose_plan(in).cost);
  });
}

std::vector<std::vector<Opt>> ranked_opts(const UOp& sink, const Target& target, size_t count) {
  return with_nest(sink, target, [&](const CpuNest& in) {
    std::vector<std::vector<Opt>> out;
    if (std::vector<Opt> of_tiles = tiles_of(sink, target); !of_tiles.empty()) out.push_back(std::move(of_tiles));
    for (const CostedPlan& c : cheapest_plans(in, count)) out.push_back(opts_of(in, c.plan));
    return out;
  });
}

}  // namespace tinygrad::codegen
