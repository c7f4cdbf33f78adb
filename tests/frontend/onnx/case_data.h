#pragma once
// The data of a backend test case of the package onnx: inputs, outputs, and how near they must be.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <tinygrad/errors.h>
#include <tinygrad/onnx.h>

#include "frontend/onnx/proto.h"
#include "frontend/onnx/tensor_data.h"
#include "frontend/onnx/value.h"

namespace tinygrad::onnx::test {

namespace fs = std::filesystem;

inline Value value_of(Files& files, const proto::Data& d) {
  using Kind = proto::Data::Kind;
  switch (d.kind) {
    case Kind::tensor: return read_value(files, d.tensors.at(0));
    case Kind::sequence: {
      std::vector<Value> items;
      for (const proto::TensorProto& t : d.tensors) items.push_back(read_value(files, t));
      for (const proto::Data& item : d.items) items.push_back(value_of(files, item));
      return Value(std::move(items));
    }
    case Kind::map: {
      const Value values = value_of(files, d.items.at(0));
      Map m{.integers = d.keys, .texts = d.text_keys, .values = {}};
      std::vector<double> numbers;
      for (const Value& v : values.sequence()) numbers.push_back(host_of(v)->numbers().at(0));
      m.values = host_value(HostArray::of(values.sequence().at(0).element_type(), {int64_t(numbers.size())}, numbers));
      return Value(std::move(m));
    }
    default: return d.items.empty() ? Value() : value_of(files, d.items.at(0));
  }
}

/// The value in a .pb file, of the type that the model declares.
inline Value read_case_value(const fs::path& path, const std::string& type) {
  static std::vector<std::shared_ptr<Files>> kept;  // values may lie in the files' memory
  kept.push_back(std::make_shared<Files>(Files::of(frontend::FileBytes::map(path.string()))));
  Files& files = *kept.back();
  const std::string_view bytes(files.source.begin, files.file.bytes.size());
  if (type.starts_with("sequence")) return value_of(files, proto::read_data(files.source, bytes, proto::TypeInfo::Kind::sequence));
  if (type.starts_with("map")) return value_of(files, proto::read_data(files.source, bytes, proto::TypeInfo::Kind::map));
  if (type.starts_with("optional")) {
    if (bytes.empty()) return {};
    proto::Data d = proto::read_data(files.source, bytes, proto::TypeInfo::Kind::optional);
    if (d.kind == proto::Data::Kind::tensor && d.tensors.empty()) return {};
    if (d.kind == proto::Data::Kind::sequence && !d.items.empty()) return value_of(files, d.items[0]);
    return value_of(files, d);
  }
  return read_value(files, proto::read_tensor(files.source, bytes));
}

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};

/// What differs; empty where nothing does.
inline std::string difference(const Value& got, const Value& expected, Tolerance tolerance) {
  using Kind = Value::Kind;
  if (got.kind() != expected.kind()) return fmt::format("got {}, expected {}", got.to_string(), expected.to_string());
  if (got.kind() == Kind::absent) return "";
  if (got.kind() == Kind::sequence) {
    if (got.sequence().size() != expected.sequence().size())
      return fmt::format("got {}, expected {}", got.to_string(), expected.to_string());
    for (size_t i = 0; i < got.sequence().size(); ++i)
      if (const std::string d = difference(got.sequence()[i], expected.sequence()[i], tolerance); !d.empty())
        return fmt::format("item {}: {}", i, d);
    return "";
  }
  if (got.kind() == Kind::map)
    return got.map().integers == expected.map().integers && got.map().texts == expected.map().texts
               ? difference(got.map().values, expected.map().values, tolerance)
               : "keys differ";
  if (got.element_type() != expected.element_type() || got.shape() != expected.shape())
    return fmt::format("got {}, expected {}", got.to_string(), expected.to_string());
  if (got.kind() == Kind::strings) {
    for (size_t i = 0; i < got.strings().values.size(); ++i)
      if (got.strings().values[i] != expected.strings().values[i])
        return fmt::format("text {} is '{}', expected '{}'", i, got.strings().values[i], expected.strings().values[i]);
    return "";
  }
  if (!is_float_type(got.element_type())) {
    const std::vector<int64_t> a = got.tensor().tolist<int64_t>(), b = expected.tensor().tolist<int64_t>();
    size_t wrong = 0, first = 0;
    for (size_t i = a.size(); i-- > 0;)
      if (a[i] != b[i]) ++wrong, first = i;
    return wrong ? fmt::format("{} of {} integers differ, first at {}: got {}, expected {}", wrong, a.size(), first, a[first], b[first])
                 : "";
  }
  const std::vector<double> a = decode(got).tolist<double>(), b = decode(expected).tolist<double>();
  if (got.element_type() == ElementType::bfloat16) tolerance.relative = std::max(tolerance.relative, 0x1p-6);
  size_t wrong = 0, first = 0;
  for (size_t i = a.size(); i-- > 0;) {
    const bool is_same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                         std::fabs(a[i] - b[i]) <= tolerance.absolute + tolerance.relative * std::fabs(b[i]);
    if (!is_same || (std::isinf(b[i]) && a[i] != b[i])) ++wrong, first = i;
  }
  return wrong ? fmt::format("{} of {} numbers differ, first at {}: got {}, expected {}", wrong, a.size(), first, a[first], b[first]) : "";
}

/// Runs all data sets of a case; why it fails, or nothing.
inline std::string run_case(const fs::path& folder, bool captures) {
  Tolerance tolerance;
  if (std::ifstream file(folder / "tolerance"); file) file >> tolerance.relative >> tolerance.absolute;
  try {
    const Model model = load((folder / "model.onnx").string());
    // Inputs of a data set are those of the graph in their order, initializers among them in old files.
    const frontend::FileBytes file = frontend::FileBytes::map((folder / "model.onnx").string());
    const proto::Source source{reinterpret_cast<const char*>(file.bytes.data()), file.name};
    const proto::Model proto = proto::read_model(source, {source.begin, file.bytes.size()});
    for (int set = 0; fs::exists(folder / fmt::format("test_data_set_{}", set)); ++set) {
      const fs::path data = folder / fmt::format("test_data_set_{}", set);
      Values inputs;
      for (size_t i = 0; i < proto.graph.inputs.size(); ++i) {
        const fs::path path = data / fmt::format("input_{}.pb", i);
        if (!fs::exists(path)) break;
        inputs[proto.graph.inputs[i].name] = read_case_value(path, proto.graph.inputs[i].type.to_string());
      }
      const int calls = captures ? 3 : 1;
      for (int call = 0; call < calls; ++call) {
        const Values outputs = captures ? model.run(inputs) : model(inputs);
        for (size_t i = 0; i < proto.graph.outputs.size(); ++i) {
          const std::string& name = proto.graph.outputs[i].name;
          const Value expected = read_case_value(data / fmt::format("output_{}.pb", i), proto.graph.outputs[i].type.to_string());
          if (const std::string d = difference(outputs.at(name), expected, tolerance); !d.empty())
            return fmt::format("output '{}': {}", name, d);
        }
      }
    }
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace tinygrad::onnx::test
