#pragma once
/// A STAGE as memory: where its elements are, how they get there and how they are read.

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The memory of one STAGE. It has a place for each element of the STAGE; for each lane of the vector axes and, with group scope, for each
/// work-item of the axes that the value depends on; and `copies` of all that.
class StageMemory {
 public:
  /// `items` are the ranges of the kernel's work-items.
  StageMemory(const UOp& stage, std::span<const UOp> items, uint64_t id, int64_t copies = 1);

  const UOp& memory() const { return memory_; }
  /// The loops that the STAGE is inside of.
  const UOps& loops() const { return loops_; }

  /// The memory inside of loops, after effects. What group memory waits for, all work-items of the group have done.
  UOp after(std::span<const UOp> effects, std::span<const UOp> loops) const;
  /// Writes the elements to a copy in `state` of the memory. In group scope the work-items that would compute the same share them out.
  /// `value` is that of the STAGE or of another iteration.
  UOp fill(const UOp& value, const UOp& copy, const UOp& state, int32_t& next_range) const;
  UOp read(const UOp& state, const UOp& copy, const UOp& element) const;

 private:
  UOp place(const UOp& copy, const UOp& element) const;
  void split_over_items(UOp& value, UOp& element, UOp& valid, UOps& closed, int32_t& next_range) const;

  UOp stage_, memory_;
  UOps items_;                                   ///< of the kernel, with group scope
  UOps own_items_, free_items_, lanes_, loops_;  ///< items and lanes with places of their own; items without; loops around
  int64_t elements_ = 1, lane_count_ = 1, copy_size_ = 1;
};

}  // namespace tinygrad::codegen
