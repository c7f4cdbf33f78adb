#pragma once
/// What realized values were computed from, along which gradients go.

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tensor/origin.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::tensor {

/// One value of a tensor, as its TENSORs name it: alive until the tensor is gone or has another one.
class TensorValue final : public Resource {
 public:
  explicit TensorValue(const ValueOrigin& o) : origin(o) {}

  const ValueOrigin origin;
  bool is_alive() const { return alive_.load(std::memory_order_relaxed); }
  void begin() const { alive_.store(true, std::memory_order_relaxed); }
  void end() const { alive_.store(false, std::memory_order_relaxed); }

 private:
  mutable std::atomic<bool> alive_{true};
};

/// How much of its history a realized value keeps: nodes of graphs, and bytes of other realized values in it. What is older is dropped;
/// gradients that would go there are an error.
inline constexpr size_t most_history_nodes = size_t{1} << 16;
inline constexpr int64_t most_history_bytes = int64_t{256} << 20;

/// What stands for values and states from now on that a realize has put into memory. `values` are those with their memory, `stores` the
/// AFTERs that ran, and `effects` the graph of all of it. What has a gradient with respect to a live tensor becomes REALIZED(memory, x),
/// where x is what it was computed from, all else the memory alone.
NodeMap<UOp> realized_nodes(const std::vector<std::pair<UOp, UOp>>& values, const std::vector<UOp>& stores, std::span<const UOp> effects);

/// Whether the value has a gradient with respect to a live tensor.
bool has_history(const UOp& value);

/// The REALIZED on the way from a view of memory to that memory; null if nothing is known of its history.
UOp history_of_view(const UOp& view);
/// What a tensor is when its value has changed.
TensorArg next_value_of(const TensorArg& before);

/// What memory held before it was overwritten, and whether a node is that: nothing can be computed of it.
UOp overwritten_content(const UOp& memory);
bool is_overwritten(const UOp& node);

/// Throws ValueError if gradients of tensors as old as `oldest_target` might go through a history that was dropped.
void check_history(const UOp& root, uint64_t oldest_target);
/// Throws ValueError if the gradients read memory that has been written since.
void check_unchanged(std::span<const UOp> gradients);

}  // namespace tinygrad::tensor
