// Arithmetic, element by element.
#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "tensor/handle.h"
#include "tensor/storage.h"
#include "uop/build.h"

namespace tinygrad {

using namespace tensor;

namespace {
/// Of the four operations, whose numbers may differ from call to call.
ops::Operand given_operand(const Operand& x) { return to_operand(x).as_given(); }
}  // namespace

Tensor Tensor::add(const Operand& x) const { return wrap(ops::add(uop(), given_operand(x), context())); }
Tensor Tensor::sub(const Operand& x) const { return wrap(ops::sub(uop(), given_operand(x), context())); }
Tensor Tensor::mul(const Operand& x) const { return wrap(ops::mul(uop(), given_operand(x), context())); }
Tensor Tensor::mod(const Operand& x) const { return wrap(ops::mod(uop(), to_operand(x), context())); }
Tensor Tensor::pow(const Operand& x) const { return wrap(ops::pow(uop(), to_operand(x), context())); }
Tensor Tensor::maximum(const Operand& x) const { return wrap(ops::maximum(uop(), to_operand(x), context())); }
Tensor Tensor::minimum(const Operand& x) const { return wrap(ops::minimum(uop(), to_operand(x), context())); }
Tensor Tensor::bitwise_and(const Operand& x) const { return wrap(ops::bitwise_and(uop(), to_operand(x), context())); }
Tensor Tensor::bitwise_or(const Operand& x) const { return wrap(ops::bitwise_or(uop(), to_operand(x), context())); }
Tensor Tensor::bitwise_xor(const Operand& x) const { return wrap(ops::bitwise_xor(uop(), to_operand(x), context())); }
Tensor Tensor::fmod(const Operand& x) const { return wrap(ops::fmod(uop(), to_operand(x), context())); }
Tensor Tensor::copysign(const Operand& x) const { return wrap(ops::copysign(uop(), to_operand(x), context())); }
Tensor Tensor::logaddexp(const Operand& x) const { return wrap(ops::logaddexp(uop(), to_operand(x), context())); }
Tensor Tensor::lshift(const Operand& x) const { return wrap(ops::lshift(uop(), to_operand(x), context())); }
Tensor Tensor::rshift(const Operand& x) const { return wrap(ops::rshift(uop(), to_operand(x), context())); }
Tensor Tensor::eq(const Operand& x) const { return wrap(ops::eq(uop(), to_operand(x), context())); }
Tensor Tensor::ne(const Operand& x) const { return wrap(ops::ne(uop(), to_operand(x), context())); }
Tensor Tensor::lt(const Operand& x) const { return wrap(ops::lt(uop(), to_operand(x), context())); }
Tensor Tensor::gt(const Operand& x) const { return wrap(ops::gt(uop(), to_operand(x), context())); }
Tensor Tensor::le(const Operand& x) const { return wrap(ops::le(uop(), to_operand(x), context())); }
Tensor Tensor::ge(const Operand& x) const { return wrap(ops::ge(uop(), to_operand(x), context())); }
Tensor Tensor::div(const Operand& x, Rounding rounding) const { return wrap(ops::div(uop(), given_operand(x), rounding, context())); }
Tensor Tensor::isclose(const Operand& x, const CloseOptions& o) const {
  return wrap(ops::isclose(uop(), to_operand(x), {o.rtol, o.atol, o.equal_nan}, context()));
}
Tensor Tensor::where(const Operand& x, const Operand& y) const { return wrap(ops::where(uop(), to_operand(x), to_operand(y), context())); }
Tensor Tensor::masked_fill(const Tensor& mask, const Operand& value) const {
  return wrap(ops::masked_fill(uop(), mask.uop(), to_operand(value), context()));
}

namespace {
std::optional<ops::Operand> to_bound(const std::optional<Operand>& x) { return x ? std::optional(to_operand(*x)) : std::nullopt; }
}  // namespace

Tensor Tensor::clamp(const std::optional<Operand>& min, const std::optional<Operand>& max) const {
  return wrap(ops::clamp(uop(), to_bound(min), to_bound(max), context()));
}
Tensor Tensor::lerp(const Tensor& end, const Operand& weight) const {
  return wrap(ops::lerp(uop(), end.uop(), to_operand(weight), context()));
}

Tensor Tensor::neg() const { return wrap(ops::neg(uop())); }
Tensor Tensor::logical_not() const { return wrap(ops::logical_not(uop())); }
Tensor Tensor::bitwise_not() const { return wrap(ops::bitwise_not(uop())); }
Tensor Tensor::abs() const { return wrap(ops::abs(uop())); }
Tensor Tensor::sign() const { return wrap(ops::sign(uop())); }
Tensor Tensor::square() const { return wrap(ops::square(uop())); }
Tensor Tensor::reciprocal() const { return wrap(ops::reciprocal(uop(), context())); }
Tensor Tensor::sqrt() const { return wrap(ops::sqrt(uop(), context())); }
Tensor Tensor::rsqrt() const { return wrap(ops::rsqrt(uop(), context())); }
Tensor Tensor::exp() const { return wrap(ops::exp(uop(), context())); }
Tensor Tensor::exp2() const { return wrap(ops::exp2(uop(), context())); }
Tensor Tensor::log() const { return wrap(ops::log(uop(), context())); }
Tensor Tensor::log2() const { return wrap(ops::log2(uop(), context())); }
Tensor Tensor::log10() const { return wrap(ops::log10(uop(), context())); }
Tensor Tensor::sin() const { return wrap(ops::sin(uop(), context())); }
Tensor Tensor::cos() const { return wrap(ops::cos(uop(), context())); }
Tensor Tensor::tan() const { return wrap(ops::tan(uop(), context())); }
Tensor Tensor::asin() const { return wrap(ops::asin(uop(), context())); }
Tensor Tensor::acos() const { return wrap(ops::acos(uop(), context())); }
Tensor Tensor::atan() const { return wrap(ops::atan(uop(), context())); }
Tensor Tensor::sinh() const { return wrap(ops::sinh(uop(), context())); }
Tensor Tensor::cosh() const { return wrap(ops::cosh(uop(), context())); }
Tensor Tensor::tanh() const { return wrap(ops::tanh(uop(), context())); }
Tensor Tensor::asinh() const { return wrap(ops::asinh(uop(), context())); }
Tensor Tensor::acosh() const { return wrap(ops::acosh(uop(), context())); }
Tensor Tensor::atanh() const { return wrap(ops::atanh(uop(), context())); }
Tensor Tensor::erf() const { return wrap(ops::erf(uop(), context())); }
Tensor Tensor::trunc() const { return wrap(ops::trunc(uop())); }
Tensor Tensor::floor() const { return wrap(ops::floor(uop())); }
Tensor Tensor::ceil() const { return wrap(ops::ceil(uop())); }
Tensor Tensor::round() const { return wrap(ops::round(uop())); }
Tensor Tensor::isnan() const { return wrap(ops::isnan(uop())); }
Tensor Tensor::isinf(const InfOptions& o) const { return wrap(ops::isinf(uop(), o.detect_positive, o.detect_negative)); }
Tensor Tensor::isfinite() const { return wrap(ops::isfinite(uop())); }
Tensor Tensor::relu() const { return wrap(ops::relu(uop())); }
Tensor Tensor::relu6() const { return wrap(ops::relu6(uop())); }
Tensor Tensor::sigmoid() const { return wrap(ops::sigmoid(uop(), context())); }
Tensor Tensor::logsigmoid() const { return wrap(ops::logsigmoid(uop(), context())); }
Tensor Tensor::hardsigmoid(double alpha, double beta) const { return wrap(ops::hardsigmoid(uop(), alpha, beta, context())); }
Tensor Tensor::hardtanh(const Operand& min, const Operand& max) const {
  return wrap(ops::hardtanh(uop(), to_operand(min), to_operand(max), context()));
}
Tensor Tensor::hardswish() const { return wrap(ops::hardswish(uop(), context())); }
Tensor Tensor::quick_gelu() const { return wrap(ops::quick_gelu(uop(), context())); }
Tensor Tensor::silu() const { return wrap(ops::silu(uop(), context())); }
Tensor Tensor::softsign() const { return wrap(ops::softsign(uop(), context())); }
Tensor Tensor::mish() const { return wrap(ops::mish(uop(), context())); }
Tensor Tensor::leaky_relu(double neg_slope) const { return wrap(ops::leaky_relu(uop(), neg_slope, context())); }
Tensor Tensor::gelu(GeluForm form) const { return wrap(ops::gelu(uop(), form, context())); }
Tensor Tensor::elu(double alpha) const { return wrap(ops::elu(uop(), alpha, context())); }
Tensor Tensor::celu(double alpha) const { return wrap(ops::celu(uop(), alpha, context())); }
Tensor Tensor::selu(double alpha, double gamma) const { return wrap(ops::selu(uop(), alpha, gamma, context())); }
Tensor Tensor::softplus(double beta) const { return wrap(ops::softplus(uop(), beta, context())); }
Tensor Tensor::threefry(const Tensor& key) const { return wrap(ops::threefry(uop(), key.uop())); }
Tensor Tensor::cast(DType dtype, bool saturate) const {
  const UOp x = saturate ? ops::saturated(uop(), of_values(dtype)) : uop();
  return wrap_view(ops::strong(tinygrad::cast(x, of_values(dtype))));
}
Tensor Tensor::bitcast(DType dtype) const {
  const UOp x = uop();
  return wrap_view(is_storage(x) ? storage_bitcast(x, of_values(dtype)) : ops::bitcast(x, of_values(dtype)));
}

namespace {
UOp quotient(const ops::Operand& a, const ops::Operand& b, const ops::OpsContext& ctx) { return ops::div(a, b, Rounding::none, ctx); }
}  // namespace

#define TG_TENSOR_OPERATOR(symbol, builder, operand)                                                                  \
  Tensor operator symbol(const Tensor& a, const Tensor& b) { return wrap(builder(a.uop(), b.uop(), context())); }     \
  Tensor operator symbol(const Tensor& a, const Operand& b) { return wrap(builder(a.uop(), operand(b), context())); } \
  Tensor operator symbol(const Operand& a, const Tensor& b) { return wrap(builder(operand(a), b.uop(), context())); }
TG_TENSOR_OPERATOR(+, ops::add, given_operand)
TG_TENSOR_OPERATOR(-, ops::sub, given_operand)
TG_TENSOR_OPERATOR(*, ops::mul, given_operand)
TG_TENSOR_OPERATOR(/, quotient, given_operand)
TG_TENSOR_OPERATOR(%, ops::mod, to_operand)
TG_TENSOR_OPERATOR(&, ops::bitwise_and, to_operand)
TG_TENSOR_OPERATOR(|, ops::bitwise_or, to_operand)
TG_TENSOR_OPERATOR(^, ops::bitwise_xor, to_operand)
TG_TENSOR_OPERATOR(<<, ops::lshift, to_operand)
TG_TENSOR_OPERATOR(>>, ops::rshift, to_operand)
TG_TENSOR_OPERATOR(<, ops::lt, to_operand)
TG_TENSOR_OPERATOR(>, ops::gt, to_operand)
TG_TENSOR_OPERATOR(<=, ops::le, to_operand)
TG_TENSOR_OPERATOR(>=, ops::ge, to_operand)
TG_TENSOR_OPERATOR(==, ops::eq, to_operand)
TG_TENSOR_OPERATOR(!=, ops::ne, to_operand)
#undef TG_TENSOR_OPERATOR

Tensor operator-(const Tensor& x) { return x.neg(); }
Tensor operator~(const Tensor& x) { return x.bitwise_not(); }
Tensor& operator+=(Tensor& a, const Operand& b) { return a.assign(a.add(b)); }
Tensor& operator-=(Tensor& a, const Operand& b) { return a.assign(a.sub(b)); }
Tensor& operator*=(Tensor& a, const Operand& b) { return a.assign(a.mul(b)); }
Tensor& operator/=(Tensor& a, const Operand& b) { return a.assign(a.div(b)); }

Tensor Tensor::alu(Op op, std::span<const Tensor> more) const {
  if (!in_group(op, Group::alu) || info(op).arity != int(more.size()) + 1)
    throw ValueError(
        fmt::format("alu: {} of {} tensors; expects an elementwise op and as many tensors as it takes", name(op), more.size() + 1));
  UOps sources{uop()};
  Shape shape = shape_of(uop());
  for (const Tensor& t : more) {
    sources.push_back(t.uop());
    shape = ops::broadcast_shape(shape, shape_of(t.uop()), name(op));
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool condition = op == Op::WHERE && i == 0;
    const DType dtype = op == Op::WHERE ? sources[1].dtype() : sources[0].dtype();
    if (!condition && sources[i].dtype() != dtype)
      throw DTypeError(fmt::format("alu: {} of {} and {}; cast one", name(op), repr(dtype), repr(sources[i].dtype())));
    sources[i] = ops::broadcast_to(sources[i], shape);
  }
  return wrap(tinygrad::alu(op, std::span<const UOp>(sources.begin(), sources.size())));
}

Tensor Tensor::ufix(const Operand& x) const {
  const ops::Operand given = to_operand(x);
  return given.is_number() ? wrap(ops::as_node(given, ops::common_dtype(uop(), given, context()))) : wrap(given.node());
}

Tensor Tensor::usum(std::span<const Tensor> others) const {
  Tensor out = others.empty() ? wrap(uop()) : *this;
  for (const Tensor& t : others) out = out.add(t);
  return out;
}

Tensor Tensor::uprod(std::span<const Tensor> others) const {
  Tensor out = others.empty() ? wrap(uop()) : *this;
  for (const Tensor& t : others) out = out.mul(t);
  return out;
}

}  // namespace tinygrad
