#include "schedule/cost.h"

#include <algorithm>
#include <vector>

#include "schedule/select.h"
#include "shape/ranges.h"
#include "shape/shape.h"
#include "shape/sint.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

constexpr size_t most_nodes = 400;

double own_cost(const UOp& u, const Costs& costs) { return u.in(Group::elementwise) || u.is(Op::REDUCE) ? costs.ops.of(u.op()).fused : 0; }

double terms_of(const UOp& reduce) { return most_elements(reduce.src(0).is(Op::TUPLE) ? reduce.src(0).src(0) : reduce.src(0)); }

/// How often a REDUCE uses each element of memory below it, on average.
double reuse_of(const UOp& reduce, const std::function<bool(const UOp&)>& is_stored) {
  double leaves = 0;
  NodeSet seen;
  for (std::vector<const UOp*> stack{&reduce.src(0)}; !stack.empty();) {
    const UOp& u = *stack.back();
    stack.pop_back();
    if (!seen.insert(u)) continue;
    if (seen.size() > most_nodes) return 1;
    if (u.is(Op::PARAM) || u.is(Op::AFTER) || is_stored(u))
      leaves += most_elements(u);
    else
      for (const UOp& s : u.in(Group::movement) ? u.src().first(1) : u.src())
        if (s.dtype() != DType::void_ || s.is(Op::TUPLE)) stack.push_back(&s);
  }
  return terms_of(reduce) / std::max(leaves, 1.0);
}

}  // namespace

double most_elements(const UOp& u) {
  double n = 1;
  for (int64_t s : max_sizes(shape_of(u))) n *= double(s);
  return n;
}

double joined_accumulators(const Target& target) {
  const int held = std::max(target.vector_registers / 2, 1) * target.lanes(DType::float32);
  return target.has_groups ? held : std::max(held, most_kept_results);
}

double store_cost(const Target& target, double elements, double times, DType dtype, double parts) {
  // Narrow elements are converted on their way, and a mask is used together with what it masks, at the same places: by its own small size
  // it would always look worth storing.
  const double bytes = double(std::max(itemsize(DType::float32), itemsize(dtype)));
  const bool far = elements / parts * bytes > double(std::max(target.l2_bytes, target.l3_bytes));
  const Costs& costs = general_costs();
  return bytes * (elements * (far ? costs.memory.far_byte : costs.memory.stored_byte) + times * costs.memory.loaded_byte) +
         costs.launch(target);
}

InlineCost inline_cost(const UOp& root, const Target& target, const std::function<bool(const UOp&)>& is_stored, bool with_products) {
  const Costs& costs = general_costs();
  const double shared_loads = target.has_groups ? 1 : register_tile;
  struct Item {
    const UOp* node;
    double times;  // evaluations for one element of the root
    bool in_loop;  // of a REDUCE below the root: what does not change there is still evaluated each time
    bool in_product;
  };
  std::vector<Item> stack{{&root, 1.0, false, false}};
  NodeSet seen;
  InlineCost out;
  double leaves = 0;
  const double outputs = most_elements(root);
  while (!stack.empty()) {
    auto [u, times, in_loop, in_product] = stack.back();
    stack.pop_back();
    if (!seen.insert(*u)) continue;
    if (seen.size() > most_nodes) return {.cost = 1e30};
    const auto add = [&](double cost) {
      out.cost += cost;
      if (in_product) out.products += cost;
    };
    if (u->is(Op::PARAM) || u->is(Op::AFTER) || (*u != root && is_stored(*u))) {
      // Outputs that are computed together share what they load.
      const double reuse = in_loop ? outputs * times / std::max(most_elements(*u), 1.0) : 1;
      add(times * costs.memory.loaded_byte * itemsize(u->dtype()) / std::clamp(reuse, 1.0, shared_loads));
      leaves += most_elements(*u);
      continue;
    }
    double inner = times;
    if (u->is(Op::REDUCE) && !is_selection(*u)) {
      in_product = in_product || (with_products && reuse_of(*u, is_stored) >= register_tile);
      const Shape& in = shape_of(u->src(0).is(Op::TUPLE) ? u->src(0).src(0) : u->src(0));
      for (int a : u->arg_as<ReduceArg>().axes) inner *= double(in[size_t(a)].max());
    }
    // What is broadcast is computed once for all elements that share it; in a loop, for those that are computed together.
    if (u->is(Op::EXPAND)) {
      const double share = most_elements(u->src(0)) / std::max(most_elements(*u), 1.0);
      inner *= in_loop ? std::max(share, 1 / register_tile) : share;
    }
    add(inner * own_cost(*u, costs));
    const size_t sources = u->in(Group::movement) ? 1 : u->src_count();
    for (size_t i = 0; i < sources; ++i)
      if (u->src(i).dtype() != DType::void_ || u->src(i).is(Op::TUPLE))
        stack.push_back({&u->src(i), inner, in_loop || u->is(Op::REDUCE), in_product});
  }
  if (root.is(Op::REDUCE) && !is_selection(root)) out.reuse = terms_of(root) / std::max(leaves, 1.0);
  return out;
}

std::optional<Decision> decide_by_uses(const Demand& d) {
  if (d.is_carried) return Decision{false, Reason::carried};
  if (d.overfills) return Decision{true, Reason::full_kernel};
  const bool is_misplaced = d.starves || d.is_hoisted || d.is_summed;
  if (d.uses == 1 && d.evaluations <= d.elements && !is_misplaced) return Decision{false, Reason::used_once};
  if (d.uses > most_uses) return Decision{true, Reason::many_uses};
  return {};
}

Decision decide_by_cost(const Demand& d, const InlineCost& one, const Target& target) {
  const double once = d.elements * one.cost, all = d.evaluations * one.cost;
  const bool is_product = one.reuse >= register_tile;
  const double stored = store_cost(target, d.elements, d.evaluations, d.dtype, d.uses > 1 && is_product ? d.parts : 1);
  const auto decided = [&](bool stores, Reason reason) { return Decision{stores, reason, all - once, stored}; };
  // To mask it each time that it is read is little beside computing it.
  if (d.is_padding && 50 * d.evaluations < once) return decided(false, Reason::padding);
  // In the loops of another reduction each is computed by itself, not in a tile with its neighbours.
  if (is_product && (d.is_hoisted || (d.is_summed && 2 * stored < once))) return decided(true, Reason::inner_loop);
  if (d.starves && once > 50 * general_costs().launch(target)) return decided(true, Reason::few_outputs);
  // In the loops of another reduction a product has no tile of neighbours to share loads with.
  const double again = (d.evaluations - d.elements) * (one.cost + (d.is_scattered ? (register_tile - 1) * one.products : 0));
  return stored < again ? decided(true, Reason::cheaper_stored) : decided(false, Reason::cheaper_computed);
}

double compile_weight(const UOp& u) {
  constexpr double loop = 32, access = 4;
  if (u.dtype() == DType::index || u.dtype() == DType::void_) return 0;
  switch (u.op()) {
    case Op::REDUCE: return is_selection(u) ? access : loop;
    case Op::PARAM:
    case Op::AFTER:
    case Op::LOAD: return access;
    default: return u.in(Group::alu) ? general_costs().ops.of(u.op()).compiled : 0;
  }
}

double compile_weight_of(const UOp& value, double most, FunctionRef<bool(const UOp&)> is_stored) {
  double weight = 0;
  for (std::vector<const UOp*> stack{&value}; !stack.empty() && weight <= most;) {
    const UOp& x = *stack.back();
    stack.pop_back();
    weight += compile_weight(x);
    if (x.is(Op::PARAM) || x.is(Op::AFTER) || (x != value && is_stored(x))) continue;
    for (const UOp& s : x.in(Group::movement) ? x.src().first(1) : x.src())
      if (s.dtype() != DType::index) stack.push_back(&s);
  }
  return weight;
}

double arithmetic_cost(const UOp& x, const Costs& costs) {
  double cost = 0;
  for (const UOp& u : toposort(x)) {
    if (u.dtype() == DType::index || u.dtype() == DType::void_) continue;
    double times = own_cost(u, costs);
    UOps around = ranges_of(u);
    if (u.is(Op::REDUCE)) around.append(closed_ranges(u).begin(), closed_ranges(u).end());
    for (const UOp& r : around) times *= double(std::max<int64_t>(SInt(r.src(0)).max(), 1));
    cost += times;
  }
  return cost;
}

double scalar_cost(const UOp& x, const Costs& costs) {
  const UOps outside = ranges_of(x);
  double cost = 0;
  for (const UOp& u : toposort(x)) {
    if (u.dtype() == DType::index || u.dtype() == DType::void_) continue;
    double times = 1;
    UOps around = ranges_of(u);
    if (u.is(Op::REDUCE)) around.append(closed_ranges(u).begin(), closed_ranges(u).end());
    for (const UOp& r : around)
      if (std::find(outside.begin(), outside.end(), r) == outside.end()) times *= double(std::max<int64_t>(SInt(r.src(0)).max(), 1));
    cost += times * (u.is(Op::LOAD) ? costs.memory.loaded_byte * itemsize(u.dtype()) : own_cost(u, costs));
  }
  return cost;
}

}  // namespace tinygrad::schedule
