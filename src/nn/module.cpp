#include <tinygrad/module.h>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "shape/shape.h"
#include "tensor/handle.h"

namespace tinygrad::nn {

Module::~Module() = default;

void Fields::add(std::string_view name, const Tensor& tensor) {
  if (tensor.defined()) tensors_.emplace_back(prefix_ + std::string(name), tensor);
}

void Fields::add(std::string_view name, const Module& module) {
  Fields inner(prefix_ + std::string(name) + ".");
  module.add_fields(inner);
  tensors_.insert(tensors_.end(), inner.tensors_.begin(), inner.tensors_.end());
}

std::string_view Fields::next_name(std::string_view& names) {
  const size_t begin = std::min(names.find_first_not_of(" ,"), names.size());
  const size_t end = std::min(names.find_first_of(" ,", begin), names.size());
  const std::string_view name = names.substr(begin, end - begin);
  names.remove_prefix(end);
  return name;
}

namespace state {

namespace {

std::vector<std::pair<std::string, Tensor>> tensors_of(const Module& module, std::string_view prefix) {
  Fields fields(prefix);
  module.add_fields(fields);
  return fields.tensors();
}

}  // namespace

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

void load_state_dict(const Module& module, const StateDict& state, const LoadOptions& options) {
  std::vector<std::pair<Tensor, Tensor>> found;
  for (auto& [name, tensor] : tensors_of(module, "")) {
    const auto it = state.find(name);
    if (it == state.end()) {
      if (options.strict)
        throw ValueError(fmt::format("load_state_dict: the module has a tensor {}, the state has none of that name", name));
      continue;
    }
    const Tensor& value = it->second;
    if (value.shape() != tensor.shape())
      throw ShapeError(fmt::format("load_state_dict: {} has the shape {} in the state, {} in the module", name,
                                   to_string(tinygrad::tensor::to_shape(value.shape())),
                                   to_string(tinygrad::tensor::to_shape(tensor.shape()))));
    found.emplace_back(tensor, value.to(tensor.device()));
  }
  std::vector<Tensor> loaded;
  for (auto& [tensor, value] : found) loaded.push_back(value);
  if (options.realize) Tensor::realize(loaded);
  for (auto& [tensor, value] : found) tensor.replace(value.cast(tensor.dtype()).clone());
  loaded.clear();
  for (auto& [tensor, value] : found) loaded.push_back(tensor);
  if (options.realize) Tensor::realize(loaded);
}

}  // namespace state

}  // namespace tinygrad::nn
