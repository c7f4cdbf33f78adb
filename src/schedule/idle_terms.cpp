#include "schedule/idle_terms.h"

#include <algorithm>

#include "shape/ranges.h"
#include "uop/build.h"

namespace tinygrad::schedule {

namespace {

/// Whether a WHERE that gives `u` makes the term idle.
bool is_idle(const UOp& u, Idle idle) {
  if (!u.is(Op::CONST) || idle == Idle::weight) return false;
  return idle == Idle::zero ? is_const(u, 0) : *const_value(u) == min_value(u.dtype());
}

/// True for a factor that is idle, too, wherever a WHERE takes 0 in its place: so that 0 is a weight.
bool is_weight_where(const UOp& test, bool is, const UOp& factor) {
  Conditions tests, needed;
  add_tests(test, is, tests);
  add_conditions(factor, Idle::weight, needed);
  return std::ranges::all_of(tests, [&](const Condition& c) { return std::ranges::find(needed, c) != needed.end(); });
}

}  // namespace

void add_tests(const UOp& test, bool is, Conditions& out) {
  if (test.is(is ? Op::AND : Op::OR)) {
    for (const UOp& part : test.src()) add_tests(part, is, out);
  } else if (test.is(Op::CMPNE) && is_const(test.src(1), 1)) {
    add_tests(test.src(0), !is, out);
  } else {
    out.push_back({test, is});
  }
}

void add_conditions(const UOp& value, Idle idle, Conditions& out) {
  const bool zero = idle == Idle::zero || idle == Idle::weight;
  const auto below = [&](size_t source, Idle as) { add_conditions(value.src(source), as, out); };
  switch (value.op()) {
    case Op::WHERE:
      for (const bool is : {true, false})
        if (is_idle(value.src(is ? 2 : 1), idle)) {
          add_tests(value.src(0), is, out);
          below(is ? 1 : 2, idle);
        } else if (idle == Idle::weight && is_const(value.src(is ? 2 : 1), 0) && is_weight_where(value.src(0), is, value.src(is ? 1 : 2))) {
          below(is ? 1 : 2, idle);
        }
      break;
    case Op::CAST:
      if (is_float(value.dtype()) == is_float(value.src(0).dtype())) below(0, idle);
      break;
    case Op::WEIGHT:
      if (zero) add_tests(value.src(1), true, out);
      break;
    case Op::NEG:
      if (zero) below(0, idle);
      break;
    case Op::MUL:
      if (zero) {
        below(0, Idle::weight);
        below(1, Idle::weight);
      } else if (const Scalar* factor = const_value(value.src(1)); factor && is_float(value.dtype()) && factor->as_double() > 0) {
        below(0, idle);
      }
      break;
    case Op::FDIV:
      if (zero) below(0, Idle::weight);
      break;
    case Op::ADD:
      if (idle == Idle::exponent) below(1, idle);
      [[fallthrough]];
    case Op::SUB:
      if (idle == Idle::exponent) below(0, idle);
      break;
    case Op::EXP2:
      if (zero) below(0, Idle::exponent);
      break;
    case Op::LOAD:
      if (idle == Idle::zero && value.src_count() == 1 && value.src(0).is(Op::INDEX) && value.src(0).src_count() > 2)
        add_tests(value.src(0).src(2), true, out);
      break;
    case Op::REDUCE:
      if (!is_general_reduce(value) && value.arg_as<ReduceArg>().op == (zero ? Op::ADD : Op::MAX)) below(0, idle);
      break;
    default: break;
  }
}

UOp all_hold(const Conditions& conditions) {
  UOp out;
  for (const Condition& c : conditions) {
    const UOp holds = c.is ? c.test : logical_not(c.test);
    out = out ? out & holds : holds;
  }
  return out;
}

}  // namespace tinygrad::schedule
