#pragma once
#include <cstdint>
#include <vector>

#include "target/target.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::renderer {

/// True if the sums that a product is to add to are all 0.
bool is_zero(const UOp& sums);

/// Residency of accumulators in tensor memory, for cores that have memory of their own for sums (TensorCore::keeps_sums). A tile of sums
/// stays there while a loop runs if the private memory that it is stored to holds nothing else.
class KeptSums {
 public:
  explicit KeptSums(const UOp& linear);

  /// An access of an element of a tile that stays: the store of the zero that it begins with, or a load of the finished sum. Number -1: an
  /// access between two products, for which there is nothing to do.
  struct Element {
    int32_t tile = -1, number = -1;
  };
  /// The element that a LOAD or STORE of private memory accesses; null if its tile does not stay.
  const Element* element_of(const UOp& access) const { return elements_.find(access); }
  /// The tile that a WMMA adds to in place; -1: its sums come from registers and go there.
  int32_t tile_of(const UOp& wmma) const;
  /// Tiles that are finished behind an instruction: items read them there, once the products under way are done.
  std::vector<int32_t> read_behind(const UOp& u) const;
  /// The number of sums in each work-item, for each tile.
  const std::vector<int32_t>& tiles() const { return sizes_; }

 private:
  NodeMap<Element> elements_;
  NodeMap<int32_t> tile_of_;
  NodeMap<std::vector<int32_t>> read_behind_;
  std::vector<int32_t> sizes_;
};

}  // namespace tinygrad::renderer
