// Models: files read and checked, calls that walk the graph, and calls that replay what an earlier one captured.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <list>
#include <mutex>
#include <set>
#include <unordered_set>

#include <tinygrad/errors.h>
#include <tinygrad/jit.h>

#include "frontend/onnx/any_size.h"
#include "frontend/onnx/check.h"
#include "frontend/onnx/operators.h"
#include "frontend/onnx/owned.h"
#include "tensor/observer.h"
#include "uop/uop.h"

namespace tinygrad::onnx {

namespace {

std::string described(const std::string& path, const std::vector<UnsupportedOperator>& operators) {
  constexpr size_t most_named = 8;
  std::string text = fmt::format("{}: {} operators are not supported:", path, operators.size());
  for (const UnsupportedOperator& o : operators) {
    const std::vector<std::string> first(o.nodes.begin(), o.nodes.begin() + int64_t(std::min(o.nodes.size(), most_named)));
    text += fmt::format(" {} ({}, version {}) in {}", o.name, o.domain, o.version, fmt::join(first, ", "));
    text += o.nodes.size() > most_named ? fmt::format(" and {} more nodes;", o.nodes.size() - most_named) : ";";
  }
  return text;
}

ValueInfo info_of(const proto::NamedType& t) {
  return {.name = t.name,
          .type = t.type.to_string(),
          .element_type = t.type.element_type,
          .has_shape = t.type.has_shape,
          .shape = t.type.shape};
}

}  // namespace

UnsupportedError::UnsupportedError(const std::string& path, std::vector<UnsupportedOperator> operators)
    : Error(described(path, operators)), operators_(std::move(operators)) {}

namespace detail {

namespace {

HostArray elements_of(const Value& v) { return HostArray::of_bytes(v.element_type(), v.shape(), v.tensor().data()); }

bool same_bytes(const HostArray& a, const HostArray& b) {
  return a.byte_count == b.byte_count && std::equal(a.bytes.get(), a.bytes.get() + a.byte_count, b.bytes.get());
}

}  // namespace

using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// What is kept for inputs of one signature.
struct Captured {
  std::string signature = {};
  std::optional<InputForms> forms = {};
  std::vector<UOp> weights = {};  ///< as they were, where the caller may change them
  Reads reads = {};
  std::vector<HostArray> guards = {};            ///< the inputs' values that the walk has read
  std::vector<ElementType> types = {};           ///< of outputs
  std::vector<std::optional<Value>> known = {};  ///< outputs that are no tensors of the call, in their places
  std::unique_ptr<decltype(jit(std::declval<Body>(), JitOptions{}))> replay = {};
};

struct ModelState {
  Program program;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<size_t> input_places;  ///< of the graph's inputs that are no initializers
  std::map<std::string, int64_t> counts;
  std::map<std::string, Tensor> parameters;
  std::mutex mutex;
  std::list<Captured> captured;  ///< used last comes first
  AnySizes any_sizes;
  bool each_size = false;  ///< LoadOptions

  std::vector<Value> arguments(const Values& given) const;
  Values named(const Results& results) const;
  /// From now on the caller may change the weights: what is known of their elements is not used, nor what was captured with them.
  void expose();
  /// Tensors that the caller put in the place of weights. ShapeError and DTypeError for others than those were.
  void take_weights();
  std::vector<UOp> exposed_weights() const;
  /// What is kept for such inputs and the weights as they are, now the one used last; null where there is nothing.
  Captured* find(const std::string& signature, const std::vector<Value>& arguments);
  /// The outputs of a call that differs from others in sizes; nothing where it is to be captured for its sizes alone.
  std::optional<Results> run_any_size(const std::vector<Value>& arguments);
  void keep(Captured&& captured);
};

std::vector<Value> ModelState::arguments(const Values& given) const {
  const proto::Graph& graph = program.model.graph;
  std::vector<Value> out(graph.inputs.size());
  size_t used = 0;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const proto::NamedType& input = graph.inputs[i];
    const auto found = given.find(input.name);
    const bool is_needed = std::find(input_places.begin(), input_places.end(), i) != input_places.end();
    if (found == given.end()) {
      if (is_needed && input.type.kind != proto::TypeInfo::Kind::optional)
        throw ValueError(fmt::format("onnx::Model: the input '{}' is missing, {}", input.name, input.type.to_string()));
      continue;
    }
    ++used;
    const Value& v = found->second;
    if (v.kind() == Value::Kind::tensor && input.type.kind == proto::TypeInfo::Kind::tensor &&
        input.type.element_type != ElementType::undefined && v.element_type() != input.type.element_type)
      throw ValueError(fmt::format("onnx::Model: the input '{}' is {}, expected {}", input.name, v.to_string(), input.type.to_string()));
    if (v.kind() == Value::Kind::tensor && input.type.has_shape) {
      const Sizes shape = v.shape();
      bool fits = shape.size() == input.type.shape.size();
      for (size_t a = 0; fits && a < shape.size(); ++a) fits = input.type.shape[a].size <= 0 || input.type.shape[a].size == shape[a];
      if (!fits)
        throw ValueError(fmt::format("onnx::Model: the input '{}' is {}, expected {}", input.name, v.to_string(), input.type.to_string()));
    }
    // What the caller happens to have on the host is not known of all inputs alike.
    out[i] = v.kind() == Value::Kind::tensor ? Value(v.tensor(), v.element_type()) : v;
    ValueAccess::set_from_input(out[i], true);
  }
  if (used != given.size())
    for (const auto& [name, value] : given)
      if (std::none_of(graph.inputs.begin(), graph.inputs.end(), [&](const auto& i) { return i.name == name; }))
        throw ValueError(fmt::format("onnx::Model: there is no input '{}'", name));
  return out;
}

void ModelState::expose() {
  if (std::exchange(program.is_exposed, true)) return;
  captured.clear();
  any_sizes.clear();
  for (auto& [name, value] : program.initializers.at(&program.model.graph))
    if (value.kind() == Value::Kind::tensor && is_float_type(value.element_type())) value = Value(value.tensor(), value.element_type());
}

void ModelState::take_weights() {
  if (!program.is_exposed) return;
  auto& values = program.initializers.at(&program.model.graph);
  for (const auto& [name, t] : parameters) {
    const auto found = values.find(name);
    if (found == values.end()) throw ValueError(fmt::format("onnx::Model: there is no weight '{}'", name));
    Value& v = found->second;
    if (&tinygrad::detail::cell_of(v.tensor()) == &tinygrad::detail::cell_of(t)) continue;
    if (t.dtype() != v.tensor().dtype())
      throw DTypeError(fmt::format("onnx::Model: the weight '{}' is {}, not {}", name, v.to_string(), t.to_string()));
    if (t.shape() != v.shape())
      throw ShapeError(fmt::format("onnx::Model: the weight '{}' is {}, not {}", name, v.to_string(), t.to_string()));
    v = Value(t, v.element_type());
  }
}

std::vector<UOp> ModelState::exposed_weights() const {
  std::vector<UOp> out;
  if (program.is_exposed)
    for (const auto& [name, t] : parameters) out.push_back(t.uop());
  return out;
}

Captured* ModelState::find(const std::string& signature, const std::vector<Value>& arguments) {
  const std::vector<UOp> weights = exposed_weights();
  const auto fits = [&](const Captured& c) {
    if (c.signature != signature || c.weights != weights) return false;
    for (size_t g = 0; g < c.guards.size(); ++g)
      if (!same_bytes(c.guards[g], elements_of(arguments[c.reads.guards[g]]))) return false;
    return true;
  };
  const auto found = std::find_if(captured.begin(), captured.end(), fits);
  if (found == captured.end()) return nullptr;
  captured.splice(captured.begin(), captured, found);
  return &captured.front();
}

std::optional<Results> ModelState::run_any_size(const std::vector<Value>& arguments) {
  // A function that is recorded replays kernels, and not what the host copies.
  if (each_size || program.is_exposed || tensor::Observer::current()) return {};
  std::vector<InputForms> seen;
  for (const Captured& c : captured)
    if (c.forms && !c.reads.depends_on_data && c.reads.guards.empty()) seen.push_back(*c.forms);
  if (seen.empty()) return {};
  return any_sizes.run(program, arguments, seen);
}

void ModelState::keep(Captured&& c) {
  constexpr size_t most = 16;
  captured.push_front(std::move(c));
  if (captured.size() > most) captured.pop_back();
}

Values ModelState::named(const Results& results) const {
  Values out;
  for (size_t i = 0; i < results.size(); ++i) out[program.model.graph.outputs[i].name] = results[i];
  return out;
}

}  // namespace detail

const std::vector<ValueInfo>& Model::inputs() const { return state_->inputs; }
const std::vector<ValueInfo>& Model::outputs() const { return state_->outputs; }
const std::map<std::string, std::string>& Model::metadata() const { return state_->program.model.metadata; }
std::map<std::string, Tensor>& Model::parameters() const {
  const std::lock_guard lock(state_->mutex);
  state_->expose();
  return state_->parameters;
}
std::map<std::string, int64_t> Model::operators() const { return state_->counts; }

Values Model::operator()(const Values& inputs) const {
  const std::lock_guard lock(state_->mutex);
  state_->take_weights();
  const std::vector<Value> arguments = state_->arguments(inputs);
  return state_->named(owned(Walk(state_->program, arguments, nullptr).run()));
}

namespace {

/// Kinds, types and shapes of the inputs; nothing where one is no tensor, which is not captured.
std::optional<std::string> signature_of(const std::vector<Value>& arguments) {
  std::string out;
  for (const Value& v : arguments) {
    if (v.present() && v.kind() != Value::Kind::tensor) return {};
    out += v.present() ? fmt::format("{}:{}:{};", int(v.element_type()), fmt::join(v.shape(), ","), v.tensor().device()) : ";";
  }
  return out;
}

std::vector<HostArray> guards_of(const Reads& reads, const std::vector<Value>& arguments) {
  std::vector<HostArray> out;
  for (size_t i : reads.guards) out.push_back(detail::elements_of(arguments[i]));
  return out;
}

void realize_all(const Results& results) {
  std::vector<Tensor> tensors;
  const std::function<void(const Value&)> add = [&](const Value& v) {
    if (v.kind() == Value::Kind::tensor) tensors.push_back(v.tensor());
    if (v.kind() == Value::Kind::sequence)
      for (const Value& item : v.sequence()) add(item);
  };
  for (const Value& v : results) add(v);
  Tensor::realize(tensors);
}

}  // namespace

Values Model::run(const Values& inputs) const {
  const std::lock_guard lock(state_->mutex);
  state_->take_weights();
  const std::vector<Value> arguments = state_->arguments(inputs);
  const std::optional<std::string> signature = signature_of(arguments);
  detail::Captured* known = signature ? state_->find(*signature, arguments) : nullptr;
  if (signature && !known)
    if (const std::optional<Results> results = state_->run_any_size(arguments)) return state_->named(owned_memory(*results, arguments));
  if (!known || known->reads.depends_on_data) {
    Walk walk(state_->program, arguments, nullptr);
    const Results results = walk.run();
    realize_all(results);
    const bool has_tensors_alone =
        std::all_of(results.begin(), results.end(), [](const Value& v) { return v.kind() == Value::Kind::tensor; });
    if (signature && !known && has_tensors_alone)
      state_->keep({.signature = *signature,
                    .forms = forms_of(arguments),
                    .weights = state_->exposed_weights(),
                    .reads = walk.reads(),
                    .guards = guards_of(walk.reads(), arguments)});
    return state_->named(owned_memory(results, arguments));
  }
  std::vector<Tensor> tensors;
  for (const Value& v : arguments)
    if (v.present()) tensors.push_back(v.tensor());
  if (!known->replay) {
    const auto body = [state = state_.get(), known, arguments](const std::vector<Tensor>& given) {
      std::vector<Value> now = arguments;
      size_t next = 0;
      for (Value& v : now) {
        if (!v.present()) continue;
        v = Value(given[next++], v.element_type());
        detail::ValueAccess::set_from_input(v, true);
      }
      const Results results = Walk(state->program, now, &known->reads).run();
      known->known.assign(results.size(), {});
      known->types.clear();
      std::vector<Tensor> out;
      for (size_t i = 0; i < results.size(); ++i) {
        known->types.push_back(results[i].element_type());
        const bool is_of_weights = state->program.is_exposed && !host_of(results[i]);
        if (results[i].kind() == Value::Kind::tensor && (is_from_input(results[i]) || is_of_weights))
          out.push_back(results[i].tensor());
        else
          known->known[i] = results[i];
      }
      return out;
    };
    using detail::Body;
    known->replay =
        std::make_unique<decltype(jit(Body(body), JitOptions{}))>(jit(Body(body), JitOptions{.prune = !state_->program.is_exposed}));
  }
  const std::vector<Tensor> computed = (*known->replay)(tensors);
  Results results;
  size_t next = 0;
  for (size_t i = 0; i < known->known.size(); ++i) {
    if (known->known[i])
      results.push_back(*known->known[i]);
    else
      detail::ValueAccess::set_from_input(results.emplace_back(computed[next++], known->types[i]), true);
  }
  return state_->named(owned_memory(results, arguments));
}

namespace {

/// The messages of a file.
void read_program(Files files, Program& p) {
  p.files = std::move(files);
  p.model = proto::read_model(p.files.source, {p.files.source.begin, p.files.file.bytes.size()});
  for (const proto::Function& f : p.model.functions)
    if (!p.functions.emplace(function_key(f.domain, f.name, f.overload), &f).second)
      throw FormatError(fmt::format("{}: two functions {}", p.files.source.name, f.name));
}

std::vector<ValueInfo> outputs_of(const proto::Graph& g) {
  std::vector<ValueInfo> out;
  for (const proto::NamedType& o : g.outputs) out.push_back(info_of(o));
  return out;
}

/// Those that are no initializers, and their places.
std::vector<ValueInfo> inputs_of(const proto::Graph& g, std::vector<size_t>& places) {
  std::unordered_set<std::string_view> initializers;
  for (const proto::TensorProto& t : g.initializers) initializers.insert(t.name);
  for (const proto::SparseTensorProto& t : g.sparse_initializers) initializers.insert(t.values.name);
  const std::map<std::string, int64_t> bounds = index_bounds(g);
  std::vector<ValueInfo> out;
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    if (initializers.contains(g.inputs[i].name)) continue;
    places.push_back(i);
    out.push_back(info_of(g.inputs[i]));
    if (const auto bound = bounds.find(g.inputs[i].name); bound != bounds.end()) out.back().index_bound = bound->second;
  }
  return out;
}

Model load_from(Files files, const LoadOptions& options) {
  auto state = std::make_shared<detail::ModelState>();
  state->each_size = options.each_size;
  Program& p = state->program;
  read_program(std::move(files), p);
  Findings found = check(p, true);
  if (!found.unsupported.empty()) throw UnsupportedError(p.files.source.name, std::move(found.unsupported));
  state->counts = std::move(found.operators);
  for (const auto& [name, value] : p.initializers_of(p.model.graph))
    if (value.kind() == Value::Kind::tensor) state->parameters[name] = value.tensor();
  state->inputs = inputs_of(p.model.graph, state->input_places);
  state->outputs = outputs_of(p.model.graph);
  return Model(std::move(state));
}

Files files_of(const std::string& path, const LoadOptions& options) {
  Files files = Files::of(frontend::FileBytes::map(path));
  files.folder = std::filesystem::absolute(path).parent_path().string();
  files.follow_links = options.follow_links;
  return files;
}

}  // namespace

Model load(const std::string& path, const LoadOptions& options) { return load_from(files_of(path, options), options); }

Model load(const Tensor& bytes, const LoadOptions& options) { return load_from(Files::of(frontend::FileBytes::of(bytes)), options); }

Description describe(const std::string& path) {
  Program p;
  read_program(files_of(path, {}), p);
  Findings found = check(p, false);
  std::vector<size_t> places;
  return {.inputs = inputs_of(p.model.graph, places),
          .outputs = outputs_of(p.model.graph),
          .operators = std::move(found.operators),
          .unsupported = std::move(found.unsupported)};
}

}  // namespace tinygrad::onnx
