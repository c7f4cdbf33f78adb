#pragma once
#include "target/target.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::renderer {

/// Asynchronous products: a tensor core that reads its factors from group memory works beside the program. This finds where a linear
/// program must wait for it.
class AsyncProducts {
 public:
  explicit AsyncProducts(const UOp& linear);

  /// The core of a WMMA that is asynchronous; null for another WMMA.
  static const TensorCore* core_of(const UOp& wmma);

  /// Whether the program has asynchronous products.
  bool any() const { return any_; }
  /// Whether the program must wait for products under way before the instruction. It is asked for each instruction in turn; after a wait
  /// nothing is under way.
  bool must_wait(const UOp& u);
  /// True if the WMMA adds to sums that are still under way and that nothing else needs, so that it needs no wait.
  bool goes_on(const UOp& wmma) const;

 private:
  bool needs(const UOp& u) const;
  bool takes_from_under_way(const UOp& u) const;

  bool any_ = false;
  NodeMap<int> users_;
  NodeSet under_way_;  ///< WMMAs, and nodes that only name lanes of their results
};

}  // namespace tinygrad::renderer
