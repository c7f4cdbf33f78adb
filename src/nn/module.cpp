#include <tinygrad/module.h>

#include <algorithm>

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

}  // namespace tinygrad::nn
