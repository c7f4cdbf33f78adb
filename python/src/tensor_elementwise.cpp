// Arithmetic and functions of single elements, with Python's operators.
#include "common.h"

#include "ops/elementwise.h"
#include "ops/nn.h"
#include "tensor/handle.h"

namespace tinygrad::python {

namespace {

/// What an operator computes of two operands, of which one at least is a tensor.
using Binary = UOp (*)(const ops::Operand&, const ops::Operand&, const ops::OpsContext&);

Tensor apply(Binary f, const ops::Operand& a, const ops::Operand& b, const char* name) {
  return tensor::wrap(f(a, b, tensor::context()), name);
}

/// `open`: a number may differ from call to call (ConstArg::given), as those of the methods of C++.
ops::Operand operand_of(const Value& x, bool open) { return open ? tensor::to_operand(x).as_given() : tensor::to_operand(x); }

void bind_method(TensorClass& tensor, const char* name, Binary f, bool open) {
  tensor.def(
      name,
      [f, name, open](const Tensor& t, const Value& x, bool reverse) {
        const ops::Operand other = operand_of(x, open);
        return reverse ? apply(f, other, t.uop(), name) : apply(f, t.uop(), other, name);
      },
      "x"_a, "reverse"_a = false);
}

/// t op x, x op t, and t op= x.
void bind_operator(TensorClass& tensor, const char* name, Binary f, bool open) {
  const std::string text(name);
  tensor.def(("__" + text + "__").c_str(),
             [f, name, open](const Tensor& t, const Value& x) { return apply(f, t.uop(), operand_of(x, open), name); }, nb::is_operator());
  tensor.def(("__r" + text + "__").c_str(),
             [f, name, open](const Tensor& t, const Value& x) { return apply(f, operand_of(x, open), t.uop(), name); }, nb::is_operator());
  tensor.def(("__i" + text + "__").c_str(),
             [f, name, open](nb::handle self, const Value& x) {
               Tensor& t = *nb::inst_ptr<Tensor>(self);
               const Tensor changed = apply(f, t.uop(), operand_of(x, open), name);
               {
                 const Interruptible interruptible;
                 const Released released;
                 t.assign(changed);
               }
               return nb::borrow(self);
             },
             nb::is_operator());
}

void bind_comparison(TensorClass& tensor, const char* name, Binary f) {
  const std::string text(name);
  tensor.def(("__" + text + "__").c_str(),
             [f, name](const Tensor& t, const Value& x) { return apply(f, t.uop(), tensor::to_operand(x.compared()), name); },
             nb::is_operator());
}

UOp product(const ops::Operand& a, const ops::Operand& b, const ops::OpsContext&) {
  if (a.is_number() || b.is_number()) throw nb::type_error("matmul: expects a tensor, got a number");
  return ops::matmul(a.node(), b.node());
}

UOp quotient(const ops::Operand& a, const ops::Operand& b, const ops::OpsContext& ctx) { return ops::div(a, b, Rounding::none, ctx); }

UOp floor_quotient(const ops::Operand& a, const ops::Operand& b, const ops::OpsContext& ctx) {
  return ops::div(a, b, Rounding::floor, ctx);
}

Rounding rounding_of(const std::optional<std::string>& mode) {
  return mode ? choose<Rounding>("div: rounding_mode", *mode, {{"trunc", Rounding::trunc}, {"floor", Rounding::floor}}) : Rounding::none;
}

void bind_operators(TensorClass& tensor) {
  const struct {
    const char *method, *name;
    Binary function;
    bool open = false;
  } operators[] = {
      {"add", "add", ops::add, true},
      {"sub", "sub", ops::sub, true},
      {"mul", "mul", ops::mul, true},
      {nullptr, "truediv", quotient, true},
      {nullptr, "floordiv", floor_quotient, true},
      {"mod", "mod", ops::mod},
      {"pow", "pow", ops::pow},
      {"bitwise_and", "and", ops::bitwise_and},
      {"bitwise_or", "or", ops::bitwise_or},
      {"bitwise_xor", "xor", ops::bitwise_xor},
      {"lshift", "lshift", ops::lshift},
      {"rshift", "rshift", ops::rshift},
      {nullptr, "matmul", product},
  };
  for (const auto& o : operators) {
    if (o.method) bind_method(tensor, o.method, o.function, o.open);
    bind_operator(tensor, o.name, o.function, o.open);
  }
  bind_comparison(tensor, "lt", ops::lt);
  bind_comparison(tensor, "gt", ops::gt);
  bind_comparison(tensor, "le", ops::le);
  bind_comparison(tensor, "ge", ops::ge);
  bind_comparison(tensor, "eq", ops::eq);
  bind_comparison(tensor, "ne", ops::ne);
}

void bind_functions(TensorClass& tensor) {
#define TG_METHOD(name) tensor.def(#name, [](const Tensor& t, const Value& x) { return t.name(x.compared()); }, "x"_a)
  TG_METHOD(eq);
  TG_METHOD(ne);
#undef TG_METHOD
#define TG_METHOD(name) tensor.def(#name, [](const Tensor& t, const Value& x) { return t.name(x); }, "x"_a)
  TG_METHOD(fmod);
  TG_METHOD(maximum);
  TG_METHOD(minimum);
#undef TG_METHOD
  tensor
      .def(
          "div",
          [](const Tensor& t, const Value& x, bool reverse, const std::optional<std::string>& mode) {
            const Rounding rounding = rounding_of(mode);
            const ops::Operand other = operand_of(x, true), own = t.uop();
            return tensor::wrap(ops::div(reverse ? other : own, reverse ? own : other, rounding, tensor::context()), "div");
          },
          "x"_a, "reverse"_a = false, "rounding_mode"_a = nb::none())
      .def(
          "copysign", [](const Tensor& t, const Value& x) { return t.copysign(x); }, "other"_a)
      .def(
          "logaddexp", [](const Tensor& t, const Value& x) { return t.logaddexp(x); }, "other"_a)
      .def(
          "isclose",
          [](const Tensor& t, const Value& x, double rtol, double atol, bool equal_nan) {
            return t.isclose(x, {.rtol = rtol, .atol = atol, .equal_nan = equal_nan});
          },
          "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false)
      .def(
          "allclose",
          [](const Tensor& t, const Tensor& x, double rtol, double atol, bool equal_nan) {
            return t.allclose(x, {.rtol = rtol, .atol = atol, .equal_nan = equal_nan});
          },
          "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false)
      .def(
          "where", [](const Tensor& t, const Value& x, const Value& y) { return t.where(x, y); }, "x"_a, "y"_a)
      .def(
          "masked_fill", [](const Tensor& t, const Tensor& mask, const Value& value) { return t.masked_fill(mask, value); }, "mask"_a,
          "value"_a)
      .def(
          "lerp", [](const Tensor& t, const Tensor& end, const Value& weight) { return t.lerp(end, weight); }, "end"_a, "weight"_a)
      .def(
          "ufix", [](const Tensor& t, const Value& x) { return t.ufix(x); }, "x"_a)
      .def(
          "usum", [](const Tensor& t, const nb::args& more) { return t.usum(to_tensors(more, "usum")); }, "more"_a)
      .def(
          "uprod", [](const Tensor& t, const nb::args& more) { return t.uprod(to_tensors(more, "uprod")); }, "more"_a)
      .def(
          "threefry", [](const Tensor& t, const Tensor& seed) { return t.threefry(seed); }, "seed"_a)
      .def(
          "isinf", [](const Tensor& t, bool positive, bool negative) { return t.isinf({positive, negative}); }, "detect_positive"_a = true,
          "detect_negative"_a = true)
      .def(
          "hardsigmoid", [](const Tensor& t, double alpha, double beta) { return t.hardsigmoid(alpha, beta); }, "alpha"_a = 1.0 / 6,
          "beta"_a = 0.5)
      .def(
          "hardtanh", [](const Tensor& t, const Value& low, const Value& high) { return t.hardtanh(low, high); }, "min_val"_a = -1,
          "max_val"_a = 1)
      .def(
          "leaky_relu", [](const Tensor& t, double slope) { return t.leaky_relu(slope); }, "neg_slope"_a = 0.01)
      .def(
          "gelu",
          [](const Tensor& t, const std::string& form) {
            return t.gelu(choose<GeluForm>("gelu: approximate", form, {{"tanh", GeluForm::tanh}, {"none", GeluForm::erf}}));
          },
          "approximate"_a = "tanh")
      .def(
          "elu", [](const Tensor& t, double alpha) { return t.elu(alpha); }, "alpha"_a = 1.0)
      .def(
          "celu", [](const Tensor& t, double alpha) { return t.celu(alpha); }, "alpha"_a = 1.0)
      .def(
          "selu", [](const Tensor& t, double alpha, double gamma) { return t.selu(alpha, gamma); }, "alpha"_a = 1.67326, "gamma"_a = 1.0507)
      .def(
          "softplus", [](const Tensor& t, double beta) { return t.softplus(beta); }, "beta"_a = 1.0)
      .def("__neg__", [](const Tensor& t) { return t.neg(); })
      .def("__invert__", [](const Tensor& t) { return t.bitwise_not(); })
      .def("__abs__", [](const Tensor& t) { return t.abs(); })
      .def("__pos__", [](const Tensor& t) { return t; });
  for (const char* name : {"clamp", "clip"})
    tensor.def(
        name,
        [](const Tensor& t, const std::optional<Value>& low, const std::optional<Value>& high) {
          return t.clamp(low ? low->operand : std::nullopt, high ? high->operand : std::nullopt);
        },
        "min_"_a = nb::none(), "max_"_a = nb::none());
}

void bind_unary(TensorClass& tensor) {
#define TG_UNARY(name) tensor.def(#name, [](const Tensor& t) { return t.name(); })
  TG_UNARY(neg);
  TG_UNARY(logical_not);
  TG_UNARY(bitwise_not);
  TG_UNARY(abs);
  TG_UNARY(sign);
  TG_UNARY(square);
  TG_UNARY(reciprocal);
  TG_UNARY(sqrt);
  TG_UNARY(rsqrt);
  TG_UNARY(exp);
  TG_UNARY(exp2);
  TG_UNARY(log);
  TG_UNARY(log2);
  TG_UNARY(log10);
  TG_UNARY(sin);
  TG_UNARY(cos);
  TG_UNARY(tan);
  TG_UNARY(asin);
  TG_UNARY(acos);
  TG_UNARY(atan);
  TG_UNARY(sinh);
  TG_UNARY(cosh);
  TG_UNARY(tanh);
  TG_UNARY(asinh);
  TG_UNARY(acosh);
  TG_UNARY(atanh);
  TG_UNARY(erf);
  TG_UNARY(trunc);
  TG_UNARY(floor);
  TG_UNARY(ceil);
  TG_UNARY(round);
  TG_UNARY(isnan);
  TG_UNARY(isfinite);
  TG_UNARY(relu);
  TG_UNARY(relu6);
  TG_UNARY(sigmoid);
  TG_UNARY(logsigmoid);
  TG_UNARY(hardswish);
  TG_UNARY(quick_gelu);
  TG_UNARY(silu);
  TG_UNARY(swish);
  TG_UNARY(softsign);
  TG_UNARY(mish);
  TG_UNARY(detach);
  TG_UNARY(contiguous_backward);
  TG_UNARY(half);
  TG_UNARY(bfloat16);
#undef TG_UNARY
  // tinygrad's `arg` tells how to compute it, which the library finds itself.
  tensor.def("contiguous", [](const Tensor& t, nb::handle) { return t.contiguous(); }, nb::kw_only(), "arg"_a = nb::none());
  const std::pair<const char*, DType> casts[] = {{"float", DType::float32},  {"int", DType::int32},  {"bool", DType::bool_},
                                                 {"double", DType::float64}, {"long", DType::int64}, {"short", DType::int16}};
  for (const auto& [name, dtype] : casts) tensor.def(name, [to = dtype](const Tensor& t) { return t.cast(to); });
  tensor
      .def(
          "cast", [](const Tensor& t, const DTypeArg& dtype, bool saturate) { return t.cast(dtype.get(), saturate); }, "dtype"_a,
          "saturate"_a = false)
      .def("bitcast", [](const Tensor& t, const DTypeArg& dtype) { return t.bitcast(dtype.get()); }, "dtype"_a);
}

}  // namespace

void bind_elementwise(TensorClass& tensor) {
  bind_operators(tensor);
  bind_functions(tensor);
  bind_unary(tensor);
}

}  // namespace tinygrad::python
