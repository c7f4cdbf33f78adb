#include "codegen/lower/reduce_steps.h"

#include <algorithm>

#include "codegen/reduce_op.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

bool has(std::span<const UOp> nodes, const UOp& u) { return std::find(nodes.begin(), nodes.end(), u) != nodes.end(); }

}  // namespace

ReduceStep step_of(const UOp& reduce) {
  ReduceStep s{reduce_identities(reduce), reduced_values(reduce), {}, {}, {}};
  int32_t slot = 0;
  const auto add = [&](UOps& to, DType dtype) { to.push_back(UOp(Op::PARAM, dtype, {}, ParamArg{.slot = --slot})); };
  for (const UOp& identity : s.identities) add(s.carried, identity.dtype());
  for (const UOp& v : s.values) add(s.taken, v.dtype());
  s.next = reduce_step(reduce, s.carried, s.taken);
  return s;
}

std::optional<Accumulator> stepped_alone(const ReduceStep& step, size_t number) {
  const auto nodes = toposort(step.next[number]);
  for (size_t i = 0; i < step.carried.size(); ++i)
    if (i != number && has(nodes, step.carried[i])) return {};
  Accumulator out{step.identities[number], {}, {}, {}};
  NodeMap<UOp> renamed;
  int32_t slot = 0;
  const auto rename = [&](const UOp& u) { renamed[u] = UOp(Op::PARAM, u.dtype(), {}, ParamArg{.slot = --slot}); };
  rename(step.carried[number]);
  for (size_t i = 0; i < step.taken.size(); ++i) {
    if (!has(nodes, step.taken[i])) continue;
    rename(step.taken[i]);
    out.values.push_back(step.values[i]);
  }
  out.next = substitute(step.next[number], renamed);
  return out;
}

void add_dependent(const ReduceStep& step, std::span<const UOp> ranges, std::vector<bool>& out) {
  for (bool changed = !ranges.empty(); changed;) {
    changed = false;
    for (size_t i = 0; i < step.next.size(); ++i) {
      if (out[i]) continue;
      const auto nodes = toposort(step.next[i]);
      bool depends = false;
      for (size_t k = 0; k < step.values.size(); ++k)
        depends = depends || (is_open_over(step.values[k], ranges) && has(nodes, step.taken[k]));
      for (size_t k = 0; k < step.next.size(); ++k) depends = depends || (out[k] && has(nodes, step.carried[k]));
      if (depends) out[i] = changed = true;
    }
  }
}

UOp kept_where_nothing_is_added(const UOp& sum, const UOp& next) {
  if (!next.is(Op::ADD) || !is_float(next.dtype())) return next;
  const UOp added = next.src(0) == sum ? next.src(1) : next.src(1) == sum ? next.src(0) : UOp();
  UOp condition, x = added;
  while (x && x.is(Op::WHERE) && (is_const(x.src(1), 0) || is_const(x.src(2), 0))) {
    const bool otherwise = is_const(x.src(1), 0);
    const UOp adds = otherwise ? logical_not(x.src(0)) : x.src(0);
    condition = condition ? condition & adds : adds;
    x = UOp(x.src(otherwise ? 2 : 1));
  }
  return condition ? where(condition, sum + x, sum) : next;
}

}  // namespace tinygrad::codegen
