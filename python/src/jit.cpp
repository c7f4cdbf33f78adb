// jit for functions of Python: what is among their arguments and results, and how both are made again of other tensors.
#include "common.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>

namespace tinygrad::python {

namespace {

bool is_dataclass(nb::handle x) { return !PyType_Check(x.ptr()) && PyObject_HasAttrString(x.type().ptr(), "__dataclass_fields__"); }
bool is_numpy_integer(nb::handle x) {
  return PyIndex_Check(x.ptr()) && PyObject_HasAttrString(x.ptr(), "dtype") && PyObject_HasAttrString(x.ptr(), "item");
}
bool is_named_tuple(nb::handle x) { return PyTuple_Check(x.ptr()) && PyObject_HasAttrString(x.ptr(), "_fields"); }

/// The names of a dict in order, which is not that in which they were put in.
std::map<std::string, nb::handle> by_name(nb::handle dict) {
  std::map<std::string, nb::handle> out;
  for (const auto& [key, value] : nb::borrow<nb::dict>(dict)) {
    const auto name = nb::cast<std::string>(nb::str(key));
    if (!out.emplace(name, value).second)
      throw ValueError("a dict has two keys that read '" + name + "': arguments and results are told apart by that");
  }
  return out;
}

/// Python's limit of recursion, for containers that contain themselves.
class Nested {
 public:
  Nested() {
    if (Py_EnterRecursiveCall(" in the arguments or the result of a jitted function")) throw nb::python_error();
  }
  ~Nested() { Py_LeaveRecursiveCall(); }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
};

/// Calls the visitor for everything in a value; objects of other kinds are known by their address.
void visit(nb::handle x, detail::JitCollector& c, std::vector<nb::object>& objects) {
  const Nested nested;
  const auto group = [&](const char* open, const char* close, nb::handle items) {
    c.open(open);
    for (nb::handle item : nb::borrow<nb::sequence>(items)) visit(item, c, objects);
    c.close(close);
  };
  if (nb::isinstance<Tensor>(x)) {
    c.tensor(*nb::inst_ptr<Tensor>(x));
  } else if (nb::isinstance<Variable>(x)) {
    c.variable(*nb::inst_ptr<Variable>(x));
  } else if (PyBool_Check(x.ptr())) {
    c.constant(x.is(nb::handle(Py_True)));
  } else if (PyFloat_Check(x.ptr())) {
    c.constant(PyFloat_AS_DOUBLE(x.ptr()));
  } else if (PyLong_Check(x.ptr()) || x.is_none() || is_numpy_integer(x)) {
    c.open(nb::str(x).c_str());  // as text: it may be too large for a number of C++
    c.close("");
  } else if (PyUnicode_Check(x.ptr())) {
    c.open(nb::repr(x).c_str());  // in Python's quotes, so that no text looks like two
    c.close("");
  } else if (PyTuple_Check(x.ptr())) {
    group("(", ")", x);
  } else if (PyList_Check(x.ptr())) {
    group("[", "]", x);
  } else if (PyDict_Check(x.ptr())) {
    c.open("{");
    for (const auto& [key, value] : by_name(x)) {
      c.key(key);
      visit(value, c, objects);
    }
    c.close("}");
  } else if (is_dataclass(x)) {
    c.open("{");
    for (nb::handle name : x.attr("__dataclass_fields__")) {
      c.key(nb::cast<std::string>(name));
      visit(x.attr(name), c, objects);
    }
    c.close("}");
  } else {
    c.object(x.ptr());
    objects.push_back(nb::borrow(x));
  }
}

/// What is in a value.
struct Contents {
  detail::JitArguments arguments;
  std::vector<nb::object> objects;  ///< those known by their address

  explicit Contents(nb::handle value) {
    detail::JitCollector collector(arguments);
    visit(value, collector, objects);
  }
};

/// Stands for a tensor in the containers of a captured result.
struct Placeholder {};
/// Its class, which is pickled by its name, and which nobody else passes.
nb::handle placeholder() { return nb::type<Placeholder>(); }

using Replace = std::function<nb::object(nb::handle)>;

/// The same containers around other tensors.
nb::object remade(nb::handle x, const Replace& replace) {
  if (nb::isinstance<Tensor>(x) || x.is(placeholder())) return replace(x);
  if (PyTuple_Check(x.ptr()) || PyList_Check(x.ptr())) {
    nb::list items;
    for (nb::handle item : nb::borrow<nb::sequence>(x)) items.append(remade(item, replace));
    if (PyList_Check(x.ptr())) return items;
    return is_named_tuple(x) ? x.type()(*nb::tuple(items)) : nb::object(nb::tuple(items));
  }
  if (PyDict_Check(x.ptr())) {
    std::map<std::string, nb::object> values;
    for (const auto& [name, value] : by_name(x)) values.emplace(name, remade(value, replace));
    nb::dict out;
    for (const auto& [key, value] : nb::borrow<nb::dict>(x)) out[key] = values.at(nb::cast<std::string>(nb::str(key)));
    return out;
  }
  if (is_dataclass(x)) {
    const nb::object out = nb::module_::import_("copy").attr("copy")(x);
    const nb::object set = nb::module_::import_("builtins").attr("object").attr("__setattr__");
    for (nb::handle name : x.attr("__dataclass_fields__")) set(out, name, remade(x.attr(name), replace));
    return out;
  }
  return nb::borrow(x);
}

/// The containers with these tensors in the order in which visit() comes to them.
nb::object filled(nb::handle containers, std::span<const Tensor> tensors) {
  size_t next = 0;
  return remade(containers, [&](nb::handle) { return nb::cast(tensors[next++]); });
}

/// Calls a function with the arguments (args, kwargs), other tensors in them.
nb::object call_with(const nb::object& function, const nb::tuple& arguments, std::span<const Tensor> tensors) {
  const nb::object own = filled(arguments, tensors);
  return function(*nb::borrow<nb::tuple>(own[0]), **nb::borrow<nb::dict>(own[1]));
}

/// A layout that another process can compare.
std::string without_addresses(std::string layout) {
  constexpr std::string_view before = " at 0x";
  for (size_t at = layout.find(before); at != std::string::npos; at = layout.find(before, at)) {
    const size_t end = std::min(layout.find_first_not_of("0123456789abcdef", at + before.size()), layout.size());
    layout.erase(at, end - at);
  }
  return layout;
}

/// Throws for numbers and objects in a result: they would be those of one call for ever.
void check_result(nb::handle x, const char* by) {
  const Nested nested;
  if (nb::isinstance<Tensor>(x) || x.is_none()) return;
  if (PyTuple_Check(x.ptr()) || PyList_Check(x.ptr())) {
    for (nb::handle item : nb::borrow<nb::sequence>(x)) check_result(item, by);
  } else if (PyDict_Check(x.ptr())) {
    for (const auto& [key, value] : nb::borrow<nb::dict>(x)) check_result(value, by);
  } else if (is_dataclass(x)) {
    for (nb::handle name : x.attr("__dataclass_fields__")) check_result(x.attr(name), by);
  } else {
    throw JitError(std::string(by) + ": the function must return tensors in tuples, lists, dicts or dataclasses, or None; it returned " +
                   nb::repr(x.type()).c_str());
  }
}

/// How often a result holds each of its tensors and containers.
using OwnReferences = std::unordered_map<const PyObject*, Py_ssize_t>;

/// Calls f with each thing in a container, and how many references to it the call itself makes.
template <class F>
void for_each_item(nb::handle x, F f) {
  if (PyTuple_Check(x.ptr()) || PyList_Check(x.ptr())) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x.ptr()); ++i) f(nb::handle(PySequence_Fast_GET_ITEM(x.ptr(), i)), 0);
  } else if (PyDict_Check(x.ptr())) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(x.ptr(), &at, &key, &value);) f(nb::handle(value), 0);
  } else if (is_dataclass(x)) {
    for (nb::handle name : x.attr("__dataclass_fields__")) {
      const nb::object value = x.attr(name);
      f(value, 1);
    }
  }
}

void count_own(nb::handle x, OwnReferences& own) {
  for_each_item(x, [&](nb::handle item, Py_ssize_t) {
    if (++own[item.ptr()] == 1 && !nb::isinstance<Tensor>(item)) count_own(item, own);
  });
}

/// The tensors in a result that Python holds elsewhere too. `others` are references to `x` that are neither the result's own nor kept.
void add_kept(nb::handle x, Py_ssize_t others, bool is_kept, const OwnReferences& own, std::vector<Tensor>& out) {
  const auto of_result = own.find(x.ptr());
  is_kept = is_kept || Py_REFCNT(x.ptr()) > others + (of_result == own.end() ? 0 : of_result->second);
  if (nb::isinstance<Tensor>(x)) {
    if (is_kept) out.push_back(*nb::inst_ptr<Tensor>(x));
  } else {
    for_each_item(x, [&](nb::handle item, Py_ssize_t made) { add_kept(item, made, is_kept, own, out); });
  }
}

class Jit {
 public:
  Jit(bool check, bool prune) : core_({.check = check, .prune = prune}) {}

  static nb::object call(nb::handle self, const nb::object& function, const nb::tuple& args, const nb::dict& kwargs) {
    detail::JitCore& core = nb::inst_ptr<Jit>(self)->core_;
    const nb::tuple given = nb::make_tuple(args, kwargs);
    const Contents contents(given);
    nb::object result;
    std::vector<Tensor> kept;  // one handle more, as an object that is returned and kept has only one
    const auto body = [&](std::span<const Tensor> tensors) {
      const nb::gil_scoped_acquire gil;
      self.attr(objects) = contents.objects;
      result = call_with(function, given, tensors);
      detail::JitResults results = results_of(result);
      OwnReferences own;
      count_own(result, own);
      add_kept(result, 1, false, own, kept);
      return results;
    };
    static constexpr char tag = 0;
    std::optional<detail::JitResults> replayed;
    {
      const Interruptible interruptible;
      const Released released;
      replayed = core.call(contents.arguments, &tag, body);
    }
    if (!replayed) return result;
    return filled(static_cast<PyObject*>(const_cast<void*>(replayed->skeleton.get())), replayed->tensors);
  }

  static void reset(nb::handle self) {
    self.attr(objects) = nb::none();
    const Released released;  // a thread that is in a call needs Python's lock to end it
    nb::inst_ptr<Jit>(self)->core_.reset();
  }
  bool captured() const {
    const Released released;
    return core_.captured();
  }
  void free_intermediates() {
    const Released released;
    core_.free_intermediates();
  }
  void save(const std::string& path) const {
    const Released released;
    core_.save(path);
  }
  /// Of what save() writes: what must be equal in arguments, and the result with placeholders for tensors.
  nb::tuple saved_form() const {
    const auto [layout, skeleton] = [this] {
      const Released released;
      return core_.saved_form();
    }();
    return nb::make_tuple(without_addresses(layout), nb::borrow(static_cast<PyObject*>(const_cast<void*>(skeleton.get()))));
  }

 private:
  static detail::JitResults results_of(const nb::object& result) {
    check_result(result, "jit");
    return {Contents(result).arguments.tensors, shared_object(remade(result, [](nb::handle) { return nb::borrow(placeholder()); }))};
  }

  /// Those that the latest run knew by their address: where Python's collector of cycles sees them.
  static constexpr const char* objects = "_objects";
  detail::JitCore core_;
};

/// The gradient that a Python function gives: a tensor or None for each input.
GradientFunction gradient_of(nb::object f) {
  if (f.is_none()) return {};
  const std::shared_ptr<void> kept = shared_object(std::move(f));
  return [kept](std::span<const Tensor> gradients, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
    const nb::gil_scoped_acquire gil;
    const auto tuple_of = [](std::span<const Tensor> tensors) {
      return nb::tuple(nb::cast(std::vector<Tensor>(tensors.begin(), tensors.end())));
    };
    const nb::handle function(static_cast<PyObject*>(kept.get()));
    const nb::object given = function(tuple_of(gradients), tuple_of(inputs), tuple_of(outputs));
    const bool are_several = PyTuple_Check(given.ptr()) || PyList_Check(given.ptr());
    std::vector<Tensor> out;
    for (nb::handle g : nb::tuple(are_several ? given : nb::make_tuple(given))) {
      if (!g.is_none() && !nb::isinstance<Tensor>(g))
        throw nb::type_error(
            (std::string("function: its gradient must give a tensor or None for each input; got ") + nb::repr(g.type()).c_str()).c_str());
      out.push_back(g.is_none() ? Tensor() : nb::cast<Tensor>(g));
    }
    return out;
  };
}

/// A function of tensors as one node of the graph.
class OneNode {
 public:
  OneNode(std::string name, nb::object gradient, nb::object of_nodes)
      : core_({.name = std::move(name),
               .gradient = of_nodes.is_none() ? gradient_of(std::move(gradient)) : gradient_of_nodes(std::move(of_nodes))}) {}

  nb::object call(const nb::object& function, const nb::tuple& args, const nb::dict& kwargs) const {
    const nb::tuple given = nb::make_tuple(args, kwargs);
    nb::object result;
    const std::vector<Tensor> outputs = core_.call(Contents(given).arguments.tensors, [&](std::span<const Tensor> tensors) {
      result = call_with(function, given, tensors);
      check_result(result, "function");
      return Contents(result).arguments.tensors;
    });
    return filled(result, outputs);
  }

 private:
  detail::FunctionCore core_;
};

}  // namespace

void bind_jit(nb::module_& m) {
  nb::class_<Placeholder>(m, "JitPlaceholder", "Stands for a tensor in what a jitted function gives.");
  nb::class_<Jit>(m, "Jit", nb::dynamic_attr(), "What TinyJit captures of one function.")
      .def(nb::init<bool, bool>(), "check"_a = false, "prune"_a = false)
      .def("call", &Jit::call, "function"_a, "args"_a, "kwargs"_a)
      .def("reset", &Jit::reset)
      .def("free_intermediates", &Jit::free_intermediates)
      .def("save", &Jit::save, "path"_a)
      .def("saved_form", &Jit::saved_form)
      .def_prop_ro("captured", &Jit::captured);
  nb::class_<OneNode>(m, "OneNode", "What function() makes of a function.")
      .def(nb::init<std::string, nb::object, nb::object>(), "name"_a, "gradient"_a.none(), "grad_fxn"_a.none())
      .def("call", &OneNode::call, "function"_a, "args"_a, "kwargs"_a);
  nb::class_<LoadedJit>(m, "LoadedJit", "A captured call from a file: tensors of the arguments to tensors of the results, in their order.")
      .def(nb::init<std::string>(), "path"_a)
      .def(
          "call_as",
          [](const LoadedJit& jit, const std::string& layout, nb::handle skeleton, const nb::tuple& args, const nb::dict& kwargs) {
            const detail::JitArguments arguments = Contents(nb::make_tuple(args, kwargs)).arguments;
            if (const std::string given = without_addresses(arguments.layout); given != layout)
              throw JitError("jit: what was captured takes " + layout + ", got " + given);
            const std::vector<Tensor> results = [&] {
              const Interruptible interruptible;
              const Released released;
              return jit(arguments.tensors, arguments.variables);
            }();
            return filled(skeleton, results);
          },
          "layout"_a, "skeleton"_a.none(), "args"_a, "kwargs"_a)
      .def("__call__", [](const LoadedJit& jit, const nb::args& args) {
        const detail::JitArguments arguments = Contents(args).arguments;
        const Interruptible interruptible;
        const Released released;
        return jit(arguments.tensors, arguments.variables);
      });
}

}  // namespace tinygrad::python
