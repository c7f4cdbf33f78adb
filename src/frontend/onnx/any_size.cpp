#include "frontend/onnx/any_size.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include <tinygrad/errors.h>

#include "base/log.h"
#include "tensor/handle.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::onnx {

namespace {

constexpr int64_t least_size = 2;     // a size of 1 is broadcast, one of 0 leaves nothing
constexpr int64_t least_bound = 16;   // of a variable
constexpr size_t most_kept = 4;       // walks for all sizes of a model
constexpr int64_t most_calls = 64;    // for the same sizes, until they are worth kernels of their own
constexpr size_t most_own = 8;        // sizes that get some, fewer than calls that a model keeps captured
constexpr size_t most_counted = 256;  // sizes whose calls are counted

/// Copied by the host, as a kernel would be one for each size.
void copy_to_front(const Tensor& memory, const Tensor& t) {
  Tensor front = memory.shrink({{0, t.numel()}});
  const Tensor elements = Tensor(t).realize().flatten();
  if (!tensor::copy_into_memory(front.uop(), elements.uop())) front.assign(elements).realize();
}

/// The sizes of a tensor whose variables are bound become numbers.
Tensor with_numbers(const Tensor& t) {
  const UOp node = tensor::plain_view(t.uop());
  NodeMap<UOp> map;
  for (const UOp& u : toposort(node))
    if (u.is(Op::BIND)) map[u] = u.src(1);
  return map.size() ? tensor::wrap_view(substitute(node, map)) : t;
}

}  // namespace

std::optional<InputForms> forms_of(std::span<const Value> arguments) {
  InputForms out;
  for (const Value& v : arguments) {
    if (v.present() && (v.kind() != Value::Kind::tensor || v.tensor().device() != "CPU")) return {};
    if (v.present() && !std::ranges::all_of(v.tensor().symbolic_shape(), &Extent::known)) return {};
    out.push_back({v.present(), v.element_type(), v.present() ? v.tensor().shape() : Sizes()});
  }
  return out;
}

std::unique_ptr<AnySize> AnySize::of(Program& program, const InputForms& before, const InputForms& now, const AnySize* wider) {
  std::unique_ptr<AnySize> out(new AnySize(program));
  out->forms_ = before;
  if (before.size() != now.size()) return {};
  // Axes that were the same in both calls, and that the file gives one name, have one variable.
  using Key = std::tuple<std::string, int, int64_t, int64_t>;
  std::vector<Key> keys;
  for (size_t i = 0; i < now.size(); ++i) {
    const InputForm &a = before[i], &b = now[i];
    if (a.is_present != b.is_present || a.type != b.type || a.shape.size() != b.shape.size()) return {};
    const auto& declared = program.model.graph.inputs[i].type.shape;
    std::vector<int>& places = out->variable_.emplace_back();
    for (size_t axis = 0; axis < a.shape.size(); ++axis) {
      const int old = wider ? wider->variable_[i][axis] : -1;
      if (a.shape[axis] == b.shape[axis] && old < 0) {
        places.push_back(-1);
        continue;
      }
      if (b.shape[axis] < least_size) return {};
      // Calls for two sizes are recorded; one that was no size of the variable is not among them.
      if (a.shape[axis] < least_size) out->forms_[i].shape[axis] = b.shape[axis] == least_size ? least_size + 1 : least_size;
      const Key key{axis < declared.size() ? declared[axis].name : "", old, a.shape[axis], b.shape[axis]};
      const auto found = std::ranges::find(keys, key);
      places.push_back(int(found - keys.begin()));
      if (found == keys.end()) keys.push_back(key);
    }
  }
  for (const auto& [name, old, a, b] : keys) {
    const int64_t most = std::max({least_bound, a, b, old < 0 ? 0 : wider->variables_[size_t(old)].max()});
    out->variables_.emplace_back(fmt::format("size{}", out->variables_.size()), least_size, int64_t(std::bit_ceil(uint64_t(most))));
  }
  return keys.empty() ? nullptr : std::move(out);
}

bool AnySize::fits(const InputForms& forms) const {
  std::vector<int64_t> sizes(variables_.size(), 0);
  for (size_t i = 0; i < forms.size(); ++i) {
    const InputForm &a = forms_[i], &b = forms[i];
    if (a.is_present != b.is_present || a.type != b.type || a.shape.size() != b.shape.size()) return false;
    for (size_t axis = 0; axis < a.shape.size(); ++axis) {
      const int place = variable_[i][axis];
      const int64_t size = b.shape[axis];
      if (place < 0) {
        if (size != a.shape[axis]) return false;
        continue;
      }
      if (size < least_size || size > variables_[size_t(place)].max()) return false;
      if (sizes[size_t(place)] != 0 && sizes[size_t(place)] != size) return false;
      sizes[size_t(place)] = size;
    }
  }
  return true;
}

std::string AnySize::axes() const { return fmt::format("{}", fmt::join(variable_, ";")); }

std::vector<Variable> AnySize::bound(const InputForms& forms) const {
  std::vector<Variable> out = variables_;
  for (size_t i = 0; i < forms.size(); ++i)
    for (size_t axis = 0; axis < forms[i].shape.size(); ++axis)
      if (const int place = variable_[i][axis]; place >= 0) out[size_t(place)] = variables_[size_t(place)].bind(forms[i].shape[axis]);
  return out;
}

int64_t AnySize::most_elements(size_t input) const {
  Sizes most = forms_[input].shape;
  for (size_t axis = 0; axis < most.size(); ++axis)
    if (const int place = variable_[input][axis]; place >= 0) most[axis] = variables_[size_t(place)].max();
  return element_count(most);
}

Tensor AnySize::with_sizes(const Tensor& memory, size_t input, std::span<const Variable> variables) const {
  Extents shape(forms_[input].shape);
  Extent count(1);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (const int place = variable_[input][axis]; place >= 0) shape[axis] = variables[size_t(place)];
    count = count * shape[axis];
  }
  return memory.shrink({{0, count}}).reshape(shape);
}

void AnySize::walk_for_all() const {
  std::vector<Value> values;
  for (size_t i = 0; i < forms_.size(); ++i) {
    Value& v = values.emplace_back();
    if (!forms_[i].is_present) continue;
    // Variables without a value: whatever needs a number of them is an error.
    v = Value(with_sizes(Tensor::empty({most_elements(i)}, {.dtype = dtype_of(forms_[i].type)}), i, variables_), forms_[i].type);
    detail::ValueAccess::set_from_input(v, true);
  }
  Walk walk(program_, values, nullptr, true);
  const Results results = walk.run();
  if (walk.reads().depends_on_data || !walk.reads().guards.empty() || !walk.reads().arrays.empty())
    throw ValueError("elements of an input are read");
  if (!std::ranges::all_of(results, [](const Value& v) { return v.kind() == Value::Kind::tensor; }))
    throw ValueError("an output is no tensor of numbers");
}

std::vector<Tensor> AnySize::walk(const std::vector<Tensor>& given) {
  std::vector<Value> values(forms_.size());
  size_t next = 0;
  for (size_t i = 0; i < forms_.size(); ++i) {
    if (!forms_[i].is_present) continue;
    values[i] = Value(given[next++], forms_[i].type);
    detail::ValueAccess::set_from_input(values[i], true);
  }
  const Results results = Walk(program_, values, nullptr, true).run();
  known_.assign(results.size(), {});
  types_.clear();
  std::vector<Tensor> out;
  for (size_t i = 0; i < results.size(); ++i) {
    types_.push_back(results[i].element_type());
    if (is_from_input(results[i]))
      out.push_back(results[i].tensor());
    else
      known_[i] = results[i];
  }
  return out;
}

Results AnySize::capture(std::span<const Value> arguments) {
  walk_for_all();
  replay_ = std::make_unique<Jit<Body>>(jit(Body([this](const std::vector<Tensor>& given) { return walk(given); }), {.prune = true}));
  std::vector<Value> first(arguments.begin(), arguments.end());
  for (size_t i = 0; i < first.size(); ++i)
    if (std::ranges::any_of(variable_[i], [](int place) { return place >= 0; }))
      first[i] = Value(Tensor::zeros(forms_[i].shape, {.dtype = dtype_of(forms_[i].type), .device = "CPU"}), forms_[i].type);
  run(first);
  Results results = run(arguments);
  if (!replay_->captured()) throw ValueError("two calls do not run the same kernels");
  return results;
}

Results AnySize::run(std::span<const Value> arguments) {
  const std::vector<Variable> variables = bound(*forms_of(arguments));
  std::vector<Tensor> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].present()) continue;
    const Tensor& t = arguments[i].tensor();
    if (std::ranges::all_of(variable_[i], [](int place) { return place < 0; })) {
      given.push_back(t);
      continue;
    }
    // Memory is laid out for the greatest sizes, and the elements are in front.
    const Tensor memory = Tensor::empty({most_elements(i)}, {.dtype = t.dtype(), .device = "CPU"});
    copy_to_front(memory, t);
    given.push_back(with_sizes(memory, i, variables));
  }
  return named((*replay_)(given));
}

Results AnySize::named(std::span<const Tensor> computed) const {
  Results out;
  size_t next = 0;
  for (size_t i = 0; i < known_.size(); ++i) {
    if (known_[i])
      out.push_back(*known_[i]);
    else
      detail::ValueAccess::set_from_input(out.emplace_back(with_numbers(computed[next++]), types_[i]), true);
  }
  return out;
}

int64_t AnySize::count_call(const InputForms& forms) {
  std::vector<Sizes> sizes;
  for (const InputForm& f : forms) sizes.push_back(f.shape);
  if (calls_.size() >= most_counted && !calls_.contains(sizes)) calls_.clear();
  return ++calls_[sizes];
}

namespace {

void log_fallback(const InputForms& forms, const std::string& why) {
  if (!log_enabled(1)) return;
  std::vector<std::string> shapes;
  for (const InputForm& f : forms) shapes.push_back(f.is_present ? fmt::format("({})", fmt::join(f.shape, ", ")) : "nothing");
  log_line(fmt::format("onnx: {} is captured for itself: {}", fmt::join(shapes, ", "), why));
}

}  // namespace

std::optional<Results> AnySizes::run(Program& program, std::span<const Value> arguments, std::span<const InputForms> seen) {
  const std::optional<InputForms> forms = forms_of(arguments);
  if (!forms) return {};
  const auto found = std::ranges::find_if(all_, [&](const auto& a) { return a->fits(*forms); });
  if (found == all_.end()) return make(program, arguments, *forms, seen);
  std::rotate(all_.begin(), found, found + 1);
  if (own_ < most_own && all_.front()->count_call(*forms) > most_calls) {
    ++own_;
    log_fallback(*forms, fmt::format("it came {} times", most_calls));
    return {};
  }
  try {
    return all_.front()->run(arguments);
  } catch (const JitError& e) {  // nothing ran: these sizes are others than what the walk was for
    log_fallback(*forms, e.what());
  } catch (const OutOfMemoryError& e) {  // the greatest sizes take more memory than these
    log_fallback(*forms, e.what());
  }
  return {};
}

std::optional<Results> AnySizes::make(Program& program, std::span<const Value> arguments, const InputForms& forms,
                                      std::span<const InputForms> seen) {
  std::string why = "no call before differs from it in sizes above 1 alone";
  const auto attempt = [&](const InputForms& before, const AnySize* wider) -> std::optional<Results> {
    std::unique_ptr<AnySize> made = AnySize::of(program, before, forms, wider);
    if (!made) return {};
    if (const auto known = refused_.find(made->axes()); known != refused_.end()) {
      why = known->second;
      return {};
    }
    try {
      Results out = made->capture(arguments);
      all_.insert(all_.begin(), std::move(made));
      if (all_.size() > most_kept) all_.pop_back();
      return out;
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& e) {  // the call for these sizes alone says what is wrong, if something is
      why = refused_[made->axes()] = e.what();
      return {};
    }
  };
  for (const auto& a : all_)
    if (auto out = attempt(a->forms(), a.get())) return out;
  for (const InputForms& before : seen)
    if (auto out = attempt(before, nullptr)) return out;
  log_fallback(forms, why);
  return {};
}

}  // namespace tinygrad::onnx
