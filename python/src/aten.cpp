// Operators of PyTorch by their names, and graphs of them.
#include "frontend/aten/aten.h"

#include "common.h"

namespace tinygrad::python {

namespace {

aten::Value to_value(nb::handle x);

/// What is PyTorch's own, known by the name of its type, so that nothing of PyTorch is included: "torch.float32" of a torch.dtype.
std::optional<aten::Value> value_of_torch(nb::handle x) {
  const std::string_view type = Py_TYPE(x.ptr())->tp_name;
  if (!type.starts_with("torch.")) return {};
  const std::string text = nb::str(x).c_str();
  if (type == "torch.device") return aten::Device{text};
  if (type == "torch.memory_format") {
    if (text == "torch.contiguous_format") return aten::MemoryFormat::contiguous;
    if (text == "torch.preserve_format") return aten::MemoryFormat::preserve;
    return text == "torch.channels_last" ? aten::MemoryFormat::channels_last : aten::MemoryFormat::channels_last_3d;
  }
  if (type == "torch.layout")
    return text == "torch.strided" ? aten::Layout::strided : text.starts_with("torch.sparse") ? aten::Layout::sparse : aten::Layout::other;
  return {};
}

aten::Value to_value(nb::handle x) {
  if (x.is_none()) return {};
  if (nb::isinstance<Tensor>(x)) return *nb::inst_ptr<Tensor>(x);
  if (PyBool_Check(x.ptr())) return x.ptr() == Py_True;
  if (PyLong_Check(x.ptr())) return nb::cast<int64_t>(x);
  if (PyFloat_Check(x.ptr())) return nb::cast<double>(x);
  if (PyUnicode_Check(x.ptr())) return nb::cast<std::string>(x);
  if (PyTuple_Check(x.ptr()) || PyList_Check(x.ptr())) {
    aten::List out;
    for (nb::handle item : nb::borrow<nb::sequence>(x)) out.push_back(to_value(item));
    return out;
  }
  if (nb::isinstance<Variable>(x)) return *nb::inst_ptr<Variable>(x);
  if (nb::isinstance<Extent>(x)) return *nb::inst_ptr<Extent>(x);
  DTypeArg dtype;
  if (to_dtype(x, dtype)) return dtype.get();
  if (std::optional<aten::Value> v = value_of_torch(x)) return *v;
  throw nb::type_error((std::string("aten: no argument is of ") + nb::repr(x.type()).c_str()).c_str());
}

nb::object to_object(const aten::Value& v) {
  return std::visit(
      [](const auto& held) -> nb::object {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return nb::none();
        else if constexpr (std::is_same_v<T, aten::List>) {
          nb::list out;
          for (const aten::Value& item : held) out.append(to_object(item));
          return out;
        } else if constexpr (std::is_same_v<T, DType>)
          return to_python(held);
        else if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
                           std::is_same_v<T, double> || std::is_same_v<T, std::string>)
          return nb::cast(held);
        else
          throw nb::type_error("aten: an operator gave what Python has no form for");
      },
      v.held());
}

nb::list call(std::string_view op, const nb::dict& arguments, const std::string& device) {
  aten::Arguments given;
  for (const auto& [name, value] : arguments) given.push_back({nb::cast<std::string>(name), to_value(value)});
  const std::vector<aten::Value> results = [&] {
    const Interruptible interruptible;
    const Released released;
    return aten::call(op, given, {.device = device});
  }();
  nb::list out;
  for (const aten::Value& v : results) out.append(to_object(v));
  return out;
}

}  // namespace

void bind_aten(nb::module_& m) {
  m.def("aten_call", &call, "op"_a, "arguments"_a, "device"_a = "",
        "The results of an operator such as aten.add.Tensor, a list; arguments by the names of its schema.");
  m.def("aten_supports", &aten::supports, "op"_a);
  m.def("aten_operators", [] {
    nb::list out;
    for (std::string_view name : aten::operators()) out.append(nb::cast(std::string(name)));
    return out;
  });
}

}  // namespace tinygrad::python
