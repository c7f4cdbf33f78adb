#include <algorithm>
#include <optional>

#include <fmt/core.h>
#include <tinygrad/errors.h>
#include <tinygrad/kernel_info.h>

#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad {
namespace {

int64_t wrapped(uint64_t x) { return static_cast<int64_t>(x); }

int64_t quotient(int64_t a, int64_t b, bool floor) {
  if (b == 0) return 0;
  if (b == -1) return wrapped(-static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return floor && a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t shifted_left(int64_t a, int64_t b) { return b < 0 || b > 63 ? 0 : wrapped(static_cast<uint64_t>(a) << b); }
int64_t shifted_right(int64_t a, int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }

/// What `op` does to three values of which it may use fewer; nothing for an op that index expressions do not have.
std::optional<int64_t> apply(Op op, int64_t a, int64_t b, int64_t c) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::ADD: return wrapped(ua + ub);
    case Op::SUB: return wrapped(ua - ub);
    case Op::MUL: return wrapped(ua * ub);
    case Op::MULACC: return wrapped(ua * ub + static_cast<uint64_t>(c));
    case Op::NEG: return wrapped(-ua);
    case Op::CDIV: return quotient(a, b, false);
    case Op::FLOORDIV: return quotient(a, b, true);
    case Op::CMOD: return b == 0 ? 0 : wrapped(ua - ub * static_cast<uint64_t>(quotient(a, b, false)));
    case Op::FLOORMOD: return b == 0 ? 0 : wrapped(ua - ub * static_cast<uint64_t>(quotient(a, b, true)));
    case Op::MAX: return std::max(a, b);
    case Op::CMPLT: return a < b;
    case Op::CMPNE: return a != b;
    case Op::CMPEQ: return a == b;
    case Op::AND: return a & b;
    case Op::OR: return a | b;
    case Op::XOR: return a ^ b;
    case Op::SHL: return shifted_left(a, b);
    case Op::SHR: return shifted_right(a, b);
    case Op::WHERE: return a ? b : c;
    case Op::CAST: return a;
    default: return std::nullopt;
  }
}

}  // namespace

IndexExpr::IndexExpr(const UOp& expression, std::span<const Symbol> variables) {
  if (const Scalar* c = const_value(expression)) {
    constant_ = c->as_int();
    return;
  }
  NodeMap<int32_t> position;
  for (const UOp& u : toposort(expression)) {
    Step step{.op = u.op()};
    if (u.is(Op::CONST)) {
      step.value = u.arg_as<ConstArg>().value.as_int();
    } else if (u.is(Op::VAR)) {
      const auto found = std::find(variables.begin(), variables.end(), u.arg_as<VarArg>().name);
      if (found == variables.end())
        throw InternalError(fmt::format("launch expression {}: its variable is not bound", print_expr(expression)));
      step.value = found - variables.begin();
    } else if (u.src_count() <= 3 && !is_float(u.dtype()) && apply(u.op(), 1, 1, 1)) {
      int32_t* sources[] = {&step.a, &step.b, &step.c};
      for (size_t i = 0; i < u.src_count(); ++i) *sources[i] = position[u.src(i)];
    } else {
      throw InternalError(
          fmt::format("launch expression {}: {} is not an integer operation on variables", print_expr(expression), name(u.op())));
    }
    position[u] = static_cast<int32_t>(steps_.size());
    steps_.push_back(step);
  }
}

bool IndexExpr::is_valid(size_t variables) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    const auto number = static_cast<int32_t>(i);
    if (s.op == Op::CONST) continue;
    if (s.op == Op::VAR ? s.value < 0 || static_cast<size_t>(s.value) >= variables : !apply(s.op, 1, 1, 1)) return false;
    for (int32_t source : {s.a, s.b, s.c})
      if (s.op != Op::VAR && (source < 0 || source >= number)) return false;
  }
  return true;
}

int64_t IndexExpr::evaluate(std::span<const int64_t> variables) const {
  if (steps_.empty()) return constant_;
  SmallVector<int64_t, 32> values;
  for (const Step& s : steps_) {
    if (s.op == Op::CONST)
      values.push_back(s.value);
    else if (s.op == Op::VAR)
      values.push_back(variables[static_cast<size_t>(s.value)]);
    else
      values.push_back(*apply(s.op, values[static_cast<size_t>(s.a)], values[static_cast<size_t>(s.b)], values[static_cast<size_t>(s.c)]));
  }
  return values.back();
}

}  // namespace tinygrad
