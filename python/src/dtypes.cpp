// DType: one Python object for each dtype.
#include <array>

#include "common.h"

namespace tinygrad::python {

namespace {

struct PyDType {
  DType value;
};

/// Of the module, which holds them.
std::array<nb::handle, dtype_count> objects;

std::string_view short_name(DType d) { return repr(d).substr(repr(d).find('.') + 1); }

/// As struct and memoryview write it.
nb::object format_of(DType d) {
  const std::pair<DType, const char*> formats[] = {
      {DType::bool_, "?"},  {DType::int8, "b"},  {DType::uint8, "B"},  {DType::int16, "h"},   {DType::uint16, "H"},  {DType::int32, "i"},
      {DType::uint32, "I"}, {DType::int64, "q"}, {DType::uint64, "Q"}, {DType::float16, "e"}, {DType::float32, "f"}, {DType::float64, "d"}};
  for (const auto& [dtype, text] : formats)
    if (dtype == d) return nb::str(text);
  return nb::none();
}

nb::object limit_of(DType d, bool upper) {
  if (is_float(d)) return nb::float_(upper ? INFINITY : -INFINITY);
  if (is_bool(d)) return nb::bool_(upper);
  const nb::object one = nb::int_(1);
  const int bits = bitsize(d) - (is_unsigned(d) ? 0 : 1);
  const nb::object power = one.attr("__lshift__")(bits);
  if (upper) return power - one;
  return is_unsigned(d) ? nb::object(nb::int_(0)) : -power;
}

}  // namespace

nb::object to_python(DType dtype) { return nb::borrow(objects[size_t(dtype)]); }

bool to_dtype(nb::handle x, DTypeArg& out) {
  if (nb::isinstance<PyDType>(x)) {
    out = {nb::inst_ptr<PyDType>(x)->value};
    return true;
  }
  if (PyUnicode_Check(x.ptr())) {
    out.text = nb::cast<std::string>(x);
    if (out.text.empty()) out.text = " ";  // no dtype either
    return true;
  }
  if (PyType_Check(x.ptr()) || !nb::hasattr(x, "itemsize") || !nb::hasattr(x, "kind")) return false;  // a dtype of NumPy
  out.text = nb::cast<std::string>(nb::str(x));
  return true;
}

void bind_dtypes(nb::module_& m) {
  nb::class_<PyDType>(m, "DType", "The type of one element.")
      .def_prop_ro("name", [](const PyDType& d) { return std::string(name(d.value)); })
      .def_prop_ro("priority", [](const PyDType& d) { return priority(d.value); })
      .def_prop_ro("bitsize", [](const PyDType& d) { return bitsize(d.value); })
      .def_prop_ro("itemsize", [](const PyDType& d) { return itemsize(d.value); })
      .def_prop_ro("fmt", [](const PyDType& d) { return format_of(d.value); })
      .def_prop_ro("min", [](const PyDType& d) { return limit_of(d.value, false); })
      .def_prop_ro("max", [](const PyDType& d) { return limit_of(d.value, true); })
      .def("__repr__", [](const PyDType& d) { return std::string(repr(d.value)); })
      .def("__lt__", [](const PyDType& a, const PyDType& b) { return priority(a.value) < priority(b.value); })
      .def("__reduce__", [](const PyDType& d) {
        return nb::make_tuple(nb::module_::import_("tinygrad_cpp.dtype").attr("to_dtype"),
                              nb::make_tuple(std::string(short_name(d.value))));
      });
  nb::dict all;
  for (int i = 0; i < dtype_count; ++i) {
    const nb::object object = nb::cast(PyDType{DType(i)});
    objects[size_t(i)] = object;
    all[std::string(short_name(DType(i))).c_str()] = object;
  }
  m.attr("all_dtypes") = all;
  m.def("dtype", [](const DTypeArg& x) { return DTypeArg{x.get()}; }, "dtype"_a, "The dtype of this name.");
  m.def("is_float", [](const DTypeArg& x) { return is_float(x.get()); });
  m.def("is_int", [](const DTypeArg& x) { return is_int(x.get()); });
  m.def("is_unsigned", [](const DTypeArg& x) { return is_unsigned(x.get()); });
  m.def("is_bool", [](const DTypeArg& x) { return is_bool(x.get()); });
  m.def("finfo", [](const DTypeArg& x) {
    const FloatInfo f = finfo(x.get());
    return nb::make_tuple(f.exponent_bits, f.mantissa_bits);
  });
  m.def("least_upper_dtype", [](const nb::args& dtypes) {
    std::vector<DType> all_of_them;
    for (nb::handle d : dtypes) all_of_them.push_back(nb::cast<DTypeArg>(d).get());
    return DTypeArg{least_upper_dtype(all_of_them)};
  });
  m.def("least_upper_float", [](const DTypeArg& x) { return DTypeArg{least_upper_float(x.get())}; });
  m.def("can_lossless_cast", [](const DTypeArg& from, const DTypeArg& to) { return can_lossless_cast(from.get(), to.get()); });
  m.def("sum_acc_dtype", [](const DTypeArg& x) { return DTypeArg{sum_acc_dtype(x.get())}; });
}

}  // namespace tinygrad::python
