#include "frontend/torch_export/schema.h"

#include <algorithm>
#include <set>

namespace tinygrad::torch_export {

namespace {

struct ScalarCode {
  int64_t code;
  std::string_view name;
  std::optional<DType> dtype;
};
constexpr ScalarCode scalar_codes[] = {
    {1, "uint8", DType::uint8},
    {2, "int8", DType::int8},
    {3, "int16", DType::int16},
    {4, "int32", DType::int32},
    {5, "int64", DType::int64},
    {6, "float16", DType::float16},
    {7, "float32", DType::float32},
    {8, "float64", DType::float64},
    {9, "complex32", {}},
    {10, "complex64", {}},
    {11, "complex128", {}},
    {12, "bool", DType::bool_},
    {13, "bfloat16", DType::bfloat16},
    {28, "uint16", DType::uint16},
    {29, "float8_e4m3fn", DType::fp8e4m3},
    {30, "float8_e5m2", DType::fp8e5m2},
    {31, "float8_e4m3fnuz", DType::fp8e4m3fnuz},
    {32, "float8_e5m2fnuz", DType::fp8e5m2fnuz},
    {33, "float8_e8m0fnu", {}},
    {34, "uint32", DType::uint32},
    {35, "uint64", DType::uint64},
};
const ScalarCode& scalar_code(const Field& field) {
  const int64_t code = field.integer();
  const auto* found = std::ranges::find(scalar_codes, code, &ScalarCode::code);
  if (found == std::end(scalar_codes)) field.fail(fmt::format("{} is no dtype", code));
  return *found;
}

Expression parse_size(const Field& field) {
  const auto [kind, value] = field.alternative();
  if (kind == "as_int") return Expression(value.integer());
  if (kind != "as_expr") field.fail(fmt::format("the alternative '{}' is not known", kind));
  const Field text = value.at("expr_str");
  return Expression::parse(text.text(), text.path());
}

std::string parse_device(const Field& field) {
  const std::string type = field.at("type").text();
  return field.has("index") ? fmt::format("{}:{}", type, field.at("index").integer()) : type;
}

Graph parse_graph(const Field& field);

Argument named(const Field& field) { return {Name{field.at("name").text()}}; }
template <class F>
Argument list_of(const Field& field, F f) {
  std::vector<Argument> out;
  for (const Field& f_i : field.items()) out.push_back(f(f_i));
  return {std::move(out)};
}
/// {"as_name": ...} or a constant.
Argument parse_number(const Field& field) {
  const auto [kind, value] = field.alternative();
  if (kind == "as_name") return {Name{value.text()}};
  if (kind == "as_int") return {aten::Value(value.integer())};
  if (kind == "as_float") return {aten::Value(value.number())};
  if (kind == "as_bool") return {aten::Value(value.boolean())};
  field.fail(fmt::format("the alternative '{}' is not known", kind));
}
Argument parse_optional_tensor(const Field& field) {
  const auto [kind, value] = field.alternative();
  if (kind == "as_none") return {};
  if (kind == "as_tensor") return named(value);
  field.fail(fmt::format("the alternative '{}' is not known", kind));
}

Argument parse_argument(const Field& field) {
  const auto [kind, value] = field.alternative();
  const auto constant = [](auto v) { return Argument{aten::Value(std::move(v))}; };
  if (kind == "as_none") return {};
  if (kind == "as_tensor") return named(value);
  if (kind == "as_tensors") return list_of(value, named);
  if (kind == "as_int") return constant(value.integer());
  if (kind == "as_ints") return list_of(value, [&](const Field& f) { return constant(f.integer()); });
  if (kind == "as_float") return constant(value.number());
  if (kind == "as_floats") return list_of(value, [&](const Field& f) { return constant(f.number()); });
  if (kind == "as_bool") return constant(value.boolean());
  if (kind == "as_bools") return list_of(value, [&](const Field& f) { return constant(f.boolean()); });
  if (kind == "as_string") return constant(value.text());
  if (kind == "as_strings") return list_of(value, [&](const Field& f) { return constant(f.text()); });
  if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") return parse_number(value);
  if (kind == "as_sym_ints" || kind == "as_sym_bools" || kind == "as_sym_floats") return list_of(value, parse_number);
  if (kind == "as_scalar_type") {
    const ScalarCode& code = scalar_code(value);
    return code.dtype ? constant(*code.dtype) : Argument{Foreign{fmt::format("the dtype {}", code.name)}};
  }
  if (kind == "as_memory_format") {
    constexpr aten::MemoryFormat formats[] = {aten::MemoryFormat::preserve, aten::MemoryFormat::contiguous,
                                              aten::MemoryFormat::channels_last, aten::MemoryFormat::channels_last_3d,
                                              aten::MemoryFormat::preserve};
    const int64_t code = value.integer();
    if (code < 1 || code > 4) value.fail(fmt::format("{} is no memory format", code));
    return constant(formats[code]);
  }
  if (kind == "as_layout") {
    constexpr int64_t strided = 7;
    return value.integer() == strided ? constant(aten::Layout::strided) : Argument{Foreign{"a layout that is not strided"}};
  }
  if (kind == "as_device") return constant(aten::Device{parse_device(value)});
  if (kind == "as_optional_tensor") return parse_optional_tensor(value);
  if (kind == "as_optional_tensors") return list_of(value, parse_optional_tensor);
  if (kind == "as_graph") return {std::make_shared<const Graph>(parse_graph(value.at("graph")))};
  if (kind == "as_custom_obj") return {Foreign{fmt::format("an object of the class {}", value.at("class_fqn").text())}};
  if (kind == "as_operator") return {Foreign{fmt::format("the operator {} as an argument", value.text())}};
  if (kind == "as_complex") return {Foreign{"a complex number"}};
  if (kind == "as_nested_tensors" || kind == "as_int_lists" || kind == "as_string_to_argument" || kind == "as_float_lists")
    return {Foreign{fmt::format("an argument of the kind {}", kind)}};
  field.fail(fmt::format("the kind of argument '{}' is not known", kind));
}
std::vector<Argument> parse_arguments(const Field& field) {
  std::vector<Argument> out;
  for (const Field& f : field.items()) out.push_back(parse_argument(f));
  return out;
}

Node parse_node(const Field& field) {
  field.allow({"target", "inputs", "outputs", "metadata", "is_hop_single_tensor_return", "name"});
  Node out{.target = field.at("target").text(), .path = field.path()};
  if (constexpr std::string_view prefix = "torch.ops."; out.target.starts_with(prefix)) out.target.erase(0, prefix.size());
  for (const Field& f : field.at("inputs").items()) {
    f.allow({"name", "arg", "kind"});
    out.inputs.emplace_back(f.at("name").text(), parse_argument(f.at("arg")));
  }
  out.outputs = parse_arguments(field.at("outputs"));
  return out;
}

Graph parse_graph(const Field& field) {
  field.allow({"inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values", "is_single_tensor_return",
               "custom_obj_values", "sym_float_values"});
  Graph out;
  out.inputs = parse_arguments(field.at("inputs"));
  out.outputs = parse_arguments(field.at("outputs"));
  for (const auto& [name, meta] : field.at("tensor_values").entries()) out.tensors.emplace(name, parse_tensor_meta(meta));
  const std::pair<std::string, DType> numbers[] = {
      {"sym_int_values", DType::int64}, {"sym_float_values", DType::float64}, {"sym_bool_values", DType::bool_}};
  for (const auto& [kind, dtype] : numbers)
    if (field.has(kind))
      for (const auto& [name, value] : field.at(kind).entries()) out.numbers.emplace(name, dtype);
  for (const Field& f : field.at("nodes").items()) out.nodes.push_back(parse_node(f));
  return out;
}

/// Every name that is used is that of an input or of an earlier node, so that there are no cycles.
void check_names(const Graph& graph, const std::string& path) {
  std::set<std::string_view> known;
  const auto define = [&](const Argument& a, const std::string& where, auto&& self) -> void {
    if (a.name() && !known.insert(a.name()->text).second)
      throw FormatError(fmt::format("{}: '{}' is defined twice", where, a.name()->text));
    if (a.list())
      for (const Argument& item : *a.list()) self(item, where, self);
  };
  const auto use = [&](const Argument& a, const std::string& where, auto&& self) -> void {
    if (a.name() && !known.contains(a.name()->text)) throw FormatError(fmt::format("{}: nothing before gives '{}'", where, a.name()->text));
    if (a.list())
      for (const Argument& item : *a.list()) self(item, where, self);
    if (a.graph()) check_names(**a.graph(), where);
  };
  for (const Argument& a : graph.inputs) define(a, path + ".inputs", define);
  for (const Node& node : graph.nodes) {
    for (const auto& [name, a] : node.inputs) use(a, node.path, use);
    for (const Argument& a : node.outputs) define(a, node.path, define);
  }
  for (const Argument& a : graph.outputs) use(a, path + ".outputs", use);
}

InputSpec parse_input_spec(const Field& field) {
  using Kind = InputSpec::Kind;
  const auto [kind, value] = field.alternative();
  if (kind == "user_input") return {Kind::user, parse_argument(value.at("arg")), {}};
  if (kind == "parameter") return {Kind::parameter, named(value.at("arg")), value.at("parameter_name").text()};
  if (kind == "buffer") return {Kind::buffer, named(value.at("arg")), value.at("buffer_name").text()};
  if (kind == "tensor_constant") return {Kind::constant_tensor, named(value.at("arg")), value.at("tensor_constant_name").text()};
  if (kind == "constant_input") {
    const auto [type, constant] = value.at("value").alternative();
    Argument held;
    if (type == "as_int") held = {aten::Value(constant.integer())};
    if (type == "as_float") held = {aten::Value(constant.number())};
    if (type == "as_bool") held = {aten::Value(constant.boolean())};
    if (type == "as_string") held = {aten::Value(constant.text())};
    return {Kind::constant, held, value.at("name").text()};
  }
  if (kind == "token") value.fail("programs with effect tokens are not supported");
  if (kind == "custom_obj")
    value.fail(fmt::format("objects of custom classes are not supported: '{}'", value.at("custom_obj_name").text()));
  field.fail(fmt::format("the kind of input '{}' is not known", kind));
}
OutputSpec parse_output_spec(const Field& field) {
  using Kind = OutputSpec::Kind;
  const auto [kind, value] = field.alternative();
  if (kind == "user_output") return {Kind::user, parse_argument(value.at("arg")), {}};
  if (kind == "loss_output") return {Kind::loss, named(value.at("arg")), {}};
  if (kind == "buffer_mutation") return {Kind::buffer_mutation, named(value.at("arg")), value.at("buffer_name").text()};
  if (kind == "parameter_mutation") return {Kind::parameter_mutation, named(value.at("arg")), value.at("parameter_name").text()};
  if (kind == "user_input_mutation") return {Kind::input_mutation, named(value.at("arg")), value.at("user_input_name").text()};
  if (kind == "token") value.fail("programs with effect tokens are not supported");
  if (kind == "gradient_to_parameter" || kind == "gradient_to_user_input")
    value.fail("programs that give gradients as such are not supported; export the gradients as outputs");
  field.fail(fmt::format("the kind of output '{}' is not known", kind));
}

/// The paths of the leaves of a tree of containers, in their order: "d.b", "[0]".
void leaf_paths(const Field& spec, const std::string& path, std::vector<std::string>& out) {
  if (spec.at("type").is_null()) {
    out.push_back(path);
    return;
  }
  const std::vector<Field> children = spec.at("children_spec").items();
  std::vector<std::string> keys;
  if (spec.at("context").is_text()) {
    const std::string text = spec.at("context").text();
    if (const Json context = Json::parse(text, nullptr, false); context.is_array() && context.size() == children.size())
      for (const Json& key : context) keys.push_back(key.is_string() ? key.get<std::string>() : key.dump());
  }
  for (size_t i = 0; i < children.size(); ++i)
    leaf_paths(children[i], keys.empty() ? fmt::format("{}[{}]", path, i) : path.empty() ? keys[i] : path + '.' + keys[i], out);
}
std::vector<std::string> tree_paths(const Field& text, const std::vector<std::string>& argument_names) {
  const Json document = parse_json(text.text(), text.path());
  const Field root(document, text.path());
  const std::vector<Field> parts = root.items();
  constexpr int64_t version = 1;
  if (parts.size() != 2 || parts[0].integer() != version) root.fail("a tree of another version");
  std::vector<std::string> out;
  if (argument_names.empty()) {
    leaf_paths(parts[1], "", out);
    return out;
  }
  // Positional arguments, then those by name.
  const std::vector<Field> both = parts[1].at("children_spec").items();
  if (both.size() != 2) root.fail("arguments are not positional ones and those by name");
  const std::vector<Field> positional = both[0].at("children_spec").items();
  for (size_t i = 0; i < positional.size(); ++i)
    leaf_paths(positional[i], i < argument_names.size() ? argument_names[i] : fmt::format("[{}]", i), out);
  leaf_paths(both[1], "", out);
  return out;
}

void parse_tree(const Field& graph_module, ExportedProgram& out) {
  for (const Field& entry : graph_module.at("module_call_graph").items()) {
    if (!entry.at("fqn").text().empty() || !entry.has("signature")) continue;
    const Field signature = entry.at("signature");
    std::vector<std::string> names;
    if (signature.has("forward_arg_names"))
      for (const Field& name : signature.at("forward_arg_names").items()) names.push_back(name.text());
    out.input_paths = tree_paths(signature.at("in_spec"), names);
    out.output_paths = tree_paths(signature.at("out_spec"), {});
  }
  const auto count = [](const auto& specs, auto is) { return size_t(std::ranges::count_if(specs, is)); };
  const size_t inputs =
      count(out.inputs, [](const InputSpec& s) { return s.kind == InputSpec::Kind::user || s.kind == InputSpec::Kind::constant; });
  const size_t outputs =
      count(out.outputs, [](const OutputSpec& s) { return s.kind == OutputSpec::Kind::user || s.kind == OutputSpec::Kind::loss; });
  if (out.input_paths.size() != inputs || out.output_paths.size() != outputs)
    graph_module.at("module_call_graph")
        .fail(fmt::format("trees of {} inputs and {} outputs, where the signature has {} and {}", out.input_paths.size(),
                          out.output_paths.size(), inputs, outputs));
}

}  // namespace

bool TensorMeta::is_plain() const {
  if (!offset.is_number() || offset.number() != 0 || strides.size() != sizes.size()) return false;
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i].is_number() && sizes[i].number() == 1) continue;
    if (!strides[i].is_number() || strides[i].number() != expected) return false;
    if (!sizes[i].is_number()) {
      // The strides before it are the symbol's multiples: they are compared by their texts.
      for (size_t j = i; j-- > 0;)
        if (strides[j].is_number()) return false;
      return true;
    }
    if (__builtin_mul_overflow(expected, sizes[i].number(), &expected)) return false;
  }
  return true;
}

TensorMeta parse_tensor_meta(const Field& field) {
  field.allow({"dtype", "sizes", "requires_grad", "device", "strides", "storage_offset", "layout"});
  constexpr int64_t strided = 7;
  const ScalarCode& code = scalar_code(field.at("dtype"));
  TensorMeta out{.type = std::string(code.name), .dtype = code.dtype};
  for (const Field& f : field.at("sizes").items()) out.sizes.push_back(parse_size(f));
  for (const Field& f : field.at("strides").items()) out.strides.push_back(parse_size(f));
  if (out.strides.size() != out.sizes.size()) field.fail(fmt::format("{} strides for {} sizes", out.strides.size(), out.sizes.size()));
  for (const Expression& e : out.sizes)
    if (e.is_number() && e.number() < 0) field.at("sizes").fail("a negative size");
  out.offset = parse_size(field.at("storage_offset"));
  out.device = parse_device(field.at("device"));
  out.is_strided = field.at("layout").integer() == strided;
  return out;
}

ExportedProgram parse_program(const Field& root) {
  constexpr int64_t known_major = 8;
  const Field version = root.at("schema_version");
  if (version.at("major").integer() != known_major)
    version.fail(
        fmt::format("version {}, of which {} is read; export the program by another PyTorch", version.at("major").integer(), known_major));
  root.allow({"graph_module", "opset_version", "range_constraints", "schema_version", "verifiers", "torch_version", "guards_code"});
  ExportedProgram out;
  out.schema_version = fmt::format("{}.{}", known_major, version.at("minor").integer());
  if (root.has("torch_version")) out.torch_version = root.at("torch_version").text();
  const Field module = root.at("graph_module");
  module.allow({"graph", "signature", "module_call_graph", "metadata", "treespec_namedtuple_fields"});
  out.graph = parse_graph(module.at("graph"));
  const Field signature = module.at("signature");
  for (const Field& f : signature.at("input_specs").items()) out.inputs.push_back(parse_input_spec(f));
  for (const Field& f : signature.at("output_specs").items()) out.outputs.push_back(parse_output_spec(f));
  for (const auto& [name, range] : root.at("range_constraints").entries()) {
    Range r;
    if (range.has("min_val")) r.min = range.at("min_val").integer();
    if (range.has("max_val")) r.max = range.at("max_val").integer();
    out.ranges.emplace(name, r);
  }
  const Field graph = module.at("graph");
  check_names(out.graph, graph.path());
  if (out.graph.inputs.size() != out.inputs.size() || out.graph.outputs.size() != out.outputs.size())
    signature.fail(fmt::format("{} inputs and {} outputs, where the graph has {} and {}", out.inputs.size(), out.outputs.size(),
                               out.graph.inputs.size(), out.graph.outputs.size()));
  for (size_t i = 0; i < out.inputs.size(); ++i) {
    const Name *in_graph = out.graph.inputs[i].name(), *in_spec = out.inputs[i].argument.name();
    if (in_spec && (!in_graph || in_graph->text != in_spec->text))
      signature.fail(fmt::format("input {} is '{}', which the graph's is not", i, in_spec->text));
  }
  parse_tree(module, out);
  return out;
}

}  // namespace tinygrad::torch_export
