#include "codegen/choose/choose_plan.h"

#include <algorithm>
#include <span>

#include "codegen/choose/access_cost.h"
#include "codegen/choose/cpu_candidates.h"

namespace tinygrad::codegen {

namespace {

constexpr size_t most_alike = 6;       // vectors, and tiles, that are weighed for what is chosen before them
constexpr double worth_vectors = 0.8;  // the part of the work with scalars that vectors may leave
constexpr double worth_other_tile = 0.999;

/// The plan with the best tile.
CostedPlan with_best_tile(const CpuNest& nest, CpuPlan plan, bool may_overlap) {
  const PlannedLoops loops(nest, plan);
  const TileCosts costs(loops);
  Tile best_tile;
  double best = costs.of({}).total();
  for (const Tile& t : tile_candidates(loops, may_overlap))
    if (const double c = costs.of(t).total(); c < best * worth_other_tile) best = c, best_tile = t;
  plan.tile = best_tile;
  return {plan, best};
}

/// The vectors that leave the least work, before tiles are known.
Lanes best_lanes(const CpuNest& nest, const CpuPlan& plan, std::span<const Lanes> candidates) {
  const PlannedLoops loops(nest, plan);
  double best = work_of(loops, {}) * worth_vectors;
  Lanes out;
  for (const Lanes& lanes : candidates)
    if (const double w = work_of(loops, lanes); w < best) best = w, out = lanes;
  return out;
}

/// The few that leave the least, scalars among them.
std::vector<Lanes> cheapest_lanes(const CpuNest& nest, const CpuPlan& plan, std::span<const Lanes> candidates) {
  const PlannedLoops loops(nest, plan);
  std::vector<std::pair<double, Lanes>> all{{work_of(loops, {}), {}}};
  for (const Lanes& lanes : candidates) all.emplace_back(work_of(loops, lanes), lanes);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Lanes> out;
  for (size_t i = 0; i < std::min(all.size(), most_alike); ++i) out.push_back(std::move(all[i].second));
  return out;
}

/// The plan with the best vectors and tile for its operands and cache blocks.
CostedPlan with_best_lanes(const CpuNest& nest, const CpuPlan& plan, std::span<const Lanes> candidates, bool may_overlap) {
  const auto with = [&](Lanes lanes) {
    CpuPlan out = plan;
    out.lanes = std::move(lanes);
    return with_best_tile(nest, std::move(out), may_overlap);
  };
  if (!plan.operands.windows && !nest.nest.chosen) {
    CostedPlan found = with(best_lanes(nest, plan, candidates));
    const auto is_along_reduction = [&](const Lane& l) { return nest.axis(l.axis).is_reduce; };
    const auto& chosen = found.plan.lanes;
    if (nest.nest.total_cost < worth_tiling || chosen.core || std::ranges::none_of(chosen, is_along_reduction)) return found;
    // Vectors along a sum load all of its factors as vectors, but only with a tile those along results load the others for several of them.
    std::vector<Lanes> along_results;
    for (const Lanes& lanes : candidates)
      if (!lanes.core && std::ranges::none_of(lanes, is_along_reduction)) along_results.push_back(lanes);
    CostedPlan other = with(best_lanes(nest, plan, along_results));
    return other.cost < found.cost ? other : found;
  }
  // A tile holds data in the order of its use, so with tiles the cost of filling them decides between vectors. So do the copies that choose
  // between values.
  std::optional<CostedPlan> best;
  for (Lanes& lanes : cheapest_lanes(nest, plan, candidates))
    if (CostedPlan c = with(std::move(lanes)); !best || c.cost < best->cost) best = std::move(c);
  return *best;
}

/// Operands that an output loop loads again are resident, and packed into panels, if that saves more than the copying costs. A panel holds
/// what one iteration of the loops around it needs.
CostedPlan with_best_operands(const CpuNest& nest) {
  const AroundNest& around = nest.around;
  const bool may_overlap = around.is_kernel && !around.updates_in_place && nest.nest.reduces > 0 && nest.nest.total_cost >= worth_tiling;
  const std::vector<Lanes> lanes = lane_candidates(nest);
  CostedPlan best = with_best_lanes(nest, {}, lanes, may_overlap);
  if (!around.is_kernel) return best;
  for (const Operands& operands : operand_candidates(nest)) {
    if (!operands.resident && !operands.windows) continue;  // is what `best` begins with
    const bool in_blocks = operands.resident != 0 && operands.windows == operands.computed;
    for (const CacheBlocks& blocks : in_blocks ? block_candidates(nest) : std::vector<CacheBlocks>{{}}) {
      CostedPlan found = with_best_lanes(nest, {.operands = operands, .blocks = blocks}, lanes, may_overlap);
      if (!fits_cache(PlannedLoops(nest, found.plan), found.plan.tile)) continue;
      if (found.cost < best.cost) best = std::move(found);
      if (!operands.computed) break;
    }
  }
  return best;
}

/// Joined reductions, such as attention. One of the carried values depends on an output axis; the others, and most of the step, do not. The
/// whole axis is in the register tile, so that these are computed once for it. Accumulators that do not fit the registers are spilled to
/// the first cache. Vectors and tile are chosen together, as each decides what the other costs.
CostedPlan for_joined(const CpuNest& nest) {
  CostedPlan best = with_best_tile(nest, {}, false);
  for (const Lanes& lanes : lane_candidates(nest))
    if (CostedPlan found = with_best_tile(nest, {.lanes = lanes}, false); found.cost < best.cost) best = std::move(found);
  if (!nest.around.is_kernel) return best;
  if (std::optional<CpuPlan> around = joined_loop_around(nest, best.plan)) return {*std::move(around), best.cost};
  return best;
}

}  // namespace

CostedPlan choose_plan(const CpuNest& nest) {
  if (nest.nest.reduces == 0)
    if (auto plan = transposing_plan(nest, nest.around.is_kernel && !nest.around.updates_in_place)) return {*std::move(plan), 0};
  return nest.is_joined() ? for_joined(nest) : with_best_operands(nest);
}

std::vector<CostedPlan> cheapest_plans(const CpuNest& nest, size_t count) {
  const bool may_overlap = !nest.around.updates_in_place && nest.nest.reduces > 0;
  const std::vector<Lanes> candidates = lane_candidates(nest);
  std::vector<CostedPlan> plans;
  for (const Operands& operands : operand_candidates(nest)) {
    const bool in_blocks = operands.resident != 0 && !operands.windows;
    for (const Lanes& lanes : cheapest_lanes(nest, {.operands = operands}, candidates)) {
      for (const CacheBlocks& blocks : in_blocks ? block_candidates(nest) : std::vector<CacheBlocks>{{}}) {
        CpuPlan plan{.lanes = lanes, .operands = operands, .blocks = blocks};
        const PlannedLoops loops(nest, plan);
        const TileCosts costs(loops);
        std::vector<CostedPlan> found;
        for (const Tile& t : tile_candidates(loops, may_overlap))
          if (fits_cache(loops, t)) {
            found.push_back({plan, costs.of(t).total()});
            found.back().plan.tile = t;
          }
        std::ranges::stable_sort(found, std::less(), &CostedPlan::cost);
        if (found.size() > most_alike) found.resize(most_alike);
        plans.insert(plans.end(), found.begin(), found.end());
        if (!found.empty()) break;
      }
    }
  }
  std::ranges::stable_sort(plans, std::less(), &CostedPlan::cost);
  if (plans.size() > count) plans.resize(count);
  return plans;
}

}  // namespace tinygrad::codegen
