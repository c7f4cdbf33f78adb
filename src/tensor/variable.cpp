#include <tinygrad/variable.h>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "tensor/handle.h"
#include "uop/build.h"

namespace tinygrad {

Variable::Variable(std::string name, int64_t min, int64_t max) : name_(std::move(name)), min_(min), max_(max) {
  if (name_.empty()) throw ValueError("Variable: the name is empty");
  if (min < 0 || max < min) throw ValueError(fmt::format("Variable {}: got the bounds {} to {}, expects 0 <= min <= max", name_, min, max));
}

Variable Variable::bind(int64_t value) const {
  if (value < min_ || value > max_) throw ValueError(fmt::format("Variable {}: {} is not from {} to {}", name_, value, min_, max_));
  Variable bound = *this;
  bound.value_ = value;
  return bound;
}

UOp tensor::bound_node(const Variable& v) {
  if (!v.value()) throw ValueError(fmt::format("Variable {}: it has no value; use bind()", v.name()));
  return tinygrad::bind(variable(Symbol(v.name()), v.min(), v.max()), *v.value());
}

}  // namespace tinygrad
