#include <tinygrad/variable.h>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "tensor/handle.h"
#include "uop/build.h"

namespace tinygrad {

Variable::Variable(std::string name, int64_t min, int64_t max, std::optional<DType> dtype)
    : name_(std::move(name)), min_(min), max_(max), dtype_(dtype) {
  if (dtype && !is_int(*dtype)) throw DTypeError(fmt::format("Variable {}: got {}, expects an integer dtype", name_, repr(*dtype)));
  if (name_.empty()) throw ValueError("Variable: the name is empty");
  if (name_.starts_with('_'))
    throw ValueError(fmt::format("Variable {}: names that begin with _ are for the library's own variables", name_));
  if (min < 0 || max < min) throw ValueError(fmt::format("Variable {}: got the bounds {} to {}, expects 0 <= min <= max", name_, min, max));
}

Variable Variable::bind(int64_t value) const {
  if (value < min_ || value > max_) throw ValueError(fmt::format("Variable {}: {} is not from {} to {}", name_, value, min_, max_));
  Variable bound = *this;
  bound.value_ = value;
  return bound;
}

namespace detail {

struct SymbolicExtent {
  SInt size;
};

struct ExtentAccess {
  static SInt size(const Extent& e) { return e.symbolic_ ? e.symbolic_->size : SInt(e.number_); }
  static Extent extent(const SInt& size) {
    if (size.known()) return size.value();
    Extent e(0);
    e.symbolic_ = std::make_shared<const SymbolicExtent>(SymbolicExtent{size});
    return e;
  }
};

}  // namespace detail

namespace tensor {

UOp bound_node(const Variable& v) {
  const UOp var = variable(Symbol(v.name()), v.min(), v.max());
  return v.value() ? tinygrad::bind(var, *v.value()) : var;
}

SInt to_size(const Extent& e) { return detail::ExtentAccess::size(e); }
Extent to_extent(const SInt& size) { return detail::ExtentAccess::extent(size); }

Shape to_shape(const Extents& sizes) {
  Shape out;
  for (const Extent& e : sizes) out.push_back(to_size(e));
  return out;
}

}  // namespace tensor

using tensor::to_extent;
using tensor::to_size;

Extent::Extent(const Variable& variable) { *this = to_extent(SInt(tensor::bound_node(variable))); }

int64_t Extent::value() const { return symbolic_ ? value_now(to_size(*this)) : number_; }
int64_t Extent::min() const { return to_size(*this).min(); }
int64_t Extent::max() const { return to_size(*this).max(); }
std::string Extent::to_string() const { return tinygrad::to_string(to_size(*this)); }

Extent operator+(const Extent& a, const Extent& b) { return to_extent(to_size(a) + to_size(b)); }
Extent operator-(const Extent& a, const Extent& b) { return to_extent(to_size(a) - to_size(b)); }
Extent operator*(const Extent& a, const Extent& b) { return to_extent(to_size(a) * to_size(b)); }
Extent operator/(const Extent& a, const Extent& b) { return to_extent(floor_div(to_size(a), to_size(b))); }
Extent operator%(const Extent& a, const Extent& b) {
  if (b.known() && b.value() == 0) throw ValueError(fmt::format("division of the size {} by 0", a.to_string()));
  return to_extent(floor_mod(to_size(a), to_size(b)));
}
bool operator==(const Extent& a, const Extent& b) { return to_size(a) == to_size(b); }

}  // namespace tinygrad
