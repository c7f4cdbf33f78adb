#pragma once
/// A STAGE as memory: where its elements are, how they get there and how they are read.

#include <vector>

#include "target/target.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The memory of one STAGE. It has a place for each element of the STAGE; for each lane of the vector axes and, with group scope, for each
/// work-item of the axes that the value depends on; and `copies` of all that.
class StageMemory {
 public:
  /// `items` are the ranges of the kernel's work-items.
  StageMemory(const UOp& stage, std::span<const UOp> items, const Target& target, uint64_t id, int64_t copies = 1);

  const UOp& memory() const { return memory_; }
  /// The loops that the STAGE is inside of.
  const UOps& loops() const { return loops_; }

  /// True if asynchronous copies may fill it (FETCH): then fills are COMMITted, and waited for.
  bool is_fetched() const { return fetched_; }

  /// The memory inside of loops and in the state after effects. For group memory a barrier stands between: all work-items have done the
  /// effects.
  UOp after(std::span<const UOp> effects, std::span<const UOp> loops) const;
  /// Writes the elements to a copy in `state` of the memory. In group scope the work-items that would compute the same share them out.
  /// `value` is that of the STAGE or of another iteration. Where one access moves several elements, a work-item takes neighbours.
  UOp fill(const UOp& value, const UOp& copy, const UOp& state, int32_t& next_range) const;
  UOp read(const UOp& state, const UOp& copy, const UOp& element) const;

 private:
  UOp place(const UOp& copy, const UOp& element) const;
  UOp in_memory_order(const UOp& element) const;
  UOp swizzled(const UOp& at) const;
  void choose_pitch();
  int64_t row_length(const UOp& value, NodeMap<UOp>* first = nullptr) const;
  std::vector<int32_t> nesting_of(const UOp& value) const;
  int64_t run_length(const UOp& value) const;
  void split_over_items(UOp& value, UOp& element, UOp& valid, UOps& closed, int64_t run, int32_t& next_range) const;

  const Target& target_;
  UOp stage_, memory_;
  bool fetched_ = false;
  UOps items_;                                   ///< the kernel's work-items, with group scope
  UOps own_items_, free_items_, lanes_, loops_;  ///< items and lanes with places of their own; items without; loops around
  UOps ranges_;                                  ///< ranges along which the memory has elements
  std::vector<int64_t> steps_;                   ///< their strides in memory; empty if it is row-major
  int64_t elements_ = 1, lane_count_ = 1, copy_size_ = 1;
  int64_t row_ = 1, padding_ = 0;  ///< elements of a row, and free elements behind it
  int64_t swizzle_ = 1;            ///< pieces of `row_` elements that change places
};

}  // namespace tinygrad::codegen
