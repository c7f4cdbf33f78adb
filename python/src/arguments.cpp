// Python's numbers, sequences and indices as arguments of the library.
#include <algorithm>
#include <limits>

#include "common.h"

#include "tensor/storage.h"

namespace tinygrad::python {

std::shared_ptr<void> shared_object(nb::object x) {
  return {x.release().ptr(), [](void* object) {
            if (!Py_IsInitialized()) return;
            const nb::gil_scoped_acquire gil;
            Py_DECREF(static_cast<PyObject*>(object));
          }};
}

namespace {

/// A NumPy scalar or an array of one element, without importing NumPy.
bool is_numpy_scalar(nb::handle x) {
  return PyObject_HasAttrString(x.ptr(), "dtype") && PyObject_HasAttrString(x.ptr(), "item") && PyObject_HasAttrString(x.ptr(), "ndim") &&
         nb::cast<int64_t>(x.attr("ndim")) == 0;
}

[[noreturn]] void too_large(nb::handle x) { throw ValueError("the integer " + std::string(nb::str(x).c_str()) + " does not fit 64 bits"); }

}  // namespace

bool to_device(nb::handle x, DeviceName& out) {
  out = DeviceName();
  if (x.is_none()) return true;
  if (nb::isinstance<nb::str>(x)) {
    out.emplace(nb::cast<std::string>(x));
    return true;
  }
  if (!nb::isinstance<nb::tuple>(x) && !nb::isinstance<nb::list>(x)) return false;
  std::string names;
  for (nb::handle name : nb::iter(x)) {
    if (!nb::isinstance<nb::str>(name)) return false;
    names += (names.empty() ? "" : ",") + nb::cast<std::string>(name);
  }
  if (names.empty()) return false;
  out.emplace(std::move(names));
  return true;
}

std::vector<std::string> to_list(const DeviceName& devices) {
  std::vector<std::string> out;
  const std::string list = devices.value_or("");
  for (size_t at = 0; !list.empty() && at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

nb::object to_object(const std::vector<std::string>& devices) {
  if (devices.size() == 1) return nb::str(devices[0].c_str(), devices[0].size());
  nb::list out;
  for (const std::string& d : devices) out.append(nb::str(d.c_str(), d.size()));
  return nb::tuple(out);
}

bool to_int(nb::handle x, int64_t& out) {
  if (PyBool_Check(x.ptr()) || (!PyLong_Check(x.ptr()) && !PyIndex_Check(x.ptr()))) return false;
  if (nb::isinstance<Tensor>(x)) return false;
  const auto number = nb::steal<nb::object>(PyNumber_Index(x.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    return false;
  }
  int overflow = 0;
  out = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow) too_large(x);
  return true;
}

bool to_ints(nb::handle x, Sizes& out) {
  int64_t one = 0;
  out.clear();
  if (to_int(x, one)) {
    out.push_back(one);
    return true;
  }
  if (!PySequence_Check(x.ptr()) || PyUnicode_Check(x.ptr()) || nb::isinstance<Tensor>(x)) return false;
  for (nb::handle item : nb::borrow<nb::sequence>(x)) {
    if (!to_int(item, one)) return false;
    out.push_back(one);
  }
  return true;
}

std::vector<int> to_axes(const Sizes& axes) {
  using Limits = std::numeric_limits<int>;
  std::vector<int> out;
  for (int64_t a : axes) out.push_back(int(std::clamp<int64_t>(a, Limits::min(), Limits::max())));
  return out;
}

bool to_operand(nb::handle x, std::optional<Operand>& out) {
  if (nb::isinstance<Tensor>(x)) {
    out.emplace(*nb::inst_ptr<Tensor>(x));
  } else if (PyBool_Check(x.ptr())) {
    out.emplace(x.is(nb::handle(Py_True)));
  } else if (PyFloat_Check(x.ptr())) {
    out.emplace(PyFloat_AS_DOUBLE(x.ptr()));
  } else if (PyLong_Check(x.ptr())) {
    int overflow = 0;
    const int64_t number = PyLong_AsLongLongAndOverflow(x.ptr(), &overflow);
    if (overflow == 0) {
      out.emplace(number);
    } else {
      const uint64_t large = PyLong_AsUnsignedLongLong(x.ptr());
      if (PyErr_Occurred()) {
        PyErr_Clear();
        too_large(x);
      }
      out.emplace(large);
    }
  } else if (nb::isinstance<Variable>(x) || nb::isinstance<Extent>(x)) {
    out.emplace(*to_extent(x));
  } else if (is_numpy_scalar(x)) {
    const nb::object item = x.attr("item")();
    return (PyBool_Check(item.ptr()) || PyFloat_Check(item.ptr()) || PyLong_Check(item.ptr())) && to_operand(item, out);
  } else {
    return false;
  }
  return true;
}

Value::operator const Operand&() const {
  if (!too_large.empty())
    throw ValueError("the integer " + too_large + " does not fit 64 bits; write it as a float where floats are meant");
  return *operand;
}

bool to_value(nb::handle x, Value& out) {
  if (PyLong_Check(x.ptr()) && !PyBool_Check(x.ptr())) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(x.ptr(), &overflow);
    if (overflow < 0 ||
        (overflow > 0 && PyObject_RichCompareBool(x.ptr(), nb::int_(std::numeric_limits<uint64_t>::max()).ptr(), Py_GT) == 1)) {
      const double nearest = PyLong_AsDouble(x.ptr());
      if (PyErr_Occurred()) PyErr_Clear();  // beyond all floats
      out.operand.emplace(nearest != -1.0 ? nearest : overflow * std::numeric_limits<double>::infinity());
      out.too_large = nb::str(x).c_str();
      return true;
    }
  }
  if (to_operand(x, out.operand)) return true;
  if (!PyObject_HasAttrString(x.ptr(), "__array_interface__") && !PyObject_HasAttrString(x.ptr(), "__dlpack__")) return false;
  out.made = std::make_shared<Tensor>(make_tensor(x, {}, {}));
  out.operand.emplace(*out.made);
  return true;
}

std::optional<Extent> to_extent(nb::handle x) {
  int64_t number = 0;
  if (to_int(x, number)) return Extent(number);
  if (nb::isinstance<Variable>(x)) return Extent(*nb::inst_ptr<Variable>(x));
  if (nb::isinstance<Extent>(x)) return *nb::inst_ptr<Extent>(x);
  return {};
}

namespace {

/// The arguments, or those in the one tuple or list.
nb::sequence one_by_one(const nb::args& args) {
  const bool is_list = args.size() == 1 && (nb::isinstance<nb::tuple>(args[0]) || nb::isinstance<nb::list>(args[0]));
  return nb::borrow<nb::sequence>(is_list ? nb::handle(args[0]) : nb::handle(args));
}

[[noreturn]] void no_sizes(const char* function, const nb::args& args) {
  throw nb::type_error((std::string(function) + ": sizes are integers, or one tuple of integers; got " + nb::repr(args).c_str()).c_str());
}

}  // namespace

nb::args with_keyword(const nb::args& args, nb::handle keyword, const char* function, const char* name) {
  if (keyword.is_none()) return args;
  if (args.size() != 0) throw nb::type_error((std::string(function) + ": got " + name + " twice, by its place and by its name").c_str());
  return nb::borrow<nb::args>(nb::make_tuple(keyword));
}

Extents to_extents(const nb::args& args, const char* function) {
  for (nb::handle x : one_by_one(args))
    if (x.is_none()) no_sizes(function, args);
  return to_extents_or_none(args, function);
}

Extents to_extents_or_none(const nb::args& args, const char* function, const std::optional<Extents>& kept) {
  Extents out;
  for (nb::handle x : one_by_one(args)) {
    if (x.is_none()) {
      if (kept && out.size() >= kept->size())
        throw ShapeError(std::string(function) + ": None keeps a size, but there is no axis " + std::to_string(out.size()));
      out.push_back(kept ? (*kept)[out.size()] : Extent(-1));
    } else if (const std::optional<Extent> size = to_extent(x)) {
      out.push_back(*size);
    } else {
      no_sizes(function, args);
    }
  }
  return out;
}

Sizes to_sizes(const nb::args& args, const char* function) {
  Sizes out;
  if (!to_ints(one_by_one(args), out)) no_sizes(function, args);
  return out;
}

std::vector<Tensor> to_tensors(const nb::args& args, const char* function) {
  std::vector<Tensor> out;
  const auto add = [&](nb::handle x) {
    if (!nb::isinstance<Tensor>(x))
      throw nb::type_error((std::string(function) + ": expects tensors, got " + nb::repr(x.type()).c_str()).c_str());
    out.push_back(nb::cast<Tensor>(x));
  };
  for (nb::handle x : args) {
    if (nb::isinstance<nb::list>(x) || nb::isinstance<nb::tuple>(x)) {
      for (nb::handle y : nb::borrow<nb::sequence>(x)) add(y);
    } else {
      add(x);
    }
  }
  return out;
}

std::vector<Tensor> to_tensors(nb::handle self, const nb::args& args, const char* function) {
  nb::list all;
  all.append(self);
  for (nb::handle x : args) all.append(x);
  return to_tensors(nb::borrow<nb::args>(nb::tuple(all)), function);
}

nb::tuple to_tuple(const Sizes& sizes) {
  nb::object out = nb::steal(PyTuple_New(Py_ssize_t(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i) PyTuple_SET_ITEM(out.ptr(), Py_ssize_t(i), PyLong_FromLongLong(sizes[i]));
  return nb::borrow<nb::tuple>(out);
}

nb::tuple to_tuple(const Extents& sizes) {
  nb::list out;
  for (const Extent& s : sizes) out.append(s.known() ? nb::object(nb::int_(s.value())) : nb::cast(s));
  return nb::tuple(out);
}

namespace {

std::optional<Extent> to_bound(PyObject* x) {
  if (x == Py_None) return {};
  if (std::optional<Extent> bound = to_extent(x)) return bound;
  throw nb::type_error((std::string("a slice is made of integers and Variables; got ") + nb::repr(nb::handle(x)).c_str()).c_str());
}

int64_t to_step(PyObject* x) {
  if (x == Py_None) return 1;
  if (int64_t number = 0; to_int(x, number)) return number;
  throw nb::type_error((std::string("the step of a slice is an integer; got ") + nb::repr(nb::handle(x)).c_str()).c_str());
}

/// What is known of an entry while others are looked at.
struct Entry {
  int axes = 1;  ///< of the indexed tensor that it stands for
  bool is_ellipsis = false;
  std::optional<std::pair<int64_t, int64_t>> range = {};  ///< of indices that are on the host
};

/// The least and the greatest of nested lists of integers, or of an array; nothing for masks, for none, and for what holds tensors.
void add_range(nb::handle x, std::optional<std::pair<int64_t, int64_t>>& range) {
  const auto add = [&](int64_t i) { range = range ? std::pair(std::min(range->first, i), std::max(range->second, i)) : std::pair(i, i); };
  int64_t number = 0;
  if (to_int(x, number)) return add(number);
  if (PyObject_HasAttrString(x.ptr(), "__array_interface__")) {
    if (nb::cast<int64_t>(x.attr("size")) == 0) return;
    for (const char* end : {"min", "max"})
      if (to_int(x.attr(end)(), number)) add(number);
  } else if (PySequence_Check(x.ptr()) && !nb::isinstance<Tensor>(x)) {
    for (nb::handle item : nb::borrow<nb::sequence>(x)) add_range(item, range);
  }
}

/// IndexError for indices on the host that are out of range for their axis.
void check_ranges(const std::vector<Entry>& entries, const Tensor& of) {
  int used = 0, axis = 0;
  for (const Entry& e : entries) used += e.axes;
  const Sizes sizes = of.max_shape();
  for (const Entry& e : entries) {
    if (e.range && axis < int(sizes.size())) {
      const auto [low, high] = *e.range;
      const int64_t n = sizes[size_t(axis)];
      if (low < -n || high >= n)
        throw IndexError("index " + std::to_string(low < -n ? low : high) + " is out of range for axis " + std::to_string(axis) +
                         " of size " + std::to_string(n));
    }
    axis += e.is_ellipsis ? of.ndim() - used : e.axes;
  }
}

bool holds_tensors(nb::handle x) {
  if (nb::isinstance<Tensor>(x)) return true;
  if (!PyList_Check(x.ptr()) && !PyTuple_Check(x.ptr())) return false;
  for (nb::handle item : nb::borrow<nb::sequence>(x))
    if (holds_tensors(item)) return true;
  return false;
}

/// Nested lists, with tensors in them or not, as one tensor.
Tensor stacked(nb::handle x, const Tensor& of) {
  if (!holds_tensors(x) || nb::isinstance<Tensor>(x)) return make_tensor(x, of.device(), {});
  std::vector<Tensor> rows;
  for (nb::handle item : nb::borrow<nb::sequence>(x)) rows.push_back(stacked(item, of));
  return Tensor::stack(rows);
}

Entry add_index(IndexArg& out, nb::handle x, const Tensor& of) {
  int64_t number = 0;
  Entry entry;
  if (x.is_none()) {
    out.indices.push_back(NewAxis{});
    entry.axes = 0;
  } else if (x.is(nb::handle(Py_Ellipsis))) {
    out.indices.push_back(Ellipsis{});
    entry.axes = 0;
    entry.is_ellipsis = true;
  } else if (PySlice_Check(x.ptr())) {
    const auto* s = reinterpret_cast<PySliceObject*>(x.ptr());
    out.indices.push_back(Slice{to_bound(s->start), to_bound(s->stop), to_step(s->step)});
  } else if (nb::isinstance<Variable>(x) || nb::isinstance<Extent>(x)) {
    out.indices.push_back(*to_extent(x));
  } else if (nb::isinstance<Tensor>(x)) {
    out.kept.push_back(nb::cast<Tensor>(x));
    out.indices.push_back(out.kept.back());
  } else if (to_int(x, number)) {
    out.indices.push_back(number);
  } else if (PyBool_Check(x.ptr()) || PyFloat_Check(x.ptr()) || PyUnicode_Check(x.ptr())) {
    PyErr_Format(PyExc_IndexError, "%R is no index: expects integers, slices, None, ..., tensors, lists or masks", x.ptr());
    throw nb::python_error();
  } else {  // lists, masks and arrays
    add_range(x, entry.range);
    out.kept.push_back(stacked(x, of));
    if (out.kept.back().numel() == 0 && is_float(out.kept.back().dtype())) out.kept.back() = out.kept.back().to_int();  // an empty list
    out.indices.push_back(out.kept.back());
  }
  if (!out.kept.empty() && out.indices.back().tensor() && is_bool(out.kept.back().dtype())) entry.axes = out.kept.back().ndim();
  return entry;
}

/// As in tinygrad and PyTorch, a list of more than numbers is a tuple: x[[0, 1]] are two rows, x[[[0, 1], [1, 0]]] two elements.
bool is_tuple_of_indices(nb::handle x) {
  if (PyTuple_Check(x.ptr())) return true;
  if (!PyList_Check(x.ptr())) return false;
  for (nb::handle e : nb::borrow<nb::list>(x)) {
    const bool is_array = PyObject_HasAttrString(e.ptr(), "ndim") && nb::cast<int64_t>(e.attr("ndim")) != 0;
    if (PyList_Check(e.ptr()) || PyTuple_Check(e.ptr()) || PySlice_Check(e.ptr()) || e.is_none() || e.is(nb::handle(Py_Ellipsis)) ||
        nb::isinstance<Tensor>(e) || is_array)
      return true;
  }
  return false;
}

}  // namespace

IndexArg to_indices(nb::handle x, const Tensor& of) {
  IndexArg out;
  std::vector<Entry> entries;
  const nb::tuple all = is_tuple_of_indices(x) ? nb::tuple(nb::borrow<nb::object>(x)) : nb::make_tuple(x);
  out.kept.reserve(all.size());  // indices point to them
  for (nb::handle e : all) entries.push_back(add_index(out, e, of));
  check_ranges(entries, of);
  return out;
}

Tensor to_tensor_like(nb::handle x, const Tensor& like) {
  if (nb::isinstance<Tensor>(x)) return nb::cast<Tensor>(x);
  const std::string device = like.device();  // of a file, no value is made there before it is written
  return make_tensor(x, tensor::is_storage(like.uop()) ? std::string("CPU") : device, like.dtype());
}

}  // namespace tinygrad::python
