// Devices, counters and options.
#include "common.h"

#include "base/options.h"

namespace tinygrad::python {

namespace {

template <class T>
T parse_option(const char* variable, nb::handle value) {
  if constexpr (std::is_same_v<T, std::string>) {
    DTypeArg dtype;
    const bool is_dtype = std::string_view(variable).starts_with("DEFAULT_") && to_dtype(value, dtype);
    if (!is_dtype || !converts([&] { return dtype.get() != DType::void_; })) return nb::cast<std::string>(nb::str(value));
    return std::string(repr(dtype.get())).substr(repr(dtype.get()).find('.') + 1);  // of "half", "HALF" and dtypes.half
  } else if constexpr (std::is_same_v<T, bool>) {
    const int truth = PyObject_IsTrue(value.ptr());
    if (truth < 0) throw nb::python_error();
    return truth != 0;
  } else {
    T out{};
    if (!nb::try_cast(value, out)) throw ValueError(std::string(variable) + ": expects a number, got " + nb::repr(value).c_str());
    return out;
  }
}

ContextArgs to_context(const nb::dict& options) {
  ContextArgs args;
  for (const auto& [key, value] : options) {
    const auto wanted = nb::cast<std::string>(key);
    bool known = false;
#define TG_OPTION(type, field, name, ...)         \
  if (wanted == name) {                           \
    args.field = parse_option<type>(name, value); \
    known = true;                                 \
  }
#include <tinygrad/options.def>
#undef TG_OPTION
    if (!known) throw ValueError("Context: there is no option " + wanted + "; docs/environment.md lists them");
  }
  return args;
}

nb::object get_option(const std::string& wanted) {
  const Options& o = current_options();
#define TG_OPTION(type, field, name, ...) \
  if (wanted == name) return nb::cast(o.field);
#include <tinygrad/options.def>
#undef TG_OPTION
  throw ValueError("there is no option " + wanted);
}

/// Contexts that Python's `with` has entered, of one thread.
std::vector<std::unique_ptr<Context>>& contexts() {
  static thread_local std::vector<std::unique_ptr<Context>> stack;
  return stack;
}

/// A bound Variable and the size that it makes hash the same, as they are equal.
Py_hash_t hash_of(const std::string& text) { return Py_hash_t(std::hash<std::string>()(text) >> 1); }

/// The operators of what can be an Extent.
template <class C>
void bind_arithmetic(nb::class_<C>& type) {
  using Operator = Extent (*)(const Extent&, const Extent&);
  const std::pair<const char*, Operator> operators[] = {{"add", +[](const Extent& a, const Extent& b) { return a + b; }},
                                                        {"sub", +[](const Extent& a, const Extent& b) { return a - b; }},
                                                        {"mul", +[](const Extent& a, const Extent& b) { return a * b; }},
                                                        {"floordiv", +[](const Extent& a, const Extent& b) { return a / b; }},
                                                        {"mod", +[](const Extent& a, const Extent& b) { return a % b; }}};
  const auto apply = [](Operator f, nb::handle a, nb::handle b) -> nb::object {
    const std::optional<Extent> x = to_extent(a), y = to_extent(b);
    return x && y ? nb::cast(f(*x, *y)) : nb::borrow(Py_NotImplemented);
  };
  for (const auto& [name, f] : operators) {
    type.def((std::string("__") + name + "__").c_str(), [op = f, apply](nb::handle a, nb::handle b) { return apply(op, a, b); });
    type.def((std::string("__r") + name + "__").c_str(), [op = f, apply](nb::handle a, nb::handle b) { return apply(op, b, a); });
  }
  type.def("__neg__", [](nb::handle a) { return Extent(0) - *to_extent(a); });
  // True or False where the bounds decide; else a tensor, as values differ from call to call.
  const auto less = [](const std::optional<Extent>& a, const std::optional<Extent>& b) -> nb::object {
    if (!a || !b) return nb::borrow(Py_NotImplemented);
    const Extent difference = *a - *b;
    if (difference.max() < 0 || difference.min() >= 0) return nb::bool_(difference.max() < 0);
    return nb::cast(Tensor(difference).lt(0));
  };
  type.def("__lt__", [less](nb::handle a, nb::handle b) { return less(to_extent(a), to_extent(b)); });
  type.def("__gt__", [less](nb::handle a, nb::handle b) { return less(to_extent(b), to_extent(a)); });
  const auto next = [](nb::handle x) {
    const auto size = to_extent(x);
    return size ? std::optional(*size + 1) : std::nullopt;
  };
  type.def("__le__", [less, next](nb::handle a, nb::handle b) { return less(to_extent(a), next(b)); });
  type.def("__ge__", [less, next](nb::handle a, nb::handle b) { return less(to_extent(b), next(a)); });
}

}  // namespace

void bind_devices(nb::module_& m) {
  m.def("default_device", [] { return default_device(); });
  m.def("rank", [] { return rank(); });
  m.def("world_size", [] { return world_size(); });
  m.def("canonical_device", [](const std::string& name) { return canonical_device(name); }, "name"_a);
  m.def("available_devices", [] {
    nb::list out;
    for (const DeviceStatus& d : available_devices()) out.append(nb::make_tuple(d.name, d.works, d.reason));
    return out;
  });
  m.def(
      "synchronize",
      [](const std::string& device) {
        const Interruptible interruptible;
        const Released released;
        synchronize(device);
      },
      "device"_a);
}

void bind_helpers(nb::module_& m) {
  m.def("push_context", [](const nb::dict& options) { contexts().push_back(std::make_unique<Context>(to_context(options))); }, "options"_a);
  m.def("pop_context", [] {
    if (!contexts().empty()) contexts().pop_back();
  });
  m.def("set_option", [](const nb::dict& options) { Context::set(to_context(options)); }, "options"_a);
  m.def("get_option", &get_option, "name"_a);
  m.def("option_names", [] {
    nb::list out;
    for (const OptionInfo& o : option_table()) out.append(std::string(o.variable));
    return out;
  });
  m.def("global_ops", [] { return GlobalCounters::global_ops.load(); });
  m.def("global_mem", [] { return GlobalCounters::global_mem.load(); });
  m.def("time_sum_s", [] { return GlobalCounters::time_sum_s.load(); });
  m.def("kernel_count", [] { return GlobalCounters::kernel_count.load(); });
  m.def("mem_used", [] { return GlobalCounters::mem_used.load(); });
  m.def("reset_counters", [] { GlobalCounters::reset(); });
  nb::class_<Variable> variable(m, "BoundedVariable", "An integer with a name and bounds, known when kernels are launched.");
  variable
      .def(
          "__init__",
          [](Variable* self, std::string name, int64_t min, int64_t max, const OptionalDType& dtype) {
            new (self) Variable(std::move(name), min, max, get(dtype));
          },
          "name"_a, "min_val"_a, "max_val"_a, "dtype"_a = nb::none())
      .def("bind", &Variable::bind, "val"_a)
      .def("unbind",
           [](const Variable& v) {
             if (!v.value()) throw ValueError("unbind: " + v.name() + " has no value");
             return nb::make_tuple(Variable(v.name(), v.min(), v.max(), v.dtype()), *v.value());
           })
      .def("__eq__",
           [](const Variable& a, nb::handle b) {
             if (const auto* v = nb::isinstance<Variable>(b) ? nb::inst_ptr<Variable>(b) : nullptr) return a == *v;
             return nb::isinstance<Extent>(b) && Extent(a) == *nb::inst_ptr<Extent>(b);
           })
      .def("__hash__", [](const Variable& v) { return hash_of(Extent(v).to_string()); })
      .def_prop_ro("expr", [](const Variable& v) -> std::string { return v.name(); })
      .def_prop_ro("val", &Variable::value)
      .def_prop_ro("vmin", &Variable::min)
      .def_prop_ro("vmax", &Variable::max)
      .def("__repr__", [](const Variable& v) {
        return "Variable('" + v.name() + "', " + std::to_string(v.min()) + ", " + std::to_string(v.max()) + ")" +
               (v.value() ? ".bind(" + std::to_string(*v.value()) + ")" : "");
      });
  nb::class_<Extent> extent(m, "Extent", "A size or an offset that is known when kernels are launched.");
  extent.def_prop_ro("val", &Extent::value)
      .def_prop_ro("vmin", &Extent::min)
      .def_prop_ro("vmax", &Extent::max)
      .def("__int__", &Extent::value)
      .def("__eq__",
           [](const Extent& a, nb::handle b) {
             const std::optional<Extent> other = to_extent(b);
             return other && a == *other;
           })
      .def("__hash__", [](const Extent& e) { return hash_of(e.to_string()); })
      .def("__repr__", &Extent::to_string);
  bind_arithmetic(variable);
  bind_arithmetic(extent);
}

}  // namespace tinygrad::python
