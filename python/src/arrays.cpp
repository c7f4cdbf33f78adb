// Tensors of Python's data and NumPy arrays of tensors.
#include <nanobind/ndarray.h>

#include <cstring>

#include "common.h"
#include "dlpack.h"

#include "dtype/scalar.h"
#include "tensor/handle.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include "uop/uop.h"

namespace tinygrad::python {

namespace {

using AnyArray = nb::ndarray<nb::ro>;

std::optional<DType> dtype_of_array(nb::dlpack::dtype t) { return dlpack::dtype_of({t.code, t.bits, t.lanes}); }

nb::dlpack::dtype array_dtype(DType d) {
  const dlpack::Type t = dlpack::type_of(d);
  return {t.code, t.bits, t.lanes};
}

/// Row-major copies of elements with any strides.
std::vector<std::byte> packed(const AnyArray& a, size_t width) {
  std::vector<std::byte> out(a.size() * width);
  if (out.empty()) return out;
  std::vector<size_t> at(a.ndim(), 0);
  const auto* from = static_cast<const std::byte*>(a.data());
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t offset = 0;
    for (size_t k = 0; k < at.size(); ++k) offset += int64_t(at[k]) * a.stride(k);
    std::memcpy(out.data() + i * width, from + offset * int64_t(width), width);
    for (size_t k = at.size(); k-- > 0 && ++at[k] == a.shape(k);) at[k] = 0;
  }
  return out;
}

bool is_row_major(const AnyArray& a) {
  int64_t stride = 1;
  for (size_t k = a.ndim(); k-- > 0;) {
    if (a.shape(k) != 1 && a.stride(k) != stride) return false;
    stride *= int64_t(a.shape(k));
  }
  return true;
}

bool reached_by_host(std::string_view device) { return device == "CPU" || device == "INTERP"; }

/// An array of NumPy, PyTorch, ... with memory the host reaches. Memory that may be written, row-major and aligned is used in place where
/// nothing is to be converted; else it is copied.
std::optional<Tensor> from_array(nb::handle given, const TensorOptions& options) {
  // PyTorch may negate lazily, which DLPack does not tell.
  const nb::object data = nb::hasattr(given, "resolve_neg") ? given.attr("resolve_neg")() : nb::borrow(given);
  AnyArray a;
  if (!nb::try_cast(data, a) || !a.is_valid()) return {};
  if (a.device_type() != nb::device::cpu::value)
    throw DeviceError("Tensor: the array is in the memory of a device; copy it to the host first");
  const std::optional<DType> dtype = dtype_of_array(a.dtype());
  if (!dtype)
    throw DTypeError(std::string("Tensor: an array of ") + nb::repr(data.attr("dtype")).c_str() + "; no tensor has such elements");
  Sizes shape;
  for (size_t k = 0; k < a.ndim(); ++k) shape.push_back(int64_t(a.shape(k)));
  const bool on_several = options.device.find(',') != std::string::npos;
  const std::string device = on_several ? options.device : options.device.empty() ? default_device() : canonical_device(options.device);
  nb::ndarray<> writable;
  const bool in_place = a.size() != 0 && a.ndim() != 0 && is_row_major(a) && reached_by_host(device) &&
                        options.dtype.value_or(*dtype) == *dtype && reinterpret_cast<uintptr_t>(a.data()) % itemsize(*dtype) == 0 &&
                        nb::try_cast(data, writable);
  if (in_place) return Tensor::from_blob(writable.data(), shape, {.dtype = dtype, .device = options.device}, shared_object(data));
  if (is_row_major(a))
    return Tensor(std::span(static_cast<const std::byte*>(a.data()), a.size() * itemsize(*dtype)), *dtype, shape, options);
  return Tensor(packed(a, itemsize(*dtype)), *dtype, shape, options);
}

/// The numbers of nested lists, in order.
class NestedList {
 public:
  explicit NestedList(nb::handle data) { add(data, 0); }

  const Sizes& shape() const { return shape_; }
  Tensor tensor(const TensorOptions& options) const {
    TensorOptions o = options;
    const DType natural = leaves_.empty() || kind_ == Kind::real ? default_dtype("DEFAULT_FLOAT")
                          : kind_ == Kind::integer               ? default_dtype("DEFAULT_INT")
                                                                 : DType::bool_;
    const DType wanted = options.dtype.value_or(natural);
    o.dtype = wanted;
    if (kind_ == Kind::real || is_float(wanted))
      return filled<double>(o, [wanted](nb::handle x) {
        const double value = PyFloat_AsDouble(x.ptr());
        if (!is_float(wanted)) checked_cast(Scalar::of(value), wanted, "Tensor");
        return value;
      });
    if (is_int(wanted)) {
      ops::LiteralInt least(wanted);
      for (nb::handle x : leaves_) {
        if (options.dtype)
          checked_cast(integer(x), wanted, "Tensor");
        else
          least.add(integer(x));
      }
      if (!options.dtype) o.dtype = least.dtype();
    }
    if (*o.dtype == DType::uint64) return filled<uint64_t>(o, [](nb::handle x) { return integer(x).as_uint(); });
    return filled<int64_t>(o, [](nb::handle x) { return integer(x).as_int(); });
  }

 private:
  enum class Kind { boolean, integer, real };

  static DType default_dtype(const char* option) {
    return nb::cast<DTypeArg>(nb::module_::import_("tinygrad_cpp._core").attr("get_option")(option)).get();
  }

  static Scalar integer(nb::handle x) {
    std::optional<Operand> number;
    to_operand(x, number);
    return tensor::to_operand(*number).number();
  }

  template <class T, class Read>
  Tensor filled(const TensorOptions& options, Read read) const {
    std::vector<T> values;
    values.reserve(leaves_.size());
    for (nb::handle x : leaves_) {
      values.push_back(read(x));
      if (PyErr_Occurred()) throw nb::python_error();
    }
    return Tensor(std::span<const T>(values), shape_, options);
  }

  [[noreturn]] static void refuse(nb::handle x) {
    throw nb::type_error((std::string("Tensor: cannot be made of ") + nb::repr(x.type()).c_str() + ": " + nb::repr(x).c_str()).c_str());
  }

  void add(nb::handle x, size_t depth) {
    if (add_number(x, depth)) return;
    if (depth > 64) throw ShapeError("Tensor: lists are nested more than 64 deep");
    if (nb::isinstance<Tensor>(x)) throw nb::type_error("Tensor: a list of tensors; use Tensor.stack");
    nb::object items = nb::steal(PySequence_Check(x.ptr()) && !PyUnicode_Check(x.ptr()) ? PySequence_Fast(x.ptr(), "") : nullptr);
    if (!items.is_valid()) {
      PyErr_Clear();
      refuse(x);
    }
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
    if (depth == shape_.size() && !flat_known_)
      shape_.push_back(count);
    else if (depth >= shape_.size() || shape_[depth] != count)
      throw ShapeError("Tensor: the lists at depth " + std::to_string(depth) + " have different lengths");
    for (Py_ssize_t i = 0; i < count; ++i) add(PySequence_Fast_GET_ITEM(items.ptr(), i), depth + 1);
    if (count == 0) flat_known_ = true;
    kept_.push_back(std::move(items));
  }

  bool add_number(nb::handle x, size_t depth) {
    nb::object number = nb::borrow(x);
    if (!PyBool_Check(x.ptr()) && !PyLong_Check(x.ptr()) && !PyFloat_Check(x.ptr())) {
      if (nb::isinstance<Tensor>(x) || !PyObject_HasAttrString(x.ptr(), "dtype") || !nb::hasattr(x, "ndim") ||
          nb::cast<int>(x.attr("ndim")) != 0)
        return false;
      number = x.attr("item")();
      if (!PyBool_Check(number.ptr()) && !PyLong_Check(number.ptr()) && !PyFloat_Check(number.ptr())) refuse(x);
      kept_.push_back(number);
    }
    if (depth != shape_.size()) throw ShapeError("Tensor: numbers and lists at the same depth");
    flat_known_ = true;
    kind_ = std::max(kind_, PyBool_Check(number.ptr()) ? Kind::boolean : PyLong_Check(number.ptr()) ? Kind::integer : Kind::real);
    leaves_.push_back(number);
    return true;
  }

  Sizes shape_;
  bool flat_known_ = false;  // the depth of the numbers
  Kind kind_ = Kind::boolean;
  std::vector<nb::handle> leaves_;  // kept alive by the lists they are in, or by:
  std::vector<nb::object> kept_;
};

/// A vector of `dtype`, by default uint8.
Tensor from_bytes(std::span<const std::byte> bytes, const TensorOptions& options) {
  const DType dtype = options.dtype.value_or(DType::uint8);
  const size_t width = std::max<size_t>(itemsize(dtype), 1);
  if (bytes.size() % width)
    throw ShapeError("Tensor: " + std::to_string(bytes.size()) + " bytes are no whole number of " + std::string(repr(dtype)));
  return Tensor(bytes, dtype, {int64_t(bytes.size() / width)}, options);
}

/// The same of a file, in which it stays unless a device is named. Bytes behind the last whole element are left out.
Tensor from_path(nb::handle path, const TensorOptions& options) {
  const Tensor bytes = Tensor::from_file(nb::cast<std::string>(path.attr("__fspath__")()));
  const DType dtype = options.dtype.value_or(DType::uint8);
  const int64_t width = std::max<int64_t>(int64_t(itemsize(dtype)), 1), count = bytes.numel() / width;
  const Tensor there = bytes[{Slice{.stop = count * width}}].bitcast(dtype);
  return options.device.empty() ? there : there.to(options.device);
}

/// A number that is made into a constant; an integer beyond 64 bits is looked at as those in lists are.
bool is_constant(nb::handle x) {
  if (!PyLong_Check(x.ptr()) || PyBool_Check(x.ptr())) return PyFloat_Check(x.ptr()) || PyBool_Check(x.ptr());
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(x.ptr(), &overflow);
  if (overflow > 0) {
    PyLong_AsUnsignedLongLong(x.ptr());
    overflow = PyErr_Occurred() != nullptr;
    PyErr_Clear();
  }
  return !overflow;
}

}  // namespace

Tensor make_tensor(nb::handle data, const std::optional<std::string>& device, std::optional<DType> dtype) {
  const TensorOptions options{.dtype = dtype, .device = device.value_or("")};
  if (dtype == DType::void_) throw DTypeError("Tensor: dtypes.void has no values, expects a dtype such as dtypes.float32");
  if (nb::isinstance<Tensor>(data)) {
    Tensor t = nb::cast<Tensor>(data);
    if (device) t = t.to(*device);
    return dtype ? t.cast(*dtype) : t;
  }
  if (nb::isinstance<UOp>(data)) return make_tensor(nb::cast(Tensor::from_uop(nb::cast<UOp>(data))), device, dtype);
  if (data.is_none()) return Tensor::full({}, 0.0, options);
  if (nb::isinstance<Variable>(data)) return Tensor(*nb::inst_ptr<Variable>(data), options);
  if (nb::isinstance<Extent>(data)) return Tensor(*nb::inst_ptr<Extent>(data), options);
  if (is_constant(data)) {
    std::optional<Operand> number;
    to_operand(data, number);
    return Tensor::scalar(*number, options);
  }
  if (PyBytes_Check(data.ptr())) {
    const auto bytes = std::as_bytes(std::span(PyBytes_AS_STRING(data.ptr()), size_t(PyBytes_GET_SIZE(data.ptr()))));
    return from_bytes(bytes, options);
  }
  if (!nb::isinstance<nb::list>(data) && !nb::isinstance<nb::tuple>(data)) {
    if (nb::hasattr(data, "__fspath__")) return from_path(data, options);
    if (std::optional<Tensor> t = from_array(data, options)) return *t;
  }
  return NestedList(data).tensor(options);
}

namespace {

/// The tensor's memory as an array of some library; of a tensor that is not computed yet, and stays so, memory with its value.
template <class Library>
nb::object array_over(const Tensor& tensor) {
  const Tensor t = tensor::state_of_view(tensor.uop()) ? tensor : tensor.contiguous();
  const Sizes sizes = t.shape();
  std::shared_ptr<std::byte> memory;
  {
    const Interruptible interruptible;
    const Released released;
    memory = t.host_memory();
  }
  const std::vector<size_t> shape(sizes.begin(), sizes.end());
  auto* owner = new std::shared_ptr<std::byte>(memory);
  const nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<std::shared_ptr<std::byte>*>(p); });
  return nb::cast(nb::ndarray<Library>(memory.get(), shape.size(), shape.data(), capsule, nullptr, array_dtype(t.dtype())));
}

/// A tensor in a file is read first: what reading converts is computed.
Tensor readable(const Tensor& t) { return tensor::is_storage(t.uop()) ? t.to("CPU") : t; }

nb::object numpy_of(const Tensor& x) {
  const Tensor t = readable(x);
  const bool has_dtype = t.dtype() != DType::bfloat16 && !is_fp8(t.dtype());
  return array_over<nb::numpy>(has_dtype ? t : t.to_float());
}

nb::object nested(const nb::object& flat, nb::handle shape, size_t axis, size_t& at) {
  const auto sizes = nb::borrow<nb::tuple>(shape);
  if (axis == sizes.size()) return nb::borrow(PyList_GET_ITEM(flat.ptr(), Py_ssize_t(at++)));
  nb::list out;
  for (int64_t i = 0; i < nb::cast<int64_t>(sizes[axis]); ++i) out.append(nested(flat, shape, axis + 1, at));
  return out;
}

template <class T>
nb::object flat_list(const std::vector<T>& values) {
  nb::list out;
  for (const T& x : values) out.append(nb::cast(x));
  return out;
}

nb::object flat_values(const Tensor& x) {
  const Tensor t = readable(x);
  const auto read = [&]<class T>(T) {
    std::vector<T> values;
    {
      const Interruptible interruptible;
      const Released released;
      if constexpr (std::is_same_v<T, bool>) {
        const std::vector<uint8_t> bytes = t.cast(DType::uint8).tolist<uint8_t>();
        values.assign(bytes.begin(), bytes.end());
      } else {
        values = t.tolist<T>();
      }
    }
    return flat_list(values);
  };
  const DType d = t.dtype();
  if (is_float(d)) return read(double{});
  if (is_bool(d)) return read(bool{});
  return d == DType::uint64 ? read(uint64_t{}) : read(int64_t{});
}

nb::object item_of(const Tensor& t) {
  if (t.numel() != 1) t.item();  // throws
  return nb::borrow(PyList_GET_ITEM(flat_values(t).ptr(), 0));
}

nb::object tolist(const Tensor& t) {
  size_t at = 0;
  return nested(flat_values(t), to_tuple(t.shape()), 0, at);
}

}  // namespace

void bind_values(TensorClass& tensor) {
  tensor.def("numpy", &numpy_of, "The elements as a NumPy array on the tensor's own memory; dtypes that NumPy lacks become float32.")
      .def(
          "data", [](const Tensor& t) { return nb::steal(PyMemoryView_FromObject(numpy_of(t).ptr())); },
          "A memoryview of the tensor's own memory.")
      .def("tolist", &tolist, "The values as nested lists, or one number for a tensor of no axes.")
      .def("item", &item_of, "The only element as a number.")
      .def(
          "__array__",
          [](const Tensor& t, nb::object dtype, nb::object) {
            const nb::object a = numpy_of(t);
            return dtype.is_none() ? a : a.attr("astype")(dtype);
          },
          "dtype"_a = nb::none(), "copy"_a = nb::none())
      .def("__dlpack__", [](const Tensor& t, nb::kwargs kwargs) { return array_over<nb::array_api>(t).attr("__dlpack__")(**kwargs); })
      .def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(int(nb::device::cpu::value), 0); })
      .def("__float__", [](const Tensor& t) { return nb::steal(PyNumber_Float(item_of(t).ptr())); })
      .def("__int__", [](const Tensor& t) { return nb::steal(PyNumber_Long(item_of(t).ptr())); })
      .def_static(
          "from_blob",
          [](uintptr_t address, const Ints& shape, const OptionalDType& dtype, const std::optional<std::string>& device) {
            return Tensor::from_blob(reinterpret_cast<void*>(address), shape.values, to_options(device, dtype));
          },
          "ptr"_a, "shape"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
          "A tensor on memory of somebody else, which must stay.");
}

}  // namespace tinygrad::python
