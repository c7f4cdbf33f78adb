#pragma once
/// In which order the evaluator runs the nodes of one scope.

#include <map>
#include <span>
#include <vector>

#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::spec {

/// True for memory: a BUFFER, a PARAM with a shape, or movement and AFTER over one.
bool is_memory(const UOp& u);

/// An END that must run one iteration after the other, because one reads memory that those before wrote: AFTER(memory, RANGE). Lanes that
/// it closes are an axis of each iteration: they step together.
struct Loop {
  std::vector<UOp> ranges;  ///< those that are iterated
  std::vector<UOp> lanes;
  std::vector<UOp> heads;   ///< those AFTERs: the memory as an iteration finds it
  std::vector<UOp> inside;  ///< what each iteration computes, sources first
  std::vector<UOp> needs;   ///< what is computed before the loop
};

class Plan {
 public:
  explicit Plan(std::span<const UOp> roots);

  /// Every node that is computed outside of Loops, sources first.
  const std::vector<UOp>& order() const { return order_; }
  /// What must be computed before `u`.
  std::span<const UOp> needs(const UOp& u) const;
  /// The Loop of an END; nullptr if all its iterations may run at once.
  const Loop* loop(const UOp& u) const;
  /// All nodes of order() and of Loops.
  const std::vector<UOp>& nodes() const { return nodes_; }

 private:
  void find_loop(const UOp& end);
  template <class Enter>
  std::vector<UOp> walk(std::span<const UOp> roots, Enter&& enter) const;

  std::vector<UOp> order_, nodes_;
  std::vector<Loop> loops_;
  NodeMap<size_t> loop_of_;
};

}  // namespace tinygrad::spec
