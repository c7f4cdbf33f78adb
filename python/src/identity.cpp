// Which Python object a tensor has: `layer.weight is layer.weight`, and a set of parameters holds a shared one once.
#include <unordered_map>

#include "common.h"

namespace tinygrad::python {

namespace {

/// Guarded by Python's lock, and never destroyed: tensors outlive static objects.
auto& objects() {
  static auto& map = *new std::unordered_map<const detail::TensorCell*, PyObject*>;
  return map;
}

}  // namespace

PyObject*& object_of(const Tensor& t) { return objects()[&detail::cell_of(t)]; }

void forget_object(const Tensor& t) {
  if (!t.defined()) return;
  const auto found = objects().find(&detail::cell_of(t));
  if (found != objects().end() && found->second && nb::inst_ptr<Tensor>(found->second) == &t) objects().erase(found);
}

}  // namespace tinygrad::python
