#include <tinygrad/module.h>

#include <algorithm>

namespace tinygrad::nn {

Module::~Module() = default;

namespace {

auto depth_of(std::string_view path) { return path.empty() ? -1 : std::ranges::count(path, '.'); }

}  // namespace

void Fields::add_tensor(std::string_view name, const Tensor& tensor) {
  if (tensor.defined()) tensors_.emplace_back(prefix_ + std::string(name), tensor);
}

void Fields::add_module(std::string_view name, const Module& module) {
  const std::string path = prefix_ + std::string(name);
  if (const Symbol known = module.path_.load(std::memory_order_relaxed); path != known.str() && depth_of(path) >= depth_of(known.str()))
    module.path_.store(Symbol(path), std::memory_order_relaxed);
  Fields inner(path + ".");
  module.add_fields(inner);
  tensors_.insert(tensors_.end(), std::make_move_iterator(inner.tensors_.begin()), std::make_move_iterator(inner.tensors_.end()));
}

std::string_view Fields::next_name(std::string_view& names) {
  const size_t begin = std::min(names.find_first_not_of(" ,"), names.size());
  const size_t end = std::min(names.find_first_of(" ,", begin), names.size());
  const std::string_view name = names.substr(begin, end - begin);
  names.remove_prefix(end);
  return name;
}

std::string Fields::element_name(std::string_view list, std::string_view element) {
  std::string name(list);
  name += '.';
  return name += element;
}

}  // namespace tinygrad::nn
