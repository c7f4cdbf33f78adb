#include "codegen/lower/repeated_terms.h"

#include "shape/ranges.h"
#include "target/costs.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr double least_cost = 8;  // cycles of a scalar

bool is_value(const UOp& u) { return (u.in(Group::alu) || u.in(Group::convert)) && u.dtype() != DType::index; }

/// Cycles to compute the value in each iteration.
double cost_in(const UOp& value, std::span<const UOp> loops) {
  double sum = 0;
  for (const UOp& u : toposort_where(std::span(&value, 1), [&](const UOp& v) { return is_open_over(v, loops); }))
    if (is_value(u) && is_open_over(u, loops)) sum += general_costs().ops.of(u.op()).cycles;
  return sum;
}

}  // namespace

std::vector<RepeatedTerm> repeated_terms(const UOp& body, std::span<const UOp> of, const UOp& result, std::span<const UOp> to) {
  const auto is_term = [&](const UOp& u) { return is_value(u) && is_open_over(u, of); };
  std::vector<UOp> terms = toposort(body);
  std::erase_if(terms, [&](const UOp& u) { return !is_term(u); });
  NodeMap<UOp> map;
  for (size_t i = 0; i < of.size(); ++i) map[of[i]] = to[i];
  const std::vector<UOp> images = substitute_open(terms, of, map);
  NodeMap<UOp> term_of(terms.size());
  for (size_t i = 0; i < terms.size(); ++i) term_of[images[i]] = terms[i];

  std::vector<RepeatedTerm> out;
  const auto enters = [&](const UOp& u) { return !term_of.contains(u) && is_open_over(u, to); };
  for (const UOp& u : toposort_where(std::span(&result, 1), enters))
    if (const UOp* term = term_of.find(u); term && is_open_over(u, to) && cost_in(u, to) >= least_cost) out.push_back({*term, u});
  return out;
}

}  // namespace tinygrad::codegen
