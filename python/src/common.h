#pragma once
/// What all parts of the module share: how Python's values become arguments of the library, and back.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tinygrad/tinygrad.h>

#include "tensor/origin.h"

namespace tinygrad::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

/// While it lives, tensors that this thread makes without Python's lock are of the line of the program that runs now.
class NotedPlace {
 public:
  NotedPlace();
  ~NotedPlace();
  NotedPlace(const NotedPlace&) = delete;
  NotedPlace& operator=(const NotedPlace&) = delete;

 private:
  const tensor::SourcePlace* const before_;
};

/// Lets other Python threads run while the library computes: everything that may wait for memory or for another thread holds one.
class Released {
  const NotedPlace place_;
  const nb::gil_scoped_release released_;
};

/// A dtype, or what stands for one: a name ("float32", "half") or a NumPy dtype. None where the argument is optional.
struct DTypeArg {
  DType dtype{};
  std::string text = {};
  /// DTypeError for a name that is none.
  DType get() const { return text.empty() ? dtype : parse_dtype(text); }
};
using OptionalDType = std::optional<DTypeArg>;
inline std::optional<DType> get(const OptionalDType& x) { return x ? std::optional(x->get()) : std::nullopt; }
/// A tensor or a number; an array becomes a tensor.
struct Value {
  std::optional<Operand> operand;
  std::shared_ptr<Tensor> made = {};
  std::string too_large = {};  ///< an integer that does not fit 64 bits; the operand is the float next to it
  /// ValueError for an integer that is too large.
  operator const Operand&() const;
  /// The same for comparisons, which are exact beyond 64 bits too: no integer of a tensor is between the number and the float.
  const Operand& compared() const { return *operand; }
};
/// One integer or several.
struct Ints {
  Sizes values;
};
/// One axis, several, or (where the argument takes it) None for all.
struct AxesArg {
  AxisList axes;
};
/// An entry of x[...], or a tuple of them.
struct IndexArg {
  std::vector<Tensor> kept;  ///< tensors made of lists and masks, which the indices point to
  std::vector<Index> indices;
};

/// A Python object that any thread may drop, whether it has Python's lock or not.
std::shared_ptr<void> shared_object(nb::object x);

/// The Python object of a dtype: one for each.
nb::object to_python(DType dtype);
bool to_dtype(nb::handle x, DTypeArg& out);
/// A number of Python or NumPy, or a tensor; false for anything else. The operand points into the Python object.
bool to_operand(nb::handle x, std::optional<Operand>& out);
/// The same, and arrays.
bool to_value(nb::handle x, Value& out);
bool to_int(nb::handle x, int64_t& out);
bool to_ints(nb::handle x, Sizes& out);
/// Numbers of axes. One beyond 32 bits becomes the largest, which no tensor has either.
std::vector<int> to_axes(const Sizes& axes);
/// An integer, a bound Variable, or what was computed of such.
std::optional<Extent> to_extent(nb::handle x);
/// The arguments of `f(2, 3)` and `f((2, 3))`, or the one that `f(name=(2, 3))` gives. TypeError for both.
nb::args with_keyword(const nb::args& args, nb::handle keyword, const char* function, const char* name);
/// Sizes as `f(2, 3)` or `f((2, 3))` gives them.
Extents to_extents(const nb::args& args, const char* function);
/// The same with None for a size that stays: the one in `kept`, or -1 without it.
Extents to_extents_or_none(const nb::args& args, const char* function, const std::optional<Extents>& kept = {});
/// The same of nothing but integers.
Sizes to_sizes(const nb::args& args, const char* function);
/// Tensors as `f(a, b)` or `f([a, b])` gives them.
std::vector<Tensor> to_tensors(const nb::args& args, const char* function);
/// The same of a method, which is called on one of the tensors or, through the class, on a list.
std::vector<Tensor> to_tensors(nb::handle self, const nb::args& args, const char* function);
/// A tensor of any data that Python has: see Tensor.__init__.
Tensor make_tensor(nb::handle data, const std::optional<std::string>& device, std::optional<DType> dtype);
/// The name of a device; of several, given as a tuple or list, all of them with commas.
struct DeviceName : std::optional<std::string> {
  using std::optional<std::string>::optional;
};
bool to_device(nb::handle x, DeviceName& out);
std::vector<std::string> to_list(const DeviceName& devices);
/// A string, or a tuple of several.
nb::object to_object(const std::vector<std::string>& devices);

inline TensorOptions to_options(const std::optional<std::string>& device, const OptionalDType& dtype) {
  return {.dtype = get(dtype), .device = device.value_or("")};
}
nb::tuple to_tuple(const Sizes& sizes);
nb::tuple to_tuple(const Extents& sizes);
IndexArg to_indices(nb::handle x, const Tensor& of);
/// The tensor that `x` is, or one on the device and of the dtype of `like` that has its values.
Tensor to_tensor_like(nb::handle x, const Tensor& like);

/// `x` as a T; TypeError that says what is expected.
template <class T>
T cast_to(nb::handle x, std::string_view what, std::string_view expected) {
  T out{};
  if (!nb::try_cast(x, out))
    throw nb::type_error((std::string(what) + ": expects " + std::string(expected) + ", got " + nb::repr(x).c_str()).c_str());
  return out;
}

/// A name that stands for an enumerator; ValueError lists what is allowed.
template <class E>
E choose(std::string_view what, std::string_view name, std::initializer_list<std::pair<std::string_view, E>> choices) {
  std::string known;
  for (const auto& [text, value] : choices) {
    if (text == name) return value;
    known += (known.empty() ? "'" : ", '") + std::string(text) + "'";
  }
  throw ValueError(std::string(what) + ": got '" + std::string(name) + "', expects one of " + known);
}

/// While it lives, Ctrl-C ends what this thread computes with KeyboardInterrupt, wherever the library may be cancelled.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  bool installed_;
};

/// Throws Cancelled, which becomes KeyboardInterrupt, where Ctrl-C was pressed.
void check_interrupted();

// Each part of the module, in a source of its own.
void bind_errors(nb::module_& m);
void bind_places();
void bind_dtypes(nb::module_& m);
void bind_devices(nb::module_& m);
void bind_helpers(nb::module_& m);
using TensorClass = nb::class_<Tensor>;
void bind_creation(TensorClass& tensor);
void bind_values(TensorClass& tensor);
void bind_elementwise(TensorClass& tensor);
void bind_views(TensorClass& tensor);
void bind_reduce(TensorClass& tensor);
void bind_products(TensorClass& tensor);
void bind_graph(TensorClass& tensor);
void bind_nn(nb::module_& m);
void bind_optim(nb::module_& m);
void bind_state(nb::module_& m);
void bind_mesh(nb::module_& m);
void bind_parallel(nb::module_& m);
void bind_data(nb::module_& m);
void bind_jit(nb::module_& m);
void bind_onnx(nb::module_& m);
void bind_aten(nb::module_& m);
void bind_dlpack(nb::module_& m);
void bind_graph_function(nb::module_& m);
void bind_uops(nb::module_& m);

/// The tensors of a Python object by name, as a module.
struct NamedTensors : nn::Module {
  nn::state::StateDict tensors;
  explicit NamedTensors(nn::state::StateDict all = {}) : tensors(std::move(all)) {}
  void add_fields(nn::Fields& fields) const override {
    for (const auto& [name, tensor] : tensors) fields.add(name, tensor);
  }
};

/// Cut along directions of a mesh, by their names; those of `gathered` in memory alone.
Tensor shard_on(const Tensor& t, const Mesh& mesh, const nb::dict& cuts, const std::vector<std::string>& gathered);

/// The gradient that a Python function of nodes gives: it gets those of the outputs, and the call, whose sources behind the first are the
/// inputs. None: no such function.
GradientFunction gradient_of_nodes(nb::object f);

}  // namespace tinygrad::python

namespace tinygrad::python {

/// Whether a conversion succeeds: what it throws means no.
template <class Convert>
bool converts(Convert convert) noexcept {
  try {
    return convert();
  } catch (...) {
    PyErr_Clear();
    return false;
  }
}

}  // namespace tinygrad::python

namespace tinygrad::python {

/// Where the Python object that holds this tensor, which must be one, is noted, by a borrowed reference; null if there is none.
PyObject*& object_of(const Tensor& t);
/// When an object goes, with the tensor in it.
void forget_object(const Tensor& t);

}  // namespace tinygrad::python

namespace nanobind::detail {

/// A tensor that Python has already is the object that it has.
template <>
struct type_caster<tinygrad::Tensor> : type_caster_base<tinygrad::Tensor> {
  using Base = type_caster_base<tinygrad::Tensor>;
  static handle from_cpp(const tinygrad::Tensor& t, rv_policy, cleanup_list* cleanup) noexcept {
    if (!t.defined()) return Base::from_cpp(t, rv_policy::copy, cleanup);
    PyObject*& object = tinygrad::python::object_of(t);
    // One that Python is about to delete has no references.
    if (object && Py_REFCNT(object) > 0) return handle(object).inc_ref();
    const handle made = Base::from_cpp(t, rv_policy::copy, cleanup);
    object = made.ptr();
    return made;
  }
  static handle from_cpp(const tinygrad::Tensor* t, rv_policy policy, cleanup_list* cleanup) noexcept {
    return t ? from_cpp(*t, policy, cleanup) : none().release();
  }
};
template <>
inline void wrap_destruct<tinygrad::Tensor>(void* value) noexcept {
  auto* t = static_cast<tinygrad::Tensor*>(value);
  tinygrad::python::forget_object(*t);
  t->~Tensor();
}

template <>
struct type_caster<tinygrad::python::DTypeArg> {
  NB_TYPE_CASTER(tinygrad::python::DTypeArg, const_name("DTypeLike"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    return tinygrad::python::converts([&] { return tinygrad::python::to_dtype(src, value); });
  }
  static handle from_cpp(tinygrad::python::DTypeArg x, rv_policy, cleanup_list*) noexcept {
    return tinygrad::python::to_python(x.dtype).release();
  }
};

template <>
struct type_caster<tinygrad::python::Value> {
  NB_TYPE_CASTER(tinygrad::python::Value, const_name("Tensor | float | int | bool"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    return tinygrad::python::converts([&] { return tinygrad::python::to_value(src, value); });
  }
};

template <>
struct type_caster<tinygrad::python::DeviceName> {
  NB_TYPE_CASTER(tinygrad::python::DeviceName, const_name("str | Sequence[str] | None"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    return tinygrad::python::converts([&] { return tinygrad::python::to_device(src, value); });
  }
};

template <>
struct type_caster<tinygrad::python::Ints> {
  NB_TYPE_CASTER(tinygrad::python::Ints, const_name("int | Sequence[int]"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    return tinygrad::python::converts([&] { return tinygrad::python::to_ints(src, value.values); });
  }
};

template <>
struct type_caster<tinygrad::python::AxesArg> {
  NB_TYPE_CASTER(tinygrad::python::AxesArg, const_name("int | Sequence[int]"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    return tinygrad::python::converts([&] {
      value.axes = {};
      tinygrad::Sizes axes;
      if (src.is_none()) return true;
      if (!tinygrad::python::to_ints(src, axes)) return false;
      value.axes = tinygrad::python::to_axes(axes);
      return true;
    });
  }
};

}  // namespace nanobind::detail
