#pragma once
#include "target/target.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::renderer {

/// Products of factors in memory, which a tensor core makes beside the program: where a linear program must wait for them.
class AsyncProducts {
 public:
  explicit AsyncProducts(const UOp& linear);

  /// The core of a WMMA that goes on beside the program; null for another.
  static const TensorCore* core_of(const UOp& wmma);

  /// Whether the program has any.
  bool any() const { return any_; }
  /// Whether the instruction needs what is under way. To be asked of each instruction in turn; it is not under way afterwards.
  bool must_wait(const UOp& u);
  /// True if the WMMA goes on with sums that are under way and that nothing else needs: it adds to them where they are.
  bool goes_on(const UOp& wmma) const;

 private:
  bool needs(const UOp& u) const;
  bool takes_from_under_way(const UOp& u) const;

  bool any_ = false;
  NodeMap<int> users_;
  NodeSet under_way_;  ///< WMMAs and what only names lanes of theirs
};

}  // namespace tinygrad::renderer
