#include "frontend/onnx/owned.h"

#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "device/buffer.h"
#include "tensor/memory.h"

namespace tinygrad::onnx {

namespace {

/// Where memory begins: buffers of one arena differ in the offset, and several nodes may be of one buffer.
using Memory = std::pair<const Buffer*, size_t>;

/// The memory that a tensor shows; nothing for a value that is still to be computed.
std::optional<Memory> memory_of(const Tensor& t) {
  const UOp state = tensor::state_of_view(t.uop());
  if (!state) return {};
  const Buffer& buffer = buffer_of(tensor::buffer_of_state(state));
  return Memory(&buffer.origin(), buffer.byte_offset());
}

class Owner {
 public:
  void lend(const Value& argument) {
    if (argument.kind() == Value::Kind::tensor)
      if (const auto memory = memory_of(argument.tensor())) taken_.insert(*memory);
    if (argument.kind() == Value::Kind::sequence)
      for (const Value& item : argument.sequence()) lend(item);
  }

  Results copied(std::span<const Value> values) {
    Results out;
    for (const Value& v : values) out.push_back(own(v));
    return out;
  }
  const std::vector<Tensor>& copies() const { return copies_; }

 private:
  Value own(const Value& v) {
    if (v.kind() == Value::Kind::sequence) return like(v, Value(copied(v.sequence())));
    if (v.kind() != Value::Kind::tensor) return v;
    // What no input changes is the model's, and is kept for other calls.
    if (is_from_input(v)) {
      const auto memory = memory_of(v.tensor());
      if (!memory || taken_.insert(*memory).second) return v;
    }
    copies_.push_back(v.tensor().clone());
    return like(v, Value(copies_.back(), v.element_type()));
  }
  static Value like(const Value& v, Value copy) {
    detail::ValueAccess::set_from_input(copy, is_from_input(v));
    return copy;
  }

  std::set<Memory> taken_;
  std::vector<Tensor> copies_;
};

}  // namespace

Results owned(const Results& results) { return Owner().copied(results); }

Results owned_memory(const Results& results, std::span<const Value> arguments) {
  Owner owner;
  for (const Value& a : arguments) owner.lend(a);
  Results out = owner.copied(results);
  if (!owner.copies().empty()) Tensor::realize(owner.copies());
  return out;
}

}  // namespace tinygrad::onnx
