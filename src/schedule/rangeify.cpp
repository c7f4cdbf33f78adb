#include "schedule/rangeify.h"

#include <algorithm>
#include <utility>

#include "schedule/argument_cuts.h"
#include "schedule/online_reduce.h"
#include "schedule/order.h"
#include "schedule/place_values.h"
#include "schedule/write_kernels.h"

namespace tinygrad::schedule {

namespace {

constexpr int most_rounds = 4;

/// True if a kernel reads what it writes over at another element than the one it writes.
bool overlaps_itself(const Kernel& k, const Effects& effects) {
  if (k.store < 0 || !k.value) return false;
  const UOp state = state_of(effects.stores()[size_t(k.store)].src(0));
  if (std::find(k.reads.begin(), k.reads.end(), state) == k.reads.end()) return false;
  for (const UOp& u : toposort(k.value))
    if (u.is(Op::INDEX) && u.src(0) == k.target && u.src(1) != k.target_index) return true;
  return false;
}

/// More than the device takes as arguments.
bool has_too_many_arguments(const Kernel& k, size_t most) {
  if (!k.value) return false;
  NodeSet memory;
  memory.insert(k.target);
  for (const UOp& root : {k.value, k.target_index})
    for (const UOp* u : borrowed_toposort(root))
      if (u->is(Op::PARAM)) memory.insert(*u);
  return memory.size() > most;
}

/// Their numbers in the order.
std::vector<int> stored_values(const Placement& placed) {
  std::vector<int> stored;
  for (size_t i = 0; i < placed.values.size(); ++i)
    if (placed.values[i].storage) stored.push_back(int(i));
  return stored;
}

}  // namespace

Kernels rangeify(const std::vector<UOp>& order, const Effects& effects, const TargetOf& target_of, int32_t first_temporary) {
  NodeSet forced;
  for (const UOp& u : effects.hazards(order)) forced.insert(u);
  // Users decide before their sources, so what a value costs is known only if one expects which of its sources are stored. The first
  // round expects none, the others what the round before chose.
  std::vector<int> chosen;
  const std::vector<const UOp*> joinable = joinable_reduces(order);
  for (;;) {
    Kernels out;
    for (int round = 0; round < most_rounds; ++round) {
      NodeSet expected(chosen.size());
      for (int i : chosen) expected.insert(order[size_t(i)]);
      Placement placed = place_values({order, joinable, effects, target_of, first_temporary}, forced, expected);
      std::vector<int> now = stored_values(placed);
      const bool settled = now == chosen;
      chosen = std::move(now);
      if (settled || round + 1 == most_rounds) {
        out = write_kernels(order, std::move(placed));
        break;
      }
    }
    bool again = false;
    NodeSet stored(chosen.size());
    for (int i : chosen) stored.insert(order[size_t(i)]);
    for (const Kernel& k : out.kernels) {
      if (overlaps_itself(k, effects)) again = forced.insert(k.root.is(Op::STORE) ? k.root.src(1) : k.root) || again;
      const auto most = size_t(target_of(k.device).max_buffers);
      if (!has_too_many_arguments(k, most)) continue;
      for (const UOp& u : argument_cuts(k.root, most - 1, stored)) again = forced.insert(u) || again;
    }
    if (again) continue;
    const std::vector<UOp> breakers = circle_breakers(out.kernels, effects);
    if (std::ranges::none_of(breakers, [&](const UOp& u) { return forced.insert(u); })) return out;
  }
}

}  // namespace tinygrad::schedule
