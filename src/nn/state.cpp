#include <tinygrad/state.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include <tinygrad/errors.h>
#include <tinygrad/progress.h>

#include "base/interrupt.h"
#include "tensor/handle.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

namespace tinygrad::nn::state {

namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

NamedTensors tensors_of(const Module& module, std::string_view prefix) {
  Fields fields(prefix);
  module.add_fields(fields);
  return fields.tensors();
}

bool is_one_number(const Sizes& shape) { return shape.empty() || shape == Sizes{1}; }

std::string to_text(const LoadReport::Mismatch& m) {
  return fmt::format("{} is ({}), ({}) in the state", m.name, fmt::join(m.in_module, ", "), fmt::join(m.in_state, ", "));
}

/// At most eight of them.
std::string list(std::vector<std::string> texts, std::string_view separator) {
  const size_t all = texts.size(), shown = std::min<size_t>(all, 8);
  texts.resize(shown);
  return fmt::format("{}{}", fmt::join(texts, separator), shown < all ? fmt::format(" and {} more", all - shown) : "");
}

std::string list(const std::vector<LoadReport::Mismatch>& mismatched) {
  std::vector<std::string> texts;
  for (const auto& m : mismatched) texts.push_back(to_text(m));
  return list(texts, "; ");
}

/// A tensor of the module, and where its value is.
struct Match {
  Tensor target;
  StateDict::iterator source;
  Sizes shape;
  bool in_place = false;
};

std::vector<Match> match(const Module& module, StateDict& state, LoadReport& report) {
  std::vector<Match> matches;
  std::map<std::string, Tensor> wanted;
  for (auto& [name, tensor] : tensors_of(module, "")) {
    wanted.emplace(name, tensor);
    const auto it = state.find(name);
    if (it == state.end()) {
      report.missing.push_back(name);
      continue;
    }
    const Sizes shape = tensor.shape(), found = it->second.shape();
    if (shape == found || (is_one_number(shape) && is_one_number(found)))
      matches.push_back({tensor, it, shape});
    else
      report.mismatched.push_back({name, shape, found});
  }
  for (const auto& [name, tensor] : state)
    if (!wanted.contains(name)) report.unexpected.push_back(name);
  return matches;
}

bool in_memory(const Tensor& t) { return tensor::is_plain_memory(tensor::state_of_view(t.uop())); }
/// Parts on several devices are written together.
const void* memory_of(const Tensor& t) { return &buffer_of(tensor::parts_of(tensor::state_of_view(t.uop()))[0]).origin(); }

/// Whether the value is written into the target's memory, so that captured calls and views of it see it. A target that was never computed
/// becomes the value instead, and so does one of another dtype.
bool has_place(const Match& m) {
  return in_memory(m.target) && m.target.dtype() == m.source->second.dtype() && !tensor::overlaps_itself(m.target.uop());
}

/// What the target will be, or what is written into it. Where the dict gives its values away or they are only read, and no move is needed,
/// that is the dict's own memory; but what is in memory that is written to is copied before.
Tensor value_for(const Match& m, bool may_share, const std::unordered_set<const void*>& written) {
  Tensor value = m.source->second.reshape(m.shape).detach();
  if (devices_of(m.target.uop()).are_several()) value = tensor::wrap(tensor::placed_as_memory(m.target.uop(), value.uop()));
  const std::string device = m.target.device();
  if (value.device() != device) return value.to(device);
  if (m.in_place) may_share = in_memory(value) && !written.contains(memory_of(value));
  return may_share ? value : value.clone();
}

}  // namespace

std::string LoadReport::to_string() const {
  std::string out = fmt::format("loaded {} tensors", loaded.size());
  if (!missing.empty()) out += fmt::format("; missing: {}", list(missing, ", "));
  if (!unexpected.empty()) out += fmt::format("; unexpected: {}", list(unexpected, ", "));
  if (!mismatched.empty()) out += fmt::format("; of another shape: {}", list(mismatched));
  return out;
}

StateDict get_state_dict(const Module& module, std::string_view prefix) {
  StateDict out;
  for (auto& [name, tensor] : tensors_of(module, prefix)) out.emplace(name, tensor);
  return out;
}

std::vector<Tensor> get_parameters(const Module& module) {
  std::vector<Tensor> out;
  for (auto& [name, tensor] : tensors_of(module, "")) out.push_back(tensor);
  return out;
}

LoadReport load_state_dict(const Module& module, StateDict& state, const LoadOptions& options) {
  LoadReport report;
  std::vector<Match> matches = match(module, state, report);
  if (options.strict && matches.empty() && report.missing.empty() && report.mismatched.empty() && !state.empty())
    throw ValueError(fmt::format("load_state_dict: the module has no tensors, the state {}; is it the model?", state.size()));
  if (options.strict && !report.missing.empty())
    throw ValueError(fmt::format("load_state_dict: the state has no {}; give all, or set strict to false", list(report.missing, ", ")));
  if (options.strict && !report.mismatched.empty())
    throw ShapeError(fmt::format("load_state_dict: shapes differ: {}", list(report.mismatched)));

  constexpr int64_t group_bytes = int64_t{256} << 20;
  ProgressBar bar({.description = "load_state_dict",
                   .total = static_cast<int64_t>(matches.size()),
                   .unit = "tensor",
                   .disable = !options.verbose || matches.empty()});
  std::vector<Tensor> values;
  size_t realized = 0;
  int64_t pending = 0;
  const auto flush = [&] {
    const std::span<const Tensor> group = std::span(values).subspan(realized);
    if (options.realize) Tensor::realize(group);
    for (size_t i = realized; options.consume && i < values.size(); ++i) matches[i].source->second = values[i];  // frees what was moved
    bar.update(static_cast<int64_t>(group.size()));
    realized = values.size();
    pending = 0;
  };
  std::unordered_set<const void*> written;
  for (Match& m : matches)
    if (m.in_place = has_place(m); m.in_place) written.insert(memory_of(m.target));
  for (const Match& m : matches) {
    values.push_back(value_for(m, options.consume, written));
    pending += values.back().nbytes();
    if (pending >= group_bytes) flush();
  }
  flush();
  const Uninterruptible to_the_end;  // all of the module's tensors change, or none
  for (size_t i = 0; i < matches.size(); ++i) {
    Tensor target = matches[i].target;
    if (!matches[i].in_place)
      target.replace(values[i]);
    else if (!tensor::copy_into_memory(target.uop(), values[i].uop()))
      target.assign(values[i]);
    report.loaded.push_back(target);
  }
  if (options.realize) Tensor::realize(report.loaded);
  std::vector<std::string> taken;  // two fields of one name are one entry
  for (const Match& m : matches) taken.push_back(m.source->first);
  for (const std::string& name : taken)
    if (options.consume) state.erase(name);
  return report;
}

LoadReport load_state_dict(const Module& module, const StateDict& state, const LoadOptions& options) {
  StateDict copy = state;
  return load_state_dict(module, copy, options);
}

}  // namespace tinygrad::nn::state
