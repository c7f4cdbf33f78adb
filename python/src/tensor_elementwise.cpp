// Arithmetic and functions of single elements, with Python's operators.
#include "common.h"

namespace tinygrad::python {

namespace {

using Binary = Tensor (*)(const Tensor&, const Operand&);

/// The tensor that a number is beside `t`.
Tensor beside(const Tensor& t, const Operand& x) {
  if (const Tensor* other = x.tensor()) return *other;
  return t.const_like(x,
                      std::holds_alternative<double>(x.value()) && !t.is_floating_point() ? std::optional((t + x).dtype()) : std::nullopt);
}

void bind_method(TensorClass& tensor, const char* name, Binary f) {
  tensor.def(
      name, [f](const Tensor& t, const Value& x, bool reverse) { return reverse ? f(beside(t, x), Operand(t)) : f(t, x); }, "x"_a,
      "reverse"_a = false);
}

/// t op x, x op t, and t op= x.
void bind_operator(TensorClass& tensor, const std::string& name, Binary f, Binary reversed = nullptr) {
  tensor.def(("__" + name + "__").c_str(), [f](const Tensor& t, const Value& x) { return f(t, x); }, nb::is_operator());
  tensor.def(("__r" + name + "__").c_str(),
             [f, reversed](const Tensor& t, const Value& x) { return reversed ? reversed(t, x) : f(beside(t, x), Operand(t)); },
             nb::is_operator());
  tensor.def(("__i" + name + "__").c_str(),
             [f](nb::handle self, const Value& x) {
               Tensor& t = *nb::inst_ptr<Tensor>(self);
               const Tensor changed = f(t, x);
               {
                 const Released released;
                 t.assign(changed);
               }
               return nb::borrow(self);
             },
             nb::is_operator());
}

void bind_comparison(TensorClass& tensor, const std::string& name, Binary f) {
  tensor.def(("__" + name + "__").c_str(), [f](const Tensor& t, const Value& x) { return f(t, x); }, nb::is_operator());
}

const Tensor& matrix(const Operand& x) {
  const Tensor* tensor = x.tensor();
  if (!tensor) throw nb::type_error("matmul: expects a tensor, got a number");
  return *tensor;
}

Rounding rounding_of(const std::optional<std::string>& mode) {
  return mode ? choose<Rounding>("div: rounding_mode", *mode, {{"trunc", Rounding::trunc}, {"floor", Rounding::floor}}) : Rounding::none;
}

void bind_operators(TensorClass& tensor) {
#define TG_BINARY(method) +[](const Tensor& a, const Operand& b) { return a.method(b); }
  const struct {
    const char *method, *name;
    Binary function;
  } operators[] = {
      {"add", "add", TG_BINARY(add)},
      {"sub", "sub", TG_BINARY(sub)},
      {"mul", "mul", TG_BINARY(mul)},
      {nullptr, "truediv", TG_BINARY(div)},
      {nullptr, "floordiv", +[](const Tensor& a, const Operand& b) { return a.div(b, Rounding::floor); }},
      {"mod", "mod", TG_BINARY(mod)},
      {"pow", "pow", TG_BINARY(pow)},
      {"bitwise_and", "and", TG_BINARY(bitwise_and)},
      {"bitwise_or", "or", TG_BINARY(bitwise_or)},
      {"bitwise_xor", "xor", TG_BINARY(bitwise_xor)},
      {"lshift", "lshift", TG_BINARY(lshift)},
      {"rshift", "rshift", TG_BINARY(rshift)},
  };
  for (const auto& o : operators) {
    if (o.method) bind_method(tensor, o.method, o.function);
    bind_operator(tensor, o.name, o.function);
  }
  bind_operator(
      tensor, "matmul", +[](const Tensor& t, const Operand& x) { return t.matmul(matrix(x)); },
      +[](const Tensor& t, const Operand& x) { return matrix(x).matmul(t); });
  bind_comparison(tensor, "lt", TG_BINARY(lt));
  bind_comparison(tensor, "gt", TG_BINARY(gt));
  bind_comparison(tensor, "le", TG_BINARY(le));
  bind_comparison(tensor, "ge", TG_BINARY(ge));
  bind_comparison(tensor, "eq", TG_BINARY(eq));
  bind_comparison(tensor, "ne", TG_BINARY(ne));
#undef TG_BINARY
}

void bind_functions(TensorClass& tensor) {
#define TG_METHOD(name) tensor.def(#name, [](const Tensor& t, const Value& x) { return t.name(x); }, "x"_a)
  TG_METHOD(eq);
  TG_METHOD(ne);
  TG_METHOD(fmod);
  TG_METHOD(maximum);
  TG_METHOD(minimum);
#undef TG_METHOD
  tensor
      .def(
          "div",
          [](const Tensor& t, const Value& x, bool reverse, const std::optional<std::string>& mode) {
            return reverse ? beside(t, x).div(t, rounding_of(mode)) : t.div(x, rounding_of(mode));
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
  for (const auto& [name, dtype] : casts) tensor.def(name, [dtype = dtype](const Tensor& t) { return t.cast(dtype); });
  tensor.def(
            "cast", [](const Tensor& t, const DTypeArg& dtype) { return t.cast(dtype.get()); }, "dtype"_a)
      .def("bitcast", [](const Tensor& t, const DTypeArg& dtype) { return t.bitcast(dtype.get()); }, "dtype"_a);
}

}  // namespace

void bind_elementwise(TensorClass& tensor) {
  bind_operators(tensor);
  bind_functions(tensor);
  bind_unary(tensor);
}

}  // namespace tinygrad::python
