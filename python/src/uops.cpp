// UOp: for looking at graphs, and for writing kernels by hand.
#include <algorithm>

#include "common.h"

#include "ops/operand.h"
#include "shape/shape.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/uop.h"

namespace tinygrad::python {

namespace {

Op op_named(const std::string& text) {
  for (int i = 0; i < op_count; ++i)
    if (name(Op(i)) == text) return Op(i);
  throw ValueError("there is no op '" + text + "'; tinygrad_cpp.Ops has them");
}

// Kernels.

/// What a node is worth in a formula: of a place in memory, what is there.
UOp value_of(const UOp& u) {
  if (u.is(Op::PARAM)) throw nb::type_error("a kernel's memory has no value; index it: A[i]");
  return u.is(Op::INDEX) ? load(u) : u;
}

/// A node, or a number as one of this dtype.
UOp to_node(nb::handle x, DType dtype) {
  if (nb::isinstance<UOp>(x)) return value_of(nb::cast<UOp>(x));
  if (nb::isinstance<nb::bool_>(x)) return constant(Scalar::of(nb::cast<bool>(x), dtype));
  if (nb::isinstance<nb::int_>(x)) return constant(Scalar::of(nb::cast<int64_t>(x), dtype));
  if (!nb::isinstance<nb::float_>(x)) throw nb::type_error("a kernel is made of UOps and numbers");
  if (!is_float(dtype)) throw DTypeError("a kernel computes with a float and " + std::string(repr(dtype)) + "; cast() one of them");
  return constant(dtype, nb::cast<double>(x));
}

UOp binary(Op op, const UOp& a, const UOp& b) {
  if (a.dtype() != b.dtype())
    throw DTypeError(std::string(name(op)) + ": got " + std::string(repr(a.dtype())) + " and " + std::string(repr(b.dtype())) +
                     " in a kernel; cast() one of them");
  return alu(op, {a, b});
}

/// `self op x`, or `x op self`.
UOp binary(Op op, const UOp& self, nb::handle x, bool reflected = false) {
  const UOp a = value_of(self), b = to_node(x, a.dtype());
  return reflected ? binary(op, b, a) : binary(op, a, b);
}

/// The node, if it is a kernel's memory.
const UOp& memory_of(const UOp& u, const char* what) {
  if (!u.is(Op::PARAM) || !std::ranges::all_of(u.src(), [](const UOp& d) { return const_value(d) != nullptr; }))
    throw nb::type_error((std::string(what) + ": only a kernel's memory has it").c_str());
  return u;
}

Sizes sizes_of(const UOp& memory) {
  Sizes out;
  for (const UOp& d : memory.src()) out.push_back(const_value(d)->as_int());
  return out;
}

int64_t elements_of(const UOp& memory) {
  int64_t n = 1;
  for (const int64_t size : sizes_of(memory)) n *= size;
  return n;
}

/// The element of a kernel's memory at an index for each axis.
UOp element(const UOp& memory, nb::handle key) {
  const UOps dims(memory_of(memory, "indexing").src());
  const nb::tuple indices = nb::isinstance<nb::tuple>(key) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(key);
  if (indices.size() != dims.size())
    throw IndexError("a kernel indexes memory of " + std::to_string(dims.size()) + " axes with " + std::to_string(indices.size()) +
                     " indices");
  UOp at = index_const(0);
  for (size_t i = 0; i < dims.size(); ++i) at = at * dims[i] + cast(to_node(indices[i], DType::index), DType::index);
  return index(param(memory.dtype(), elements_of(memory), memory.arg_as<ParamArg>()), at);
}

void bind_kernels(nb::class_<UOp>& uop) {
  uop.def_prop_ro("shape", [](const UOp& u) { return to_tuple(sizes_of(memory_of(u, "shape"))); })
      .def("numel", [](const UOp& u) { return elements_of(memory_of(u, "numel")); })
      .def_prop_ro("size", [](const UOp& u) { return elements_of(memory_of(u, "size")); })
      .def("flatten", [](const UOp& u) { return param(u.dtype(), elements_of(memory_of(u, "flatten")), u.arg_as<ParamArg>()); })
      .def("__getitem__", &element, "key"_a)
      .def_static(
          "range",
          [](int64_t end, int32_t axis, const std::string& axis_type) {
            if (end < 1) throw ValueError("UOp.range: got " + std::to_string(end) + ", expects at least 1");
            return tinygrad::range(end, axis,
                                   choose<AxisKind>("axis_type", axis_type, {{"LOOP", AxisKind::loop}, {"REDUCE", AxisKind::reduce}}));
          },
          "end"_a, "axis_id"_a, "axis_type"_a = "LOOP", "A loop of a kernel, by its number.")
      .def_static(
          "const", [](const DTypeArg& dtype, nb::handle x) { return to_node(x, dtype.get()); }, "dtype"_a, "value"_a)
      .def(
          "store",
          [](const UOp& at, nb::handle x) {
            if (!at.is(Op::INDEX)) throw nb::type_error("store: expects an element, as in C[i].store(x)");
            const UOp x_node = to_node(x, at.dtype());
            if (x_node.dtype() != at.dtype())
              throw DTypeError("store: got " + std::string(repr(x_node.dtype())) + " for memory of " + std::string(repr(at.dtype())) +
                               "; cast() it");
            return tinygrad::store(at, x_node);
          },
          "value"_a)
      .def(
          "end",
          [](const UOp& effect, const nb::args& ranges) { return tinygrad::end(effect, nb::cast<std::vector<UOp>>(nb::list(ranges))); },
          "ranges"_a)
      .def_static(
          "group", [](const nb::args& effects) { return tinygrad::group(nb::cast<std::vector<UOp>>(nb::list(effects))); }, "effects"_a)
      .def(
          "sink",
          [](const UOp& effect, const nb::args& more, nb::handle arg) {
            std::vector<UOp> all{effect};
            for (nb::handle e : more) all.push_back(cast_to<UOp>(e, "sink", "UOps"));
            const nb::object name = nb::getattr(arg, "name", nb::none());
            if (!arg.is_none() && !nb::isinstance<nb::str>(name))
              throw nb::type_error((std::string("sink: expects arg to be a KernelInfo, got ") + nb::repr(arg).c_str()).c_str());
            return tinygrad::sink(all, KernelArg{.name = Symbol(arg.is_none() ? "custom" : nb::cast<std::string>(name))});
          },
          "more"_a, "arg"_a = nb::none(), "The kernel; `arg` is a KernelInfo.")
      .def(
          "reduce",
          [](const UOp& x, const nb::args& ranges, const std::string& op) {
            UOps sources{value_of(x)};
            for (nb::handle r : ranges) sources.push_back(nb::cast<UOp>(r));
            return UOp(Op::REDUCE, sources[0].dtype(), sources, ReduceArg{op_named(op), {}});
          },
          "ranges"_a, "arg"_a = "ADD", "Over loops of a kernel.")
      .def(
          "cast", [](const UOp& x, const DTypeArg& dtype) { return tinygrad::cast(value_of(x), dtype.get()); }, "dtype"_a)
      .def(
          "bitcast", [](const UOp& x, const DTypeArg& dtype) { return tinygrad::bitcast(value_of(x), dtype.get()); }, "dtype"_a)
      .def(
          "where",
          [](const UOp& c, const UOp& x, nb::handle y) {
            const UOp a = value_of(x), b = to_node(y, a.dtype());
            if (a.dtype() != b.dtype()) throw DTypeError("where: two dtypes in a kernel; cast() one value");
            return tinygrad::where(value_of(c), a, b);
          },
          "x"_a, "y"_a)
      .def("__neg__", [](const UOp& x) { return -value_of(x); })
      .def("logical_not", [](const UOp& x) { return logical_not(value_of(x)); })
      .def(
          "minimum",
          [](const UOp& x, nb::handle y) {
            const UOp a = value_of(x);
            return min(a, to_node(y, a.dtype()));
          },
          "x"_a);
}

void bind_operators(nb::class_<UOp>& uop) {
#define TG_UNARY(method, op) uop.def(#method, [](const UOp& x) { return alu(op, {value_of(x)}); })
  TG_UNARY(exp2, Op::EXP2);
  TG_UNARY(log2, Op::LOG2);
  TG_UNARY(sin, Op::SIN);
  TG_UNARY(sqrt, Op::SQRT);
  TG_UNARY(reciprocal, Op::RECIPROCAL);
  TG_UNARY(trunc, Op::TRUNC);
#undef TG_UNARY
#define TG_BINARY(method, op) uop.def(#method, [](const UOp& a, nb::handle b) { return binary(op, a, b); }, "x"_a)
#define TG_REFLECTED(method, op) uop.def(#method, [](const UOp& b, nb::handle a) { return binary(op, b, a, true); }, "x"_a)
#define TG_OPERATOR(name, op)  \
  TG_BINARY(__##name##__, op); \
  TG_REFLECTED(__r##name##__, op)
  TG_OPERATOR(add, Op::ADD);
  TG_OPERATOR(sub, Op::SUB);
  TG_OPERATOR(mul, Op::MUL);
  TG_OPERATOR(truediv, Op::FDIV);
  TG_OPERATOR(floordiv, Op::FLOORDIV);
  TG_OPERATOR(mod, Op::FLOORMOD);
  TG_OPERATOR(and, Op::AND);
  TG_OPERATOR(or, Op::OR);
  TG_OPERATOR(xor, Op::XOR);
  TG_BINARY(__lt__, Op::CMPLT);
  TG_REFLECTED(__gt__, Op::CMPLT);
  TG_BINARY(eq, Op::CMPEQ);
  TG_BINARY(ne, Op::CMPNE);
  TG_BINARY(maximum, Op::MAX);
#undef TG_OPERATOR
#undef TG_REFLECTED
#undef TG_BINARY
}

}  // namespace

GradientFunction gradient_of_nodes(nb::object f) {
  if (f.is_none()) return {};
  return [kept = shared_object(std::move(f))](std::span<const Tensor> gradients, std::span<const Tensor> inputs, std::span<const Tensor>) {
    const nb::gil_scoped_acquire gil;
    nb::list args, sources;
    for (const Tensor& g : gradients) args.append(g.uop());
    sources.append(nb::none());
    for (const Tensor& t : inputs) sources.append(t.uop());
    const nb::object call = nb::module_::import_("types").attr("SimpleNamespace")("src"_a = nb::tuple(sources));
    const nb::handle function(static_cast<PyObject*>(kept.get()));
    const nb::object given = gradients.size() == 1 ? function(*args, call) : function(*args, "call"_a = call);
    const bool are_several = PyTuple_Check(given.ptr()) || PyList_Check(given.ptr());
    std::vector<Tensor> out;
    for (nb::handle g : nb::tuple(are_several ? given : nb::make_tuple(given)))
      out.push_back(g.is_none() ? Tensor() : nb::isinstance<UOp>(g) ? Tensor::from_uop(nb::cast<UOp>(g)) : nb::cast<Tensor>(g));
    return out;
  };
}

namespace {

/// Runs a kernel of the user on tensors.
std::vector<Tensor> run_custom_kernel(nb::handle self, const nb::args& more, const nb::object& fxn, nb::object grad_fxn) {
  const std::vector<Tensor> tensors = to_tensors(self, more, "custom_kernel");
  const auto build = [&](std::span<const UOp> params) {
    const nb::gil_scoped_acquire gil;
    nb::list args;
    for (size_t i = 0; i < params.size(); ++i) {
      UOps dims;
      for (const int64_t d : tensors[i].shape()) dims.push_back(index_const(d));
      args.append(UOp(Op::PARAM, params[i].dtype(), dims, params[i].arg()));
    }
    const nb::object made = fxn(*args);
    if (!nb::isinstance<UOp>(made)) throw nb::type_error("custom_kernel: the function must return a UOp, the kernel's sink");
    return nb::cast<UOp>(made);
  };
  const GradientFunction gradient = gradient_of_nodes(std::move(grad_fxn));
  const Interruptible interruptible;
  const Released released;
  return custom_kernel(tensors, build, gradient);
}

}  // namespace

void bind_graph(TensorClass& tensor) {
  tensor
      .def("custom_kernel", &run_custom_kernel, "lst"_a, "fxn"_a, "grad_fxn"_a = nb::none(),
           "Runs a kernel written as UOps on these tensors, in place; returns them. `fxn` gets a UOp for the memory of each.")
      .def(
          "alu", [](const Tensor& t, const std::string& op, const nb::args& src) { return t.alu(op_named(op), to_tensors(src, "alu")); },
          "op"_a, "src"_a)
      .def(
          "callify",
          [](nb::handle self, const nb::args& lst) {
            const std::vector<Tensor> all = to_tensors(self, lst, "callify");
            const Released released;
            Tensor::callify(all);
            return nb::borrow(self);
          },
          "lst"_a, "Gives these tensors memory, into which they are computed when they are needed.")
      .def(
          "schedule_linear",
          [](nb::handle self, const nb::args& lst) {
            const std::vector<Tensor> all = to_tensors(self, lst, "schedule_linear");
            const Released released;
            return Tensor::schedule_linear(all);
          },
          "lst"_a)
      .def(
          "linear_with_vars",
          [](nb::handle self, const nb::args& lst) {
            const std::vector<Tensor> all = to_tensors(self, lst, "linear_with_vars");
            const auto [linear, variables] = [&] {
              const Released released;
              return Tensor::linear_with_vars(all);
            }();
            nb::dict values;
            for (const auto& [name, value] : variables) values[name.c_str()] = value;
            return std::pair(linear, values);
          },
          "lst"_a, "What realize() would run, and the values of its variables.")
      .def_prop_ro("uop", &Tensor::uop);
}

void bind_uops(nb::module_& m) {
  m.def("op_names", [] {
    nb::list out;
    for (int i = 0; i < op_count; ++i) out.append(std::string(name(Op(i))));
    return out;
  });
  nb::class_<UOp> uop(m, "UOp", "A node of a graph.");
  uop.def_prop_ro(
         "op", [](const UOp& u) { return std::string(name(u.op())); }, "Its operation's name, as in Ops.")
      .def_prop_ro("dtype", [](const UOp& u) { return DTypeArg{u.dtype()}; })
      .def_prop_ro("src", [](const UOp& u) { return nb::tuple(nb::cast(std::vector<UOp>(u.src().begin(), u.src().end()))); })
      .def(
          "toposort", [](const UOp& u) { return toposort(u); }, "All nodes below and itself, sources first.")
      .def(
          "__eq__", [](const UOp& a, const UOp& b) { return a == b; }, nb::is_operator())
      .def("__hash__", [](const UOp& u) { return Py_hash_t(u->hash >> 1); })
      .def("__repr__", [](const UOp& u) { return print_expr(u); })
      .def("graph", [](const UOp& u) { return print_graph(u); }, "The graph as text, a line a node.");
  bind_kernels(uop);
  bind_operators(uop);
}

}  // namespace tinygrad::python
