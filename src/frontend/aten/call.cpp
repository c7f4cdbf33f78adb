#include "frontend/aten/call.h"

#include <fmt/core.h>

#include <limits>

#include <algorithm>

#include <tinygrad/device.h>

namespace tinygrad::aten {

namespace {

/// "Tensor?[]" is a list of "Tensor?"; "int[2]" may also be one int.
struct Type {
  std::string_view base;
  bool optional = false, list = false, sized = false;

  explicit Type(std::string_view text) : base(text) {
    if (base.ends_with('?')) {
      optional = true;
      base.remove_suffix(1);
    }
    if (const size_t bracket = base.find('['); bracket != std::string_view::npos) {
      list = true;
      sized = base[bracket + 1] != ']';
      base = base.substr(0, bracket);
    }
  }
};

bool is_whole(const Value& v) { return v.get_if<int64_t>() || v.get_if<Extent>() || v.get_if<bool>(); }

bool fits_one(const Value& v, std::string_view base) {
  if (base.ends_with('?')) return v.is_none() || fits_one(v, base.substr(0, base.size() - 1));
  if (base == "Tensor") return v.get_if<Tensor>() || v.is_number();  // Python gives numbers for tensors, too
  if (base == "int" || base == "SymInt") return is_whole(v);
  if (base == "float" || base == "Scalar" || base == "SymFloat") return v.is_number();
  if (base == "bool" || base == "SymBool") return v.get_if<bool>() || v.get_if<int64_t>();
  if (base == "str") return v.get_if<std::string>();
  if (base == "ScalarType") return v.get_if<DType>();
  if (base == "Layout") return v.get_if<Layout>();
  if (base == "Device") return v.get_if<Device>();
  if (base == "MemoryFormat") return v.get_if<MemoryFormat>();
  if (base == "Generator") return false;
  throw InternalError(fmt::format("aten: a schema has the type '{}'", base));
}

bool fits(const Value& v, const Type& type) {
  if (v.is_none()) return type.optional;
  if (!type.list) return fits_one(v, type.base);
  if (const List* list = v.get_if<List>()) return std::ranges::all_of(*list, [&](const Value& e) { return fits_one(e, type.base); });
  return type.sized && fits_one(v, type.base);
}

}  // namespace

Call::Call(const Schema& schema, const Arguments& arguments, const CallOptions& options)
    : schema_(schema), options_(options), values_(schema.parameters.size()) {
  std::vector<bool> given(values_.size());
  for (const Argument& a : arguments) {
    const auto found = std::ranges::find(schema.parameters, a.name, &Parameter::name);
    if (found == schema.parameters.end()) fail(fmt::format("no parameter is named '{}'", a.name));
    const auto place = size_t(found - schema.parameters.begin());
    if (given[place]) fail(fmt::format("'{}' is given twice", a.name));
    if (!fits(a.value, Type(found->type)))
      throw DTypeError(fmt::format("{}: '{}' is {}, expects {}", schema.name, a.name, a.value.kind(), found->type));
    values_[place] = a.value;
    given[place] = true;
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    if (given[i]) continue;
    if (schema.parameters[i].required) fail(fmt::format("'{}' is missing", schema.parameters[i].name));
    values_[i] = schema.parameters[i].default_value;
  }
}

const Value& Call::operator[](std::string_view parameter) const {
  const auto found = std::ranges::find(schema_.parameters, parameter, &Parameter::name);
  if (found == schema_.parameters.end()) throw InternalError(fmt::format("{}: the schema has no '{}'", schema_.name, parameter));
  return values_[size_t(found - schema_.parameters.begin())];
}

bool Call::declares(std::string_view parameter) const {
  return std::ranges::find(schema_.parameters, parameter, &Parameter::name) != schema_.parameters.end();
}

Tensor Call::tensor(std::string_view parameter) const {
  const Value& v = (*this)[parameter];
  if (v.is_none()) return {};
  if (const Tensor* t = v.get_if<Tensor>()) return *t;
  throw DTypeError(fmt::format("{}: '{}' is {}, expects a tensor", schema_.name, parameter, v.kind()));
}

std::vector<Tensor> Call::tensors(std::string_view parameter) const {
  std::vector<Tensor> out;
  if (!has(parameter)) return out;
  for (const Value& v : (*this)[parameter].list()) out.push_back(v.is_none() ? Tensor() : v.tensor());
  return out;
}

Sizes Call::integers(std::string_view parameter) const {
  const Value& v = (*this)[parameter];
  Sizes out;
  if (v.is_none()) return out;
  if (v.is_number()) return {v.integer()};
  for (const Value& e : v.list()) out.push_back(e.integer());
  return out;
}

Sizes Call::integers(std::string_view parameter, size_t count, const Sizes& empty_is) const {
  Sizes out = integers(parameter);
  if (out.empty() && !empty_is.empty()) return empty_is;
  if (out.size() == 1) out.resize(count, out[0]);
  if (out.size() != count) fail(fmt::format("'{}' has {} numbers, expects {}", parameter, out.size(), count));
  return out;
}

std::vector<double> Call::numbers(std::string_view parameter) const {
  std::vector<double> out;
  if (!has(parameter)) return out;
  if ((*this)[parameter].is_number()) return {number(parameter)};
  for (const Value& e : (*this)[parameter].list()) out.push_back(e.number());
  return out;
}

Extents Call::extents(std::string_view parameter) const {
  const Value& v = (*this)[parameter];
  Extents out;
  if (v.is_none()) return out;
  if (v.is_number()) {
    out.push_back(v.extent());
    return out;
  }
  for (const Value& e : v.list()) out.push_back(e.extent());
  return out;
}

std::optional<DType> Call::dtype(std::string_view parameter) const {
  return declares(parameter) && has(parameter) ? std::optional((*this)[parameter].dtype()) : std::nullopt;
}

int64_t Call::count_of(int64_t number) const {
  constexpr int64_t most = int64_t{1} << 26;
  if (number < 0 || number > most) fail(fmt::format("{} parts", number));
  return number;
}
int Call::offset(std::string_view parameter) const {
  constexpr int64_t most = std::numeric_limits<int>::max();
  return int(std::clamp(integer(parameter), -most, most));
}

int Call::axis_of(int64_t axis, int rank) const {
  const int64_t axes = std::max(rank, 1);
  if (axis < -axes || axis >= axes) throw IndexError(fmt::format("{}: axis {} of a tensor with {} axes", name(), axis, rank));
  return int(axis < 0 ? axis + axes : axis);
}

std::vector<int> Call::axes(std::string_view parameter, int rank, bool empty_is_all) const {
  std::vector<int> out;
  for (int64_t a : integers(parameter)) {
    const int axis = axis_of(a, rank);
    if (std::ranges::find(out, axis) != out.end()) fail(fmt::format("axis {} is named twice", axis));
    out.push_back(axis);
  }
  if (rank == 0) return {};
  if (out.empty() && empty_is_all)
    for (int i = 0; i < rank; ++i) out.push_back(i);
  return out;
}

std::string Call::device(const Tensor& like) const {
  const auto given = [&](std::string_view parameter) { return declares(parameter) && has(parameter); };
  if (given("layout") && *(*this)["layout"].get_if<Layout>() != Layout::strided) fail("only strided tensors are supported");
  if (!options_.device.empty()) return options_.device;
  if (!given("device")) return like.defined() ? like.device() : std::string(default_device());
  const std::string& name = (*this)["device"].get_if<Device>()->name;
  const std::string type = name.substr(0, name.find(':'));
  const std::string index = name.size() > type.size() ? name.substr(type.size() + 1) : "0";
  const std::string suffix = index == "0" ? "" : ":" + index;
  if (type == "cpu") return "CPU";
  if (type == "cuda") return "CUDA" + suffix;
  if (type == "mps") return "METAL" + suffix;
  fail(fmt::format("the device '{}' is not supported", name));
}

void Call::fail(std::string_view why) const { throw ValueError(fmt::format("{}: {}", schema_.name, why)); }

}  // namespace tinygrad::aten
