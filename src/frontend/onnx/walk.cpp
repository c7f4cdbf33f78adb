#include "frontend/onnx/walk.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <new>
#include <stdexcept>
#include <utility>

#include <tinygrad/errors.h>

#include "base/rethrow.h"
#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

constexpr int most_calls = 128;  // of functions and graphs within one another
// Nodes and iterations in all: functions that call one another twice double at each level, loops may be without end.
constexpr int64_t most_steps = 1 << 20;

/// The node with the attributes that its function was called with; those that it was not called with are left out.
proto::Node bound(const proto::Node& node, const std::vector<proto::Attribute>& given) {
  proto::Node out = node;
  out.attributes.clear();
  for (const proto::Attribute& a : node.attributes) {
    if (a.ref_name.empty()) {
      out.attributes.push_back(a);
      continue;
    }
    const auto found = std::find_if(given.begin(), given.end(), [&](const auto& g) { return g.name == a.ref_name; });
    if (found == given.end()) continue;
    out.attributes.push_back(*found);
    out.attributes.back().name = a.name;
  }
  return out;
}

bool refers(const proto::Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(), [](const auto& a) { return !a.ref_name.empty(); });
}

bool has_graphs(const proto::Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(), [](const auto& a) { return !a.graphs.empty(); });
}

/// Errors of what a node does name it. Lists of a file that are shorter than others of it end in one of the standard library's.
template <class F>
auto naming(const proto::Node& node, F f) -> decltype(f()) {
  try {
    return f();
  } catch (const Error&) {
    rethrow_as([&](std::string_view what) { return fmt::format("{}: {}", node.to_string(), what); });
  } catch (const std::bad_alloc&) {
    throw OutOfMemoryError(fmt::format("{}: the memory is used up", node.to_string()));
  } catch (const std::logic_error& e) {
    throw ValueError(fmt::format("{}: its inputs and attributes do not fit one another ({})", node.to_string(), e.what()));
  }
}

bool any_from_input(std::span<const Value> values) {
  return std::any_of(values.begin(), values.end(), [](const Value& v) { return is_from_input(v); });
}

/// What depends on chance is not known before a call.
bool is_random(std::string_view op) { return op.starts_with("Random") || op == "Bernoulli" || op == "Multinomial" || op == "Dropout"; }

}  // namespace

std::string function_key(std::string_view domain, std::string_view name, std::string_view overload) {
  return fmt::format("{}\n{}\n{}", domain, name, overload);
}

const Value& Program::constant(const proto::TensorProto& t) {
  const auto found = constants.find(t.message.data());
  return found != constants.end() ? found->second : constants.emplace(t.message.data(), read_value(files, t)).first->second;
}

const std::unordered_map<std::string, Value>& Program::initializers_of(const proto::Graph& g) {
  const auto found = initializers.find(&g);
  if (found != initializers.end()) return found->second;
  std::unordered_map<std::string, Value> values;
  for (const proto::TensorProto& t : g.initializers) values[t.name] = read_value(files, t);
  for (const proto::SparseTensorProto& t : g.sparse_initializers) values[t.values.name] = read_value(files, t);
  return initializers.emplace(&g, std::move(values)).first->second;
}

const Value* Scope::find(const std::string& name) const {
  for (const Scope* s = this; s; s = s->outer)
    if (const auto found = s->values.find(name); found != s->values.end()) return &found->second;
  return nullptr;
}

// Walk

Results Walk::run() {
  const proto::Graph& graph = program_.model.graph;
  const Frame frame{.opsets = &program_.model.opsets};
  const Scope outside{.frame = &frame};
  return run_graph(graph, inputs_, outside);
}

Results Walk::run_graph(const proto::Graph& graph, std::span<const Value> inputs, const Scope& outer) {
  Scope scope{.outer = &outer, .frame = outer.frame};
  for (const auto& [name, value] : program_.initializers_of(graph)) scope.values[name] = value;
  if (inputs.size() > graph.inputs.size())
    throw ValueError(fmt::format("the graph '{}' takes {} inputs, got {}", graph.name, graph.inputs.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].present() || !scope.values.contains(graph.inputs[i].name)) scope.values[graph.inputs[i].name] = inputs[i];
  run_nodes(graph.nodes, scope);
  Results out;
  for (const proto::NamedType& o : graph.outputs) {
    const Value* v = scope.find(o.name);
    if (!v) throw FormatError(fmt::format("{}: nothing gives the output '{}'", program_.files.source.name, o.name));
    saw_from_input_ |= is_from_input(*v);
    out.push_back(*v);
  }
  return out;
}

void Walk::run_nodes(const std::vector<proto::Node>& nodes, Scope& scope) {
  if (depth_ == most_calls) throw ValueError(fmt::format("functions and graphs call one another deeper than {}", most_calls));
  ++depth_;
  take_steps(1);
  for (const proto::Node& node : nodes) {
    take_steps(1);
    if (scope.frame->attributes && refers(node))
      run_node(bound(node, *scope.frame->attributes), scope);
    else
      run_node(node, scope);
  }
  --depth_;
}

void Walk::take_steps(int64_t count) {
  if (count > most_steps - steps_) throw ValueError(fmt::format("more than {} nodes and iterations are run", most_steps));
  steps_ += count;
}

void Walk::run_node(const proto::Node& node, Scope& scope) {
  std::vector<Value> inputs;
  for (const std::string& name : node.inputs) {
    const Value* v = name.empty() ? nullptr : scope.find(name);
    if (!v && !name.empty())
      throw FormatError(fmt::format("{}: {} uses '{}', which nothing before it gives", program_.files.source.name, node.to_string(), name));
    inputs.push_back(v ? *v : Value());
  }
  bool from_input = any_from_input(inputs) || is_random(node.op_type);
  // Graphs may take values from around them.
  const bool saw_before = std::exchange(saw_from_input_, false);
  Results out = naming(node, [&]() -> Results {
    const auto f = program_.functions.find(function_key(node.domain, node.op_type, node.overload));
    if (f != program_.functions.end()) return run_function(*f->second, node, std::move(inputs));
    const auto opset = scope.frame->opsets->find(node.domain);
    const int64_t version = opset == scope.frame->opsets->end() ? newest_version(node.domain) : opset->second;
    const OperatorRow* row = find_operator(node.domain, node.op_type, version);
    if (!row) throw ValueError(fmt::format("the operator is not supported in version {} of {}", version, node.domain));
    Call call(*this, scope, node, version, std::move(inputs));
    if (auto folded = fold(call)) return std::move(*folded);
    if (for_all_sizes_)
      if (auto sized = with_sizes(call)) return std::move(*sized);
    return row->run(call);
  });
  from_input |= has_graphs(node) && saw_from_input_;
  saw_from_input_ |= saw_before || from_input;
  for (size_t i = 0; i < node.outputs.size() && i < out.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (from_input && !host_of(out[i])) detail::ValueAccess::set_from_input(out[i], true);
    scope.values[node.outputs[i]] = std::move(out[i]);
  }
}

Results Walk::run_function(const proto::Function& f, const proto::Node& node, std::vector<Value> inputs) {
  std::vector<proto::Attribute> attributes = node.attributes;
  for (const proto::Attribute& a : f.with_defaults)
    if (!node.attribute(a.name)) attributes.push_back(a);
  const Frame frame{.opsets = &f.opsets, .attributes = &attributes};
  Scope scope{.frame = &frame};
  for (size_t i = 0; i < f.inputs.size(); ++i) scope.values[f.inputs[i]] = i < inputs.size() ? inputs[i] : Value();
  run_nodes(f.nodes, scope);
  Results out;
  for (const std::string& name : f.outputs) {
    const Value* v = scope.find(name);
    if (!v)
      throw FormatError(fmt::format("{}: nothing gives the output '{}' of the function {}", program_.files.source.name, name, f.name));
    out.push_back(*v);
  }
  return out;
}

HostArray Walk::read(const Value& v) {
  if (const HostArray* known = host_of(v)) return *known;
  if (known_ && next_read_ < known_->arrays.size()) {
    reads_.arrays.push_back(known_->arrays[next_read_++]);
    return reads_.arrays.back();
  }
  const Tensor& t = v.tensor();
  if (!is_from_input(v)) {
    reads_.depends_on_data |= program_.is_exposed;
  } else {
    bool is_input = false;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].kind() != Value::Kind::tensor || &tinygrad::detail::cell_of(inputs_[i].tensor()) != &tinygrad::detail::cell_of(t))
        continue;
      is_input = true;
      if (std::find(reads_.guards.begin(), reads_.guards.end(), i) == reads_.guards.end()) reads_.guards.push_back(i);
    }
    reads_.depends_on_data |= !is_input;
  }
  reads_.arrays.push_back(HostArray::of_bytes(v.element_type(), v.shape(), t.data()));
  return reads_.arrays.back();
}

// Call

using Kind = proto::Attribute::Kind;

void Call::fail(const std::string& what) const { throw ValueError(what); }

const Value& Call::value(size_t input) const {
  if (!has(input)) fail(fmt::format("lacks its input {}", input));
  return inputs_[input];
}
size_t Call::rank(size_t input) const {
  const Value& v = value(input);
  const bool is_complex = v.element_type() == ElementType::complex64 || v.element_type() == ElementType::complex128;
  return v.kind() != Value::Kind::tensor || host_of(v) ? v.shape().size() : size_t(v.tensor().ndim()) - is_complex;
}
const Tensor& Call::tensor(size_t input) const { return value(input).tensor(); }
std::vector<Tensor> Call::tensors() const {
  std::vector<Tensor> out;
  for (size_t i = 0; i < inputs_.size(); ++i) out.push_back(tensor(i));
  return out;
}

std::vector<int64_t> Call::integers(size_t input) const {
  if (is_float_type(type(input))) fail(fmt::format("its input {} is {}, expected integers", input, value(input).to_string()));
  return host(input).integers();
}
int64_t Call::integer(size_t input) const {
  const std::vector<int64_t> all = integers(input);
  if (all.size() != 1) fail(fmt::format("its input {} has {} elements, expected one", input, all.size()));
  return all[0];
}
double Call::number(size_t input) const {
  const HostArray a = host(input);
  if (a.numel() != 1) fail(fmt::format("its input {} has {} elements, expected one", input, a.numel()));
  return a.numbers()[0];
}

const proto::Attribute* Call::attribute_of(std::string_view name, Kind kind) const {
  const proto::Attribute* a = node_.attribute(name);
  if (a && a->kind != kind) fail(fmt::format("the attribute '{}' is of the kind {}, expected {}", name, int(a->kind), int(kind)));
  return a;
}

int64_t Call::attribute(std::string_view name, int64_t otherwise) const {
  const proto::Attribute* a = attribute_of(name, Kind::integer);
  return a ? a->integer : otherwise;
}
double Call::attribute(std::string_view name, double otherwise) const {
  const proto::Attribute* a = attribute_of(name, Kind::number);
  return a ? a->number : otherwise;
}
bool Call::flag(std::string_view name, bool otherwise) const {
  const int64_t value = attribute(name, int64_t(otherwise));
  if (value != 0 && value != 1) fail(fmt::format("the attribute '{}' is {}, expected 0 or 1", name, value));
  return value == 1;
}
std::string Call::choice(std::string_view name, std::initializer_list<std::string_view> known) const {
  const proto::Attribute* a = attribute_of(name, Kind::text);
  if (!a) return std::string(*known.begin());
  if (std::find(known.begin(), known.end(), a->text) == known.end())
    fail(fmt::format("the attribute '{}' is '{}', expected one of {}", name, a->text, fmt::join(known, ", ")));
  return a->text;
}
int64_t Call::attribute_within(std::string_view name, int64_t otherwise, int64_t least, int64_t most) const {
  const int64_t value = attribute(name, otherwise);
  if (value < least || value > most) fail(fmt::format("the attribute '{}' is {}, expected {} to {}", name, value, least, most));
  return value;
}
std::string Call::attribute(std::string_view name, const char* otherwise) const {
  const proto::Attribute* a = attribute_of(name, Kind::text);
  return a ? a->text : otherwise;
}
std::vector<int64_t> Call::attribute(std::string_view name, const std::vector<int64_t>& otherwise) const {
  const proto::Attribute* a = attribute_of(name, Kind::integers);
  return a ? a->integers : otherwise;
}
std::vector<double> Call::attribute(std::string_view name, const std::vector<double>& otherwise) const {
  const proto::Attribute* a = attribute_of(name, Kind::numbers);
  return a ? a->numbers : otherwise;
}
std::vector<std::string> Call::texts(std::string_view name) const {
  const proto::Attribute* a = attribute_of(name, Kind::texts);
  return a ? a->texts : std::vector<std::string>();
}
int64_t Call::required_integer(std::string_view name) const {
  if (!has_attribute(name)) fail(fmt::format("lacks the attribute '{}'", name));
  return attribute(name, int64_t{0});
}
std::vector<int64_t> Call::required_integers(std::string_view name) const {
  if (!has_attribute(name)) fail(fmt::format("lacks the attribute '{}'", name));
  return attribute(name, std::vector<int64_t>());
}
const Value& Call::tensor_attribute(std::string_view name) const {
  const proto::Attribute* a = attribute_of(name, Kind::tensor);
  if (!a) fail(fmt::format("lacks the attribute '{}'", name));
  return walk_.program().constant(a->tensors.front());
}
const proto::Graph& Call::graph(std::string_view name) const {
  const proto::Attribute* a = attribute_of(name, Kind::graph);
  if (!a) fail(fmt::format("lacks the attribute '{}'", name));
  return *a->graphs.front();
}
ElementType Call::type_attribute(std::string_view name, ElementType otherwise) const {
  if (!has_attribute(name)) return otherwise;
  const int64_t number = attribute(name, int64_t{0});
  if (number < 1 || number > int64_t(ElementType::float6e3m2)) fail(fmt::format("the element type {} is unknown", number));
  return ElementType(number);
}

}  // namespace tinygrad::onnx
