#include "schedule/rangeify.h"

#include <algorithm>
#include <span>
#include <utility>

#include "schedule/argument_cuts.h"
#include "schedule/kernel_calls.h"
#include "schedule/online_reduce.h"
#include "schedule/order.h"
#include "schedule/place_values.h"
#include "schedule/write_kernels.h"
#include "uop/graph.h"

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

/// Kernels of one placement, and the numbers of what it stores.
struct Round {
  Kernels kernels;
  std::vector<int> stored;
};

NodeSet nodes_of(const PlacedGraph& graph, const std::vector<int>& numbers) {
  NodeSet nodes(numbers.size());
  for (int i : numbers) nodes.insert(graph.order[size_t(i)]);
  return nodes;
}

/// Users decide before their sources, so what a value costs is known only if one expects which of its sources are stored. The first round
/// expects `stored` and what is forced to be, the others what the round before chose.
Round settled(const PlacedGraph& graph, const NodeMap<Reason>& forced, std::vector<int> stored) {
  const NodeSet before = nodes_of(graph, stored);
  stored.clear();
  for (size_t i = 0; i < graph.order.size(); ++i)
    if (before.contains(graph.order[i]) || forced.contains(graph.order[i])) stored.push_back(int(i));
  for (int round = 1;; ++round) {
    const NodeSet expected = nodes_of(graph, stored);
    Placement placed = place_values(graph, forced, expected);
    std::vector<int> now = stored_values(placed);
    if (now == stored || round == most_rounds) return {write_kernels(graph.order, std::move(placed)), std::move(now)};
    stored = std::move(now);
  }
}

/// Adds what has to be stored for kernels that cannot be as they are; false if there is nothing.
bool force_more(const PlacedGraph& graph, const Round& round, NodeMap<Reason>& forced) {
  bool more = false;
  const auto force = [&](const UOp& u, Reason why) { more = forced.insert(u, why).second || more; };
  const NodeSet stored = nodes_of(graph, round.stored);
  for (const Kernel& k : round.kernels.kernels) {
    if (overlaps_itself(k, graph.effects)) force(k.root.is(Op::STORE) ? k.root.src(1) : k.root, Reason::overlap);
    const auto most = size_t(graph.target_of(k.devices.first()).max_buffers);
    if (!has_too_many_arguments(k, most)) continue;
    for (const UOp& u : argument_cuts(k.root, most - 1, stored)) force(u, Reason::arguments);
  }
  if (more) return true;
  for (const UOp& u : circle_breakers(round.kernels.kernels, graph.effects))
    if (forced.insert(u, Reason::circle).second) return true;
  return false;
}

UOp call_of(const Kernel& k) {
  if (k.copied) return copy_between(k.root, k.target, k.copied);
  const UOp store = stored(k.target, k.target_index, k.value), nest = nest_of(std::span(&store, 1), k.ranges);
  return kernel_of(std::span(&nest, 1));
}

}  // namespace

UOp rangeify(const UOp& sink, const TargetOf& target_of, int32_t first_temporary, Explainer* explainer) {
  const std::vector<UOp> order = toposort(sink);
  const Effects effects(order);
  NodeMap<Reason> forced;
  for (const UOp& u : effects.hazards(order)) forced[u] = Reason::overwritten;
  const std::vector<const UOp*> joinable = joinable_reduces(order, target_of);
  SourcePlaces places;
  const PlacedGraph graph{order, joinable, effects, target_of, places, first_temporary, explainer != nullptr};
  Round round;
  do round = settled(graph, forced, std::move(round.stored));
  while (force_more(graph, round, forced));
  const std::vector<Kernel>& kernels = round.kernels.kernels;
  const std::vector<int> run = order_kernels(kernels, effects);
  std::vector<UOp> calls;
  for (int k : run) calls.push_back(call_of(kernels[size_t(k)]));
  if (explainer) explainer->placed(std::move(round.kernels), run);
  return linear_of(calls);
}

}  // namespace tinygrad::schedule
