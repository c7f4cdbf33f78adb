// UOp: for looking at graphs, and for writing kernels by hand.
#include <algorithm>
#include <map>

#include "common.h"

#include "ops/operand.h"
#include "shape/shape.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/uop.h"

#include "symbolic/simplify.h"

namespace tinygrad::python {

namespace {

Op op_named(const std::string& text) {
  for (int i = 0; i < op_count; ++i)
    if (name(Op(i)) == text) return Op(i);
  throw ValueError("there is no op '" + text + "'; tinygrad_cpp.Ops has them");
}

// Kernels.

/// The memory of the kernel that is being written, with all axes, by its slot; placeholders in registers have negative slots.
std::map<int32_t, UOp>& memories() {
  static thread_local std::map<int32_t, UOp> map;
  return map;
}

/// The memory that a node is a state of: AFTER(... AFTER(memory, effect...), loop...).
const UOp& base_of(const UOp& u) {
  const UOp* base = &u;
  while (base->is(Op::AFTER)) base = &base->src(0);
  return *base;
}
bool is_memory(const UOp& u) { return base_of(u).is(Op::PARAM); }
bool is_register(const UOp& memory) { return base_of(memory).arg_as<ParamArg>().slot < 0; }
/// Whether a state is what an earlier iteration of a loop left.
bool is_carried(const UOp& u) {
  return u.is(Op::AFTER) &&
         (std::ranges::any_of(u.src().subspan(1),
                              [](const UOp& s) { return s.is(Op::RANGE) && s.arg_as<RangeArg>().kind == AxisKind::reduce; }) ||
          is_carried(u.src(0)));
}

/// What a state says was stored last at a place, if it says that.
std::optional<UOp> stored_at(const UOp& state, const UOp& at) {
  if (!state.is(Op::AFTER)) return {};
  for (const UOp& effect : state.src().subspan(1)) {
    const UOp& store = effect.is(Op::END) ? effect.src(0) : effect;
    if (store.is(Op::STORE) && store.src(0).src(1) == at) return store.src(1);
  }
  return stored_at(state.src(0), at);
}

/// What a node is worth in a formula: of a place in memory, what is there.
UOp value_of(const UOp& u) {
  if (is_memory(u)) throw nb::type_error("a kernel's memory has no value; index it: A[i]");
  if (!u.is(Op::INDEX)) return u;
  if (is_register(u.src(0)) && !is_carried(u.src(0))) {
    if (const auto value = stored_at(u.src(0), u.src(1))) return *value;
    throw ValueError("a placeholder in registers is read before anything was stored there");
  }
  return load(u);
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

/// The node, or what it is a state of, if that is a kernel's memory.
const UOp& memory_of(const UOp& state, const char* what) {
  const UOp& u = base_of(state);
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

/// Memory, or a state of it, without its axes.
UOp flat(const UOp& state) {
  if (state.is(Op::AFTER)) {
    UOps sources(state.src());
    sources[0] = flat(sources[0]);
    return UOp(Op::AFTER, state.dtype(), sources);
  }
  return param(state.dtype(), elements_of(state), state.arg_as<ParamArg>());
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
  return index(flat(memory), at);
}

/// A loop; one that was cast to a dtype of values is still that loop.
UOp loop_of(nb::handle x) {
  UOp u = cast_to<UOp>(x, "end", "loops of UOp.range");
  while (u.is(Op::CAST)) u = u.src(0);
  return u;
}

std::vector<UOp> loops_of(nb::handle x) {
  std::vector<UOp> out;
  if (nb::isinstance<UOp>(x)) return {loop_of(x)};
  for (nb::handle r : nb::borrow<nb::sequence>(x)) out.push_back(loop_of(r));
  return out;
}

/// What a node does: of a state of memory, the effects that it is behind; the latest of those that are on the same place.
std::vector<UOp> effects_of(const UOp& u) {
  if (!u.is(Op::AFTER)) return {u};
  std::vector<UOp> out;
  for (const UOp* s = &u; s->is(Op::AFTER); s = &s->src(0))
    for (const UOp& e : s->src().subspan(1))
      if (!e.is(Op::RANGE)) out.insert(out.begin(), e);
  return out;
}

UOp checked_store(const UOp& at, const UOp& value) {
  if (value.dtype() != at.dtype())
    throw DTypeError("store: got " + std::string(repr(value.dtype())) + " for memory of " + std::string(repr(at.dtype())) + "; cast() it");
  return tinygrad::store(at, value);
}

/// `acc op x` of a value that a loop carries, as what is added to (multiplied with, the maximum of) what was there before.
UOp reduced(const UOp& value, const UOp& carried, const UOp& before, const std::vector<UOp>& loops) {
  const bool is_first = value.src_count() == 2 && value.src(0) == carried;
  if (!(value.is(Op::ADD) || value.is(Op::MUL) || value.is(Op::MAX)) || !(is_first || value.src(1) == carried))
    throw ValueError("set: what a loop carries from one iteration to the next must be added, multiplied or the maximum of");
  UOps sources{is_first ? value.src(1) : value.src(0)};
  const std::vector<UOp> below = toposort(sources[0]);
  if (std::ranges::find(below, carried) != below.end()) throw ValueError("set: what a loop carries must occur once in the new value");
  sources.append(loops.begin(), loops.end());
  return alu(value.op(), {before, UOp(Op::REDUCE, value.dtype(), sources, ReduceArg{value.op(), {}})});
}

/// The memory after `at` was given a value, for all iterations of the loops that end.
UOp set_element(const UOp& at, nb::handle x, nb::handle end) {
  if (!at.is(Op::INDEX)) throw nb::type_error("set: expects an element, as in C[i].set(x)");
  const UOp state = at.src(0), value = to_node(x, at.dtype());
  const UOp& whole = memories().at(base_of(state).arg_as<ParamArg>().slot);
  const UOp place = index(flat(whole), at.src(1));
  const std::vector<UOp> loops = loops_of(end);
  UOp carried;
  for (const UOp& u : toposort(value))
    if (u.is(Op::LOAD) && u.src(0).src(0).is(Op::AFTER) && is_carried(u.src(0).src(0)) &&
        base_of(u.src(0).src(0)).arg_as<ParamArg>().slot == whole.arg_as<ParamArg>().slot)
      carried = u;
  if (!carried) {
    const UOp stored = checked_store(place, value);
    return UOp(Op::AFTER, whole.dtype(), {whole, loops.empty() ? stored : tinygrad::end(stored, loops)});
  }
  if (carried.src(0).src(1) != at.src(1)) throw ValueError("set: a loop carries another element than the one that is set");
  const auto before = stored_at(carried.src(0).src(0), at.src(1));
  if (!before && is_register(whole)) throw ValueError("a placeholder in registers is read before anything was stored there");
  return UOp(Op::AFTER, whole.dtype(), {whole, checked_store(place, reduced(value, carried, before ? *before : load(place), loops))});
}

void bind_kernels(nb::class_<UOp>& uop) {
  uop.def_prop_ro("shape", [](const UOp& u) { return to_tuple(sizes_of(memory_of(u, "shape"))); })
      .def("numel", [](const UOp& u) { return elements_of(memory_of(u, "numel")); })
      .def_prop_ro("size", [](const UOp& u) { return elements_of(memory_of(u, "size")); })
      .def("flatten",
           [](const UOp& u) {
             memory_of(u, "flatten");
             return flat(u);
           })
      .def("__getitem__", &element, "key"_a)
      .def_static(
          "range",
          [](int64_t end, int32_t axis, const std::string& axis_type, const OptionalDType& dtype) {
            if (end < 1) throw ValueError("UOp.range: got " + std::to_string(end) + ", expects at least 1");
            const UOp loop = tinygrad::range(
                end, axis, choose<AxisKind>("axis_type", axis_type, {{"LOOP", AxisKind::loop}, {"REDUCE", AxisKind::reduce}}));
            return dtype ? tinygrad::cast(loop, dtype->get()) : loop;
          },
          "end"_a, "axis_id"_a, "axis_type"_a = "LOOP", "dtype"_a = nb::none(), "A loop of a kernel, by its number.")
      .def_static(
          "const",
          [](nb::handle b, const OptionalDType& dtype) {
            const DType own = PyBool_Check(b.ptr()) ? DType::bool_ : PyFloat_Check(b.ptr()) ? DType::float32 : DType::index;
            return nb::isinstance<UOp>(b) && dtype ? tinygrad::cast(value_of(nb::cast<UOp>(b)), dtype->get())
                                                   : to_node(b, dtype ? dtype->get() : own);
          },
          "b"_a, "dtype"_a = nb::none())
      .def("set", &set_element, "val"_a, "end"_a = nb::make_tuple(),
           "The memory after this element was given a value, in all iterations of the loops that end. Where the value reads the memory "
           "after\n"
           "one of these loops, what it adds (multiplies, the maximum) is carried from one iteration to the next.")
      .def(
          "after",
          [](const UOp& state, const nb::args& src) {
            memory_of(state, "after");
            UOps sources{state};
            for (nb::handle s : src) {
              const UOp u = loop_of(s);
              for (const UOp& e : effects_of(u)) sources.push_back(e);
            }
            return sources.size() == 1 ? state : UOp(Op::AFTER, state.dtype(), sources);
          },
          "src"_a, "The memory behind these effects, or as the earlier iterations of a loop left it.")
      .def_static(
          "placeholder",
          [](const Ints& shape, const DTypeArg& dtype, std::optional<int32_t> slot, const std::string& addrspace) {
            const bool in_registers = choose<bool>("addrspace", addrspace, {{"GLOBAL", false}, {"REG", true}});
            const int32_t number =
                in_registers ? -1 - slot.value_or(int32_t(memories().size())) : slot.value_or(int32_t(memories().size()));
            UOps dims;
            for (const int64_t d : shape.values) dims.push_back(index_const(d));
            const UOp made(Op::PARAM, dtype.get(), dims, ParamArg{.slot = number});
            memories()[number] = made;
            return made;
          },
          "shape"_a, "dtype"_a, "slot"_a = nb::none(), "addrspace"_a = "GLOBAL", "Memory of a kernel: an argument, or in registers (REG).")
      .def(
          "store",
          [](const UOp& at, nb::handle x) {
            if (!at.is(Op::INDEX)) throw nb::type_error("store: expects an element, as in C[i].store(x)");
            return checked_store(at, to_node(x, at.dtype()));
          },
          "value"_a)
      .def(
          "end",
          [](const UOp& effect, const nb::args& ranges) {
            const std::vector<UOp> effects = effects_of(effect);
            return tinygrad::end(effects.size() == 1 ? effects[0] : tinygrad::group(effects), loops_of(ranges));
          },
          "ranges"_a)
      .def_static(
          "group", [](const nb::args& effects) { return tinygrad::group(nb::cast<std::vector<UOp>>(nb::list(effects))); }, "effects"_a)
      .def(
          "sink",
          [](const UOp& first, const nb::args& more, nb::handle arg) {
            std::vector<UOp> all = effects_of(first);
            for (nb::handle e : more)
              for (const UOp& effect : effects_of(cast_to<UOp>(e, "sink", "UOps"))) all.push_back(effect);
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
            for (nb::handle r : ranges) sources.push_back(loop_of(r));
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
      memories()[params[i].arg_as<ParamArg>().slot] = UOp(Op::PARAM, params[i].dtype(), dims, params[i].arg());
      args.append(memories()[params[i].arg_as<ParamArg>().slot]);
    }
    const struct Forget {
      ~Forget() { memories().clear(); }
    } at_end;
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
            const Interruptible interruptible;
            const Released released;
            Tensor::callify(all);
            return nb::borrow(self);
          },
          "lst"_a, "Gives these tensors memory, into which they are computed when they are needed.")
      .def(
          "schedule_linear",
          [](nb::handle self, const nb::args& lst) {
            const std::vector<Tensor> all = to_tensors(self, lst, "schedule_linear");
            const Interruptible interruptible;
            const Released released;
            return Tensor::schedule_linear(all);
          },
          "lst"_a)
      .def(
          "linear_with_vars",
          [](nb::handle self, const nb::args& lst) {
            const std::vector<Tensor> all = to_tensors(self, lst, "linear_with_vars");
            const auto [linear, variables] = [&] {
              const Interruptible interruptible;
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
      .def(
          "simplify", [](const UOp& u) { return u.dtype() == DType::index ? symbolic::simplify_index(u) : u; },
          "An index expression in its normal form; other nodes as they are.")
      .def(
          "sum",
          [](const UOp& u, const AxesArg& axes, bool keepdim, const OptionalDType& dtype) {
            return Tensor::from_uop(u).sum(axes.axes, {.keepdim = keepdim, .dtype = get(dtype)}).uop();
          },
          "axis"_a.none() = nb::none(), "keepdim"_a = false, "dtype"_a = nb::none(), "Of a value with axes, as Tensor.sum.")
      .def(
          "max",
          [](const UOp& u, const AxesArg& axes, bool keepdim) { return Tensor::from_uop(u).max(axes.axes, {.keepdim = keepdim}).uop(); },
          "axis"_a.none() = nb::none(), "keepdim"_a = false, "Of a value with axes, as Tensor.max.")
      .def("graph", [](const UOp& u) { return print_graph(u); }, "The graph as text, a line a node.");
  bind_kernels(uop);
  bind_operators(uop);
}

}  // namespace tinygrad::python
