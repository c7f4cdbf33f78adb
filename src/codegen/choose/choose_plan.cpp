#include "codegen/choose/choose_plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "codegen/choose/access_cost.h"
#include "codegen/choose/cpu_candidates.h"
#include "codegen/choose/memory_cost.h"

namespace tinygrad::codegen {

namespace {

constexpr size_t most_alike = 6;       // vectors, and tiles, that are weighed for what is chosen before them
constexpr double worth_vectors = 0.8;  // the part of the work with scalars that vectors may leave
constexpr double worth_other_tile = 0.999;

/// Plans with the same operands and vectors, which differ in cache blocks and tiles.
class AlikePlans {
 public:
  AlikePlans(const CpuNest& nest, CpuPlan plan, bool may_overlap)
      : nest_(nest),
        plan_(std::move(plan)),
        loops_(nest, plan_),
        costs_(loops_),
        tiles_(tile_candidates(loops_, may_overlap)),
        least_(costs_.begin({}).total()) {
    for (const Tile& t : tiles_) least_ = std::min(least_, begun_.emplace_back(costs_.begin(t)).total());
  }
  AlikePlans(const AlikePlans&) = delete;  // its parts point to each other

  /// What each of them costs at least.
  double least() const { return least_; }

  /// The plan with the best tile.
  CostedPlan with_best_tile(const CacheBlocks& blocks) const {
    if (!blocks.axes) return best_of(costs_);
    CpuPlan plan = plan_;
    plan.blocks = blocks;
    const PlannedLoops loops(nest_, plan);
    CostedPlan best = best_of(TileCosts(loops));
    best.plan.blocks = blocks;
    return best;
  }

 private:
  CostedPlan best_of(const TileCosts& costs) const {
    CostedPlan best{plan_, costs.of({}).total()};
    for (size_t i = 0; i < tiles_.size(); ++i) {
      const double limit = best.cost * worth_other_tile;
      if (begun_[i].total() >= limit) continue;
      if (const auto found = costs.below(tiles_[i], begun_[i], limit)) best.cost = found->total(), best.plan.tile = tiles_[i];
    }
    return best;
  }

  const CpuNest& nest_;
  const CpuPlan plan_;
  const PlannedLoops loops_;
  const TileCosts costs_;
  const std::vector<Tile> tiles_;
  std::vector<CpuCost> begun_;  ///< of each tile
  double least_;
};

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

/// Those along other axes that leave about as little as the best. With panels, which are read in any case as vectors, only filling them and
/// the tiles tell such vectors apart.
std::vector<Lanes> nearly_as_good(const CpuNest& nest, const CpuPlan& plan, std::span<const Lanes> candidates, const Lanes& best) {
  constexpr double nearly = 1.1;
  const PlannedLoops loops(nest, plan);
  const double most = work_of(loops, best) * nearly;
  std::vector<Lanes> out;
  for (const Lanes& lanes : candidates)
    if (!lanes.core && lanes.size() == 1 && lanes[0].axis != best[0].axis && work_of(loops, lanes) <= most) out.push_back(lanes);
  return out;
}

/// The vectors that are weighed together with tiles.
std::vector<Lanes> lanes_to_weigh(const CpuNest& nest, const CpuPlan& plan, std::span<const Lanes> candidates) {
  // A tile holds data in the order of its use, so with tiles the cost of filling them decides between vectors. So do the copies that choose
  // between values.
  if (plan.operands.windows || nest.nest.chosen) return cheapest_lanes(nest, plan, candidates);
  std::vector<Lanes> out{best_lanes(nest, plan, candidates)};
  // Rows that a core takes together are loaded once for a tile.
  if (const CoreUse* first = out[0].core)
    for (const Lanes& lanes : candidates)
      if (lanes.core && lanes.core != first) out.push_back(lanes);
  if (plan.operands.panels() && out[0].size() == 1 && !out[0].core)
    for (Lanes& lanes : nearly_as_good(nest, plan, candidates, out[0])) out.push_back(std::move(lanes));
  const auto is_along_reduction = [&](const Lane& l) { return nest.axis(l.axis).is_reduce; };
  if (nest.nest.total_cost < worth_tiling || out[0].core || std::ranges::none_of(out[0], is_along_reduction)) return out;
  // Vectors along a sum load all of its factors as vectors, but only with a tile those along results load the others for several of them.
  std::vector<Lanes> along_results;
  for (const Lanes& lanes : candidates)
    if (!lanes.core && std::ranges::none_of(lanes, is_along_reduction)) along_results.push_back(lanes);
  out.push_back(best_lanes(nest, plan, along_results));
  return out;
}

/// Plans with the same operands.
class PlansOfOperands {
 public:
  PlansOfOperands(const CpuNest& nest, const Operands& operands, std::span<const Lanes> candidates, bool may_overlap) {
    const CpuPlan plan{.operands = operands};
    for (Lanes& lanes : lanes_to_weigh(nest, plan, candidates))
      plans_.push_back(std::make_unique<AlikePlans>(nest, CpuPlan{.lanes = std::move(lanes), .operands = operands}, may_overlap));
  }
  double least() const {
    double least = HUGE_VAL;
    for (const auto& plans : plans_) least = std::min(least, plans->least());
    return least;
  }
  /// The plan with the best vectors and tile.
  CostedPlan with_best_lanes(const CacheBlocks& blocks) const {
    CostedPlan best = plans_[0]->with_best_tile(blocks);
    for (const auto& plans : std::span(plans_).subspan(1)) {
      if (plans->least() >= best.cost) continue;
      if (CostedPlan found = plans->with_best_tile(blocks); found.cost < best.cost) best = std::move(found);
    }
    return best;
  }

 private:
  std::vector<std::unique_ptr<AlikePlans>> plans_;
};

/// Operands that an output loop loads again are resident, and packed into panels, if that saves more than the copying costs. A panel holds
/// what one iteration of the loops around it needs.
CostedPlan with_best_operands(const CpuNest& nest) {
  const AroundNest& around = nest.around;
  const bool may_overlap = around.is_kernel && !around.updates_in_place && nest.nest.reduces > 0 && nest.nest.total_cost >= worth_tiling;
  const std::vector<Lanes> lanes = lane_candidates(nest);
  const PlansOfOperands streaming(nest, {}, lanes, may_overlap);
  CostedPlan best = streaming.with_best_lanes({});
  if (!around.is_kernel) return best;
  // Few rows of a far operand at once are read as the streams that they are.
  if (first_loads(PlannedLoops(nest, best.plan), best.plan.tile) > 0)
    for (const CacheBlocks& blocks : block_candidates(nest)) {
      if (blocks.block == 0 || double(blocks.block) > general_costs().memory.streams) continue;
      CostedPlan found = streaming.with_best_lanes(blocks);
      if (found.cost < best.cost && fits_cache(PlannedLoops(nest, found.plan), found.plan.tile)) best = std::move(found);
    }
  for (const Operands& operands : operand_candidates(nest)) {
    if (!operands.resident && !operands.windows) continue;  // is what `best` begins with
    const PlansOfOperands plans(nest, operands, lanes, may_overlap);
    if (plans.least() >= best.cost) continue;
    const bool in_blocks = operands.resident != 0 && !operands.whole && operands.windows == operands.computed;
    for (const CacheBlocks& blocks : in_blocks ? block_candidates(nest) : std::vector<CacheBlocks>{{}}) {
      CostedPlan found = plans.with_best_lanes(blocks);
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
  CostedPlan best = AlikePlans(nest, {}, false).with_best_tile({});
  for (const Lanes& lanes : lane_candidates(nest)) {
    const AlikePlans plans(nest, {.lanes = lanes}, false);
    if (plans.least() >= best.cost) continue;
    if (CostedPlan found = plans.with_best_tile({}); found.cost < best.cost) best = std::move(found);
  }
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
    const bool in_blocks = operands.resident != 0 && !operands.whole && !operands.windows;
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
