// UOp: for looking at graphs, and for writing kernels by hand.
#include <algorithm>
#include <map>
#include <numbers>

#include "common.h"

#include "ops/gradient.h"
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

// A part of memory is TUPLE(state of the memory, offset, size, step, ...) with a size and a step for each of its axes, an element of it
// TUPLE(part, place in the memory). Neither gets into a kernel.
bool is_part(const UOp& u) { return u.is(Op::TUPLE) && u.dtype() != DType::void_ && u.src_count() > 2; }
bool is_element_of_part(const UOp& u) { return u.is(Op::TUPLE) && u.dtype() != DType::void_ && u.src_count() == 2; }

/// The memory that a node is a state or a part of: AFTER(... AFTER(memory, effect...), loop...).
const UOp& base_of(const UOp& u) {
  const UOp* base = &u;
  while (base->is(Op::AFTER) || is_part(*base)) base = &base->src(0);
  return *base;
}
/// A part after something else was done to its memory; what is the whole memory is just that state.
UOp in_state(const UOp& u, const UOp& state) {
  if (!is_part(u)) return state;
  UOps sources(u.src());
  sources[0] = state;
  return u.with_src(sources);
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

UOp flat(const UOp& state);

/// The INDEX of an element, or anything else as it is.
UOp place_of(const UOp& u) { return is_element_of_part(u) ? index(flat(u.src(0).src(0)), u.src(1)) : u; }

/// What a node is worth in a formula: of a place in memory, what is there.
UOp value_of(const UOp& given) {
  const UOp u = place_of(given);
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

/// The axes of memory or a part of it, and where it begins.
struct Axes {
  struct Axis {
    int64_t size, step;
  };
  std::vector<Axis> list;
  UOp offset = index_const(0);
};

Axes axes_of(const UOp& u, const char* what) {
  const UOp& memory = memory_of(u, what);
  Axes out;
  if (is_part(u)) {
    out.offset = u.src(1);
    for (size_t i = 2; i < u.src_count(); i += 2)
      out.list.push_back({const_value(u.src(i))->as_int(), const_value(u.src(i + 1))->as_int()});
    return out;
  }
  int64_t step = 1;
  for (size_t i = memory.src_count(); i-- > 0;) {
    out.list.insert(out.list.begin(), {const_value(memory.src(i))->as_int(), step});
    step *= out.list.front().size;
  }
  return out;
}

Sizes sizes_of(const UOp& u, const char* what) {
  Sizes out;
  for (const auto& axis : axes_of(u, what).list) out.push_back(axis.size);
  return out;
}

int64_t elements_of(const UOp& u, const char* what) {
  int64_t n = 1;
  for (const int64_t size : sizes_of(u, what)) n *= size;
  return n;
}

/// Memory, or a state of it, without its axes.
UOp flat(const UOp& state) {
  if (state.is(Op::AFTER)) {
    UOps sources(state.src());
    sources[0] = flat(sources[0]);
    return UOp(Op::AFTER, state.dtype(), sources);
  }
  return param(state.dtype(), elements_of(state, "memory"), state.arg_as<ParamArg>());
}

/// An index of an axis as a node; a number counts from the end if it is negative, and is one of the axis.
UOp index_of(nb::handle x, int64_t size) {
  if (!nb::isinstance<nb::int_>(x)) return cast(to_node(x, DType::index), DType::index);
  const auto i = nb::cast<int64_t>(x);
  if (i < -size || i >= size)
    throw IndexError("a kernel indexes an axis of " + std::to_string(size) + " elements with " + std::to_string(i));
  return index_const(i < 0 ? i + size : i);
}

/// The indices of a key, an ellipsis filled up with whole axes.
std::vector<nb::object> filled_key(nb::handle key, size_t axes) {
  const nb::tuple given = nb::isinstance<nb::tuple>(key) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(key);
  const nb::object whole = nb::steal(PySlice_New(nullptr, nullptr, nullptr));
  std::vector<nb::object> out;
  for (nb::handle k : given) {
    const bool fills = k.is(nb::ellipsis());
    if (k.is_none()) throw nb::type_error("a kernel's memory takes no new axes: leave None out");
    if (!fills) out.push_back(nb::borrow(k));
    for (size_t n = given.size() - 1; fills && n < axes; ++n) out.push_back(whole);
  }
  if (out.size() > axes)
    throw IndexError("a kernel indexes memory of " + std::to_string(axes) + " axes with " + std::to_string(out.size()) + " indices");
  out.resize(axes, whole);
  return out;
}

/// Memory that begins and goes on where these axes say.
UOp part_of(const UOp& u, const UOp& offset, const std::vector<Axes::Axis>& axes) {
  UOps sources{is_part(u) ? u.src(0) : u, offset};
  for (const auto& [size, step] : axes)
    for (const int64_t n : {size, step}) sources.push_back(index_const(n));
  return UOp(Op::TUPLE, u.dtype(), sources);
}

/// The element of a kernel's memory at an index for each axis; with fewer of them, or slices, a part of the memory.
UOp element(const UOp& memory, nb::handle key) {
  const Axes axes = axes_of(memory, "indexing");
  const std::vector<nb::object> keys = filled_key(key, axes.list.size());
  UOp at = axes.offset;
  std::vector<Axes::Axis> left;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto [size, step] = axes.list[i];
    if (!PySlice_Check(keys[i].ptr())) {
      at = at + index_of(keys[i], size) * index_const(step);
      continue;
    }
    Py_ssize_t begin = 0, end = 0, stride = 0;
    if (PySlice_Unpack(keys[i].ptr(), &begin, &end, &stride) < 0) throw nb::python_error();
    const Py_ssize_t count = PySlice_AdjustIndices(size, &begin, &end, stride);
    if (count == 0) throw IndexError("a slice of a kernel's memory has no elements");
    at = at + index_const(begin * step);
    left.push_back({count, step * stride});
  }
  if (left.empty()) return is_part(memory) ? UOp(Op::TUPLE, memory.dtype(), {memory, at}) : index(flat(memory), at);
  return part_of(memory, at, left);
}

/// Memory with other axes. The elements of a part must lie at equal steps.
UOp reshaped(const UOp& u, Sizes sizes) {
  const Axes axes = axes_of(u, "reshape");
  int64_t step = axes.list.empty() ? 1 : axes.list.back().step, size = 1, wanted = 1;
  for (size_t i = axes.list.size(); i-- > 0; size *= axes.list[i].size)
    if (axes.list[i].size > 1 && axes.list[i].step != step * size)
      throw ValueError("reshape: the elements of this part of a kernel's memory do not lie at equal steps");
  int64_t* rest = nullptr;
  for (int64_t& n : sizes) n == -1 && !rest ? (void)(rest = &n) : (void)(wanted *= n);
  if (rest && wanted > 0) wanted *= * rest = size / wanted;
  if (wanted != size)
    throw ShapeError("reshape: a kernel's memory of " + std::to_string(size) + " elements is not one of " + std::to_string(wanted));
  std::vector<Axes::Axis> list;
  for (size_t i = sizes.size(); i-- > 0; step *= sizes[i]) list.insert(list.begin(), {sizes[i], step});
  return part_of(u, axes.offset, list);
}

UOp permuted(const UOp& u, const Sizes& order) {
  const Axes axes = axes_of(u, "permute");
  std::vector<Axes::Axis> list;
  std::vector<bool> taken(axes.list.size());
  for (int64_t a : order) {
    if (a < 0) a += int64_t(axes.list.size());
    if (a < 0 || size_t(a) >= axes.list.size() || taken[size_t(a)])
      throw ValueError("permute: the order must name each axis of a kernel's memory once");
    taken[size_t(a)] = true;
    list.push_back(axes.list[size_t(a)]);
  }
  if (list.size() != axes.list.size()) throw ValueError("permute: the order must name each axis of a kernel's memory once");
  return part_of(u, axes.offset, list);
}

/// f(2, 3), f((2, 3)) and f([2, 3]).
Sizes sizes_given(nb::handle first, const nb::args& more) {
  Sizes out;
  if (!to_ints(first, out))
    throw nb::type_error((std::string("a kernel's memory has axes of integers, got ") + nb::repr(first).c_str()).c_str());
  for (nb::handle n : more) out.push_back(nb::cast<int64_t>(n));
  return out;
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
std::vector<UOp> effects_of(const UOp& part) {
  const UOp& u = is_part(part) ? part.src(0) : part;
  if (!u.is(Op::AFTER)) return {u};
  std::vector<UOp> out;
  for (const UOp* s = &u; s->is(Op::AFTER); s = &s->src(0))
    for (const UOp& e : s->src().subspan(1))
      if (!e.is(Op::RANGE)) out.insert(out.begin(), e);
  return out;
}

std::vector<UOp> all_effects(const char* what, const nb::args& srcs) {
  std::vector<UOp> out;
  for (nb::handle s : srcs)
    if (!s.is_none())
      for (const UOp& effect : effects_of(cast_to<UOp>(s, what, "UOps"))) out.push_back(effect);
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
UOp set_element(const UOp& given, nb::handle x, nb::handle end) {
  const UOp at = place_of(given);
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
    const UOp after(Op::AFTER, whole.dtype(), {whole, loops.empty() ? stored : tinygrad::end(stored, loops)});
    return is_element_of_part(given) ? in_state(given.src(0), after) : after;
  }
  if (carried.src(0).src(1) != at.src(1)) throw ValueError("set: a loop carries another element than the one that is set");
  const auto before = stored_at(carried.src(0).src(0), at.src(1));
  if (!before && is_register(whole)) throw ValueError("a placeholder in registers is read before anything was stored there");
  const UOp after(Op::AFTER, whole.dtype(), {whole, checked_store(place, reduced(value, carried, before ? *before : load(place), loops))});
  return is_element_of_part(given) ? in_state(given.src(0), after) : after;
}

UOp scaled(const UOp& x, double factor) {
  if (!is_float(x.dtype())) throw DTypeError("a kernel computes a function of " + std::string(repr(x.dtype())) + "; cast() it to a float");
  return x * constant(x.dtype(), factor);
}

void bind_kernels(nb::class_<UOp>& uop) {
  uop.def_prop_ro("shape", [](const UOp& u) { return to_tuple(sizes_of(u, "shape")); })
      .def("numel", [](const UOp& u) { return elements_of(u, "numel"); })
      .def_prop_ro("size", [](const UOp& u) { return elements_of(u, "size"); })
      .def_prop_ro("ndim", [](const UOp& u) { return sizes_of(u, "ndim").size(); })
      .def("flatten",
           [](const UOp& u) {
             const int64_t n = elements_of(u, "flatten");
             return is_part(u) ? reshaped(u, {n}) : flat(u);
           })
      .def(
          "reshape", [](const UOp& u, nb::handle shape, const nb::args& args) { return reshaped(u, sizes_given(shape, args)); },
          "shape"_a.none() = nb::none(), "args"_a, "A kernel's memory with other axes, of as many elements.")
      .def(
          "permute", [](const UOp& u, nb::handle order, const nb::args& args) { return permuted(u, sizes_given(order, args)); },
          "order"_a.none() = nb::none(), "args"_a)
      .def(
          "index", [](const UOp& u, const nb::args& srcs) { return element(u, srcs); }, "srcs"_a, "An element of a kernel's memory.")
      .def(
          "load", [](const UOp& u) { return value_of(u); }, "What an element of a kernel's memory is.")
      .def("__getitem__", &element, "key"_a.none(), "An element of a kernel's memory; with slices or fewer indices than axes a part of it.")
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
            UOps sources{is_part(state) ? state.src(0) : state};
            for (nb::handle s : src) {
              const UOp u = loop_of(s);
              for (const UOp& e : effects_of(u)) sources.push_back(e);
            }
            return sources.size() == 1 ? state : in_state(state, UOp(Op::AFTER, state.dtype(), sources));
          },
          "src"_a, "The memory behind these effects, or as the earlier iterations of a loop left it.")
      .def_static(
          "placeholder",
          [](const Ints& shape, const DTypeArg& dtype, std::optional<int32_t> slot, const std::string& addrspace) {
            if (addrspace == "LOCAL")
              throw ValueError(
                  "UOp.placeholder: no LOCAL memory: the library itself shares a kernel among the items of work-groups; "
                  "use REG for what an item keeps");
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
          [](const UOp& element, nb::handle x, const std::optional<UOp>& gate) {
            const UOp at = place_of(element);
            if (!at.is(Op::INDEX)) throw nb::type_error("store: expects an element, as in C[i].store(x)");
            const UOp value = to_node(x, at.dtype());
            if (!gate) return checked_store(at, value);
            if (!is_bool(gate->dtype()))
              throw DTypeError("store: the gate is " + std::string(repr(gate->dtype())) + ", expects dtypes.bool");
            return checked_store(index_valid(at.src(0), at.src(1), value_of(*gate)), value);
          },
          "src"_a, "gate"_a = nb::none(), "Writes an element, where the gate holds if there is one.")
      .def(
          "end",
          [](const UOp& effect, const nb::args& ranges) {
            const std::vector<UOp> effects = effects_of(effect);
            return tinygrad::end(effects.size() == 1 ? effects[0] : tinygrad::group(effects), loops_of(ranges));
          },
          "src"_a)
      .def(
          "group", [](const nb::args& srcs) { return tinygrad::group(all_effects("group", srcs)); },
          "Effects as one; of UOp itself, or of the first of them.")
      .def(
          "sink",
          [](const nb::args& srcs, nb::handle arg) {
            const std::vector<UOp> all = all_effects("sink", srcs);
            const nb::object name = nb::getattr(arg, "name", nb::none());
            if (!arg.is_none() && !nb::isinstance<nb::str>(name))
              throw nb::type_error((std::string("sink: expects arg to be a KernelInfo, got ") + nb::repr(arg).c_str()).c_str());
            return tinygrad::sink(all, KernelArg{.name = Symbol(arg.is_none() ? "custom" : nb::cast<std::string>(name))});
          },
          "arg"_a = nb::none(),
          "The kernel of these effects, which may be none; of UOp itself, or of the first of them. `arg` is a KernelInfo.")
      .def(
          "reduce",
          [](const UOp& x, const nb::args& ranges, const std::string& op) {
            UOps sources{value_of(x)};
            for (nb::handle r : ranges) sources.push_back(loop_of(r));
            return UOp(Op::REDUCE, sources[0].dtype(), sources, ReduceArg{op_named(op), {}});
          },
          "src"_a, "arg"_a = "ADD", "Over loops of a kernel.")
      .def(
          "cast", [](const UOp& x, const DTypeArg& dtype) { return tinygrad::cast(value_of(x), dtype.get()); }, "dtype"_a)
      .def(
          "bitcast", [](const UOp& x, const DTypeArg& dtype) { return tinygrad::bitcast(value_of(x), dtype.get()); }, "dtype"_a)
      .def(
          "where",
          [](const UOp& c, nb::handle x, nb::handle y) {
            const bool by_second = !nb::isinstance<UOp>(x) && nb::isinstance<UOp>(y);
            const DType number = PyFloat_Check(x.ptr()) || PyFloat_Check(y.ptr()) ? DType::float32 : DType::index;
            const UOp first = by_second ? to_node(y, number) : to_node(x, number);
            const UOp second = to_node(by_second ? x : y, first.dtype());
            const UOp &a = by_second ? second : first, &b = by_second ? first : second;
            if (a.dtype() != b.dtype()) throw DTypeError("where: two dtypes in a kernel; cast() one value");
            return tinygrad::where(value_of(c), a, b);
          },
          "x"_a, "y"_a)
      .def("exp", [](const UOp& x) { return alu(Op::EXP2, {scaled(value_of(x), std::numbers::log2e)}); })
      .def("log", [](const UOp& x) { return scaled(alu(Op::LOG2, {value_of(x)}), std::numbers::ln2); })
      .def("relu",
           [](const UOp& x) {
             const UOp a = value_of(x);
             return max(a, to_node(nb::int_(0), a.dtype()));
           })
      .def("abs",
           [](const UOp& x) {
             const UOp a = value_of(x);
             return max(a, -a);
           })
      .def("square",
           [](const UOp& x) {
             const UOp a = value_of(x);
             return a * a;
           })
      .def("rsqrt", [](const UOp& x) { return alu(Op::RECIPROCAL, {alu(Op::SQRT, {value_of(x)})}); })
      .def("sigmoid",
           [](const UOp& x) {
             const UOp e = alu(Op::EXP2, {scaled(value_of(x), -std::numbers::log2e)});
             return alu(Op::RECIPROCAL, {e + constant(e.dtype(), 1.0)});
           })
      .def("__neg__", [](const UOp& x) { return -value_of(x); })
      .def("neg", [](const UOp& x) { return -value_of(x); })
      .def_static(
          "variable",
          [](std::string name, int64_t min, int64_t max, const OptionalDType& dtype) {
            return Variable(std::move(name), min, max, get(dtype));
          },
          "name"_a, "min_val"_a, "max_val"_a, "dtype"_a = nb::none(), "A Variable: an integer with bounds.")
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
  uop.def("__ge__", [](const UOp& a, nb::handle b) { return logical_not(binary(Op::CMPLT, a, b)); }, "x"_a);
  uop.def("__le__", [](const UOp& a, nb::handle b) { return logical_not(binary(Op::CMPLT, a, b, true)); }, "x"_a);
  TG_OPERATOR(lshift, Op::SHL);
  TG_OPERATOR(rshift, Op::SHR);
  TG_BINARY(eq, Op::CMPEQ);
  TG_BINARY(ne, Op::CMPNE);
  TG_BINARY(maximum, Op::MAX);
#define TG_NAMED(method, op) \
  uop.def(#method, [](const UOp& a, nb::handle b, bool reverse) { return binary(op, a, b, reverse); }, "x"_a, "reverse"_a = false)
  TG_NAMED(add, Op::ADD);
  TG_NAMED(sub, Op::SUB);
  TG_NAMED(mul, Op::MUL);
  TG_NAMED(mod, Op::FLOORMOD);
  TG_NAMED(bitwise_and, Op::AND);
  TG_NAMED(bitwise_or, Op::OR);
  TG_NAMED(bitwise_xor, Op::XOR);
  TG_NAMED(lshift, Op::SHL);
  TG_NAMED(rshift, Op::SHR);
#undef TG_NAMED
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

// Arguments of call() have slots that no function of the library's own has.
constexpr int32_t first_argument = 1 << 20;

Tensor argument_like(const Tensor& t, int32_t slot) {
  if (slot < 0) throw ValueError("as_param: the slot " + std::to_string(slot) + ", expects at least 0");
  return Tensor::from_uop(ops::param_like(t.uop(), first_argument + slot));
}

/// What a formula of arguments (Tensor.as_param) is of these tensors, with a gradient of its own where one is given.
Tensor called(nb::handle self, const nb::args& more, nb::handle fxn, nb::object grad_fxn) {
  const std::vector<Tensor> tensors = to_tensors(self, more, "call");
  if (!nb::isinstance<Tensor>(fxn) && !nb::isinstance<UOp>(fxn))
    throw nb::type_error("call: expects fxn to be a tensor or a UOp made of as_param()");
  const UOp formula = nb::isinstance<UOp>(fxn) ? nb::cast<UOp>(fxn) : nb::cast<Tensor>(fxn).uop();
  const auto body = [&formula](std::span<const Tensor> given) {
    NodeMap<UOp> values;
    for (const UOp& u : toposort(formula)) {
      if (!u.is(Op::PARAM) || u.arg_as<ParamArg>().slot < first_argument) continue;
      const auto slot = size_t(u.arg_as<ParamArg>().slot - first_argument);
      if (slot >= given.size())
        throw ValueError("call: fxn has an argument " + std::to_string(slot) + ", got " + std::to_string(given.size()) + " tensors");
      const Tensor like = Tensor::from_uop(u);
      if (like.shape() != given[slot].shape() || like.dtype() != given[slot].dtype())
        throw ShapeError("call: argument " + std::to_string(slot) + " is " + given[slot].to_string() + ", fxn was made for " +
                         like.to_string());
      values[u] = given[slot].uop();
    }
    return std::vector{Tensor::from_uop(substitute(formula, values))};
  };
  if (grad_fxn.is_none()) return body(tensors)[0];
  return detail::FunctionCore({.name = "call", .gradient = gradient_of_nodes(std::move(grad_fxn))}).call(tensors, body)[0];
}

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
      .def("as_param", &argument_like, "slot"_a, "Stands for the tensor of this place in call(), which is of this one's shape and dtype.")
      .def("call", &called, "lst"_a, "fxn"_a, "grad_fxn"_a = nb::none(),
           "What `fxn`, made of as_param(), is of these tensors. `grad_fxn` gives gradients as that of function() does.")
      .def(
          "alu", [](const Tensor& t, const std::string& op, const nb::args& src) { return t.alu(op_named(op), to_tensors(src, "alu")); },
          "op"_a, "src"_a)
      .def(
          "callify",
          [](nb::handle self, const nb::args& lst) {
            const std::vector<Tensor> all = to_tensors(self, lst, "callify");
            {
              const Interruptible interruptible;
              const Released released;
              Tensor::callify(all);
            }
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
