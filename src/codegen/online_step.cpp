#include "codegen/online_step.h"

#include "codegen/reduce_op.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr size_t carried = 2;

UOp parameter(DType dtype, size_t slot) { return UOp(Op::PARAM, dtype, {}, ParamArg{.slot = int32_t(slot)}); }

bool is_slot(const UOp& u, int32_t slot) { return u.is(Op::PARAM) && u.arg_as<ParamArg>().slot == slot; }

/// The other source of a node that has two, where the one is `is(source)`; null without.
template <class F>
UOp beside(const UOp& u, F&& is) {
  for (size_t i = 0; i < 2; ++i)
    if (is(u.src(i))) return u.src(1 - i);
  return {};
}

/// What s is multiplied by, if `u` is such a product.
UOp scale_of(const UOp& u) {
  return u.is(Op::MUL) ? beside(u, [](const UOp& v) { return is_slot(v, 1); }) : UOp();
}

/// The REDUCE with another step over other values.
UOp with_step(const UOp& reduce, const UOps& values, const UOp& maximum, const UOp& sum) {
  const UOp& old = reduce.src(2);
  UOps sources(reduce.src().begin(), reduce.src().end());
  sources[0] = UOp(Op::TUPLE, DType::void_, values);
  sources[2] = UOp(Op::FUNCTION, DType::void_, {UOp(Op::TUPLE, DType::void_, {maximum, sum})}, old.arg());
  return reduce.with_src(sources);
}

}  // namespace

std::optional<OnlineStep> online_step(const UOp& reduce) {
  if (!is_general_reduce(reduce) || reduce_identities(reduce).size() != carried) return {};
  const UOp& body = reduce.src(2).src(0);
  const UOp &maximum = body.src(0), &sum = body.src(1);
  const UOp x = maximum.is(Op::MAX) ? beside(maximum, [](const UOp& u) { return is_slot(u, 0); }) : UOp();
  if (!x || !is_slot(x, carried) || !sum.is(Op::ADD)) return {};
  const UOp term = beside(sum, [](const UOp& u) { return bool(scale_of(u)); });
  if (!term) return {};
  const UOp scale = scale_of(sum.src(0) == term ? sum.src(1) : sum.src(0));
  if (!scale.is(Op::WHERE) || !is_const(scale.src(2), 1) || !scale.src(0).is(Op::CMPLT)) return {};
  return OnlineStep{scale.src(0), scale, term};
}

UOp take_together(const UOp& reduce, const OnlineStep& step, const std::vector<UOps>& steps) {
  const UOps identities = reduce_identities(reduce);
  const UOp m = parameter(identities[0].dtype(), 0), s = parameter(identities[1].dtype(), 1), x = parameter(m.dtype(), carried);
  UOps values;
  std::vector<UOps> taken;
  for (const UOps& one : steps) {
    taken.emplace_back();
    for (const UOp& v : one) {
      taken.back().push_back(parameter(v.dtype(), carried + values.size()));
      values.push_back(v);
    }
  }
  UOp most = m;
  for (const UOps& t : taken) most = max(most, t[0]);
  NodeMap<UOp> all;
  all[x] = most;
  UOp sum = s * substitute(step.scale, all);
  for (const UOps& t : taken) {
    // No x is larger than the maximum of all.
    NodeMap<UOp> one;
    one[step.grows] = bool_const(false);
    one[m] = most;
    for (size_t i = 0; i < t.size(); ++i) one[taken[0][i]] = t[i];  // the first's values are called as the step calls its own
    sum = sum + substitute(step.term, one);
  }
  return with_step(reduce, values, most, sum);
}

UOp mask_online(const UOp& reduce, const OnlineStep& step, const UOp& valid) {
  UOps values = reduced_values(reduce);
  const UOps identities = reduce_identities(reduce);
  const UOp flag = parameter(DType::bool_, carried + values.size());
  values[0] = where(valid, values[0], identities[0]);
  values.push_back(valid);
  const UOp s = parameter(identities[1].dtype(), 1);
  return with_step(reduce, values, reduce.src(2).src(0).src(0), s * step.scale + where(flag, step.term, constant(step.term.dtype(), 0)));
}

}  // namespace tinygrad::codegen
