// ONNX models: values go over as tensors, texts as their sizes and a list, sequences as lists, maps as dicts, nothing as None.
#include <nanobind/stl/map.h>

#include <tinygrad/onnx.h>

#include "common.h"

namespace tinygrad::python {

namespace {

const onnx::ValueInfo& info_of(const onnx::Model& model, const std::string& name) {
  for (const onnx::ValueInfo& i : model.inputs())
    if (i.name == name) return i;
  throw ValueError("OnnxRunner: there is no input '" + name + "'");
}

/// `type` is that of the elements where the model declares one which lies in tensors like another: int4 in int8.
onnx::Value to_value(nb::handle x, onnx::ElementType type, const std::string& name) {
  using onnx::ElementType;
  if (x.is_none()) return {};
  if (nb::isinstance<Tensor>(x)) {
    const Tensor& t = *nb::inst_ptr<Tensor>(x);
    const bool lies_alike = type != ElementType::undefined && type != ElementType::string && onnx::dtype_of(type) == t.dtype();
    return lies_alike ? onnx::Value(t, type) : onnx::Value(t);
  }
  if (nb::isinstance<nb::list>(x)) {
    std::vector<onnx::Value> items;
    for (nb::handle item : nb::borrow<nb::list>(x)) items.push_back(to_value(item, type, name));
    return items;
  }
  if (nb::isinstance<nb::tuple>(x)) {
    const nb::tuple pair = nb::borrow<nb::tuple>(x);
    Ints shape;
    std::vector<std::string> texts;
    if (pair.size() == 2 && to_ints(pair[0], shape.values) && nb::try_cast(pair[1], texts)) {
      int64_t count = 1;
      for (int64_t n : shape.values) count *= n;
      if (count == int64_t(texts.size())) return onnx::Strings{shape.values, std::move(texts)};
    }
  }
  if (nb::isinstance<nb::dict>(x)) {
    onnx::Map m;
    std::vector<double> numbers;
    for (const auto& [key, value] : nb::borrow<nb::dict>(x)) {
      if (nb::isinstance<nb::str>(key))
        m.texts.push_back(nb::cast<std::string>(key));
      else
        m.integers.push_back(cast_to<int64_t>(key, "OnnxRunner: a key of the input '" + name + "'", "an integer or a string"));
      numbers.push_back(cast_to<double>(value, "OnnxRunner: a value of the input '" + name + "'", "a number"));
    }
    if (!m.texts.empty() && !m.integers.empty())
      throw nb::type_error(("OnnxRunner: the input '" + name + "' has keys of both kinds").c_str());
    const DType dtype = type == ElementType::undefined || type == ElementType::string ? DType::float32 : onnx::dtype_of(type);
    const int64_t count = int64_t(numbers.size());
    m.values = Tensor(numbers, {count}).cast(dtype);
    return m;
  }
  throw nb::type_error(("OnnxRunner: the input '" + name + "' is " + nb::repr(x.type()).c_str()).c_str());
}

nb::object object_of_value(const onnx::Value& v) {
  switch (v.kind()) {
    case onnx::Value::Kind::absent: return nb::none();
    case onnx::Value::Kind::tensor: return nb::cast(v.tensor());
    case onnx::Value::Kind::strings: return nb::make_tuple(to_tuple(v.strings().shape), nb::cast(v.strings().values));
    case onnx::Value::Kind::sequence: {
      nb::list out;
      for (const onnx::Value& item : v.sequence()) out.append(object_of_value(item));
      return out;
    }
    case onnx::Value::Kind::map: {
      const onnx::Map& m = v.map();
      std::vector<nb::object> values;
      if (m.values.kind() == onnx::Value::Kind::strings) {
        for (const std::string& s : m.values.strings().values) values.push_back(nb::cast(s));
      } else if (m.values.tensor().is_floating_point()) {
        for (double n : m.values.tensor().tolist<double>()) values.push_back(nb::cast(n));
      } else {
        for (int64_t n : m.values.tensor().tolist<int64_t>()) values.push_back(nb::cast(n));
      }
      nb::dict out;
      for (size_t i = 0; i < values.size(); ++i) out[m.texts.empty() ? nb::cast(m.integers[i]) : nb::cast(m.texts[i])] = values[i];
      return out;
    }
  }
  return nb::none();
}

template <class F>
nb::dict call(const onnx::Model& model, const nb::dict& given, F f) {
  onnx::Values inputs;
  for (const auto& [key, value] : given) {
    const auto name = cast_to<std::string>(key, "OnnxRunner: the name of an input", "a string");
    inputs[name] = to_value(value, info_of(model, name).element_type, name);
  }
  const onnx::Values outputs = [&] {
    const Interruptible interruptible;
    const Released released;
    return f(inputs);
  }();
  nb::dict out;
  for (const onnx::ValueInfo& o : model.outputs()) out[nb::cast(o.name)] = object_of_value(outputs.at(o.name));
  return out;
}

/// Name, element type, whole type, and sizes: integers, names, or None where nothing is said. None where there is no shape.
nb::list infos(const std::vector<onnx::ValueInfo>& all) {
  nb::list out;
  for (const onnx::ValueInfo& i : all) {
    nb::object shape = nb::none();
    if (i.has_shape) {
      nb::list sizes;
      for (const onnx::Dimension& d : i.shape)
        sizes.append(d.size >= 0 ? nb::cast(d.size) : d.name.empty() ? nb::none() : nb::cast(d.name));
      shape = nb::tuple(sizes);
    }
    const bool has_dtype = i.element_type != onnx::ElementType::undefined && i.element_type != onnx::ElementType::string;
    out.append(nb::make_tuple(i.name, has_dtype ? to_python(onnx::dtype_of(i.element_type)) : nb::none(), i.type, shape));
  }
  return out;
}

}  // namespace

void bind_onnx(nb::module_& m) {
  nb::class_<onnx::Model>(m, "OnnxModel", "A function of named values.")
      .def_prop_ro("inputs", [](const onnx::Model& x) { return infos(x.inputs()); })
      .def_prop_ro("outputs", [](const onnx::Model& x) { return infos(x.outputs()); })
      .def_prop_ro("metadata", &onnx::Model::metadata)
      .def_prop_ro("operators", &onnx::Model::operators)
      .def_prop_ro("parameters",
                   [](const onnx::Model& x) {
                     nb::dict out;
                     for (const auto& [name, t] : x.parameters()) out[nb::cast(name)] = t;
                     return out;
                   })
      .def(
          "__call__",
          [](const onnx::Model& x, const nb::dict& inputs) { return call(x, inputs, [&](const onnx::Values& v) { return x(v); }); },
          "inputs"_a, "The outputs as lazy tensors.")
      .def(
          "run",
          [](const onnx::Model& x, const nb::dict& inputs) { return call(x, inputs, [&](const onnx::Values& v) { return x.run(v); }); },
          "inputs"_a, "The same, realized: from the second call on, with inputs of these sizes or of others, kernels are replayed.");
  m.def(
      "onnx_load",
      [](nb::handle file, bool follow_links, bool each_size) {
        if (nb::isinstance<Tensor>(file)) {
          const Tensor bytes = *nb::inst_ptr<Tensor>(file);
          const Released released;
          return onnx::load(bytes, {.each_size = each_size});
        }
        const auto path = cast_to<std::string>(nb::hasattr(file, "__fspath__") ? nb::object(file.attr("__fspath__")()) : nb::borrow(file),
                                               "file", "a path");
        const Released released;
        return onnx::load(path, {.follow_links = follow_links, .each_size = each_size});
      },
      "file"_a, "follow_links"_a = false, "each_size"_a = false, "Reads a model from a path, or from a tensor of its bytes.");
}

}  // namespace tinygrad::python
