#pragma once
#include <cstdint>
#include <vector>

#include "target/target.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::renderer {

/// Whether all that a product is given to add to are zeros.
bool is_zero(const UOp& sums);

/// Sums of tensor cores that have memory of their own for them (TensorCore::keeps_sums): which private memory of a linear program holds
/// nothing else, so that they stay where they are while a loop runs.
class KeptSums {
 public:
  explicit KeptSums(const UOp& linear);

  /// An element of a tile that stays: a zero that it begins with, or what is read in the end. Others, of number -1, only say that a product
  /// goes on with it.
  struct Element {
    int32_t tile = -1, number = -1;
  };
  /// What a LOAD or STORE of private memory is of; null for one of other memory.
  const Element* element_of(const UOp& access) const { return elements_.find(access); }
  /// The tile that a WMMA adds to; -1: it is given its sum and gives a result.
  int32_t tile_of(const UOp& wmma) const;
  /// Tiles that items read behind an instruction, once what is under way is done.
  std::vector<int32_t> read_behind(const UOp& u) const;
  /// How many sums each item has of each tile.
  const std::vector<int32_t>& tiles() const { return sizes_; }

 private:
  NodeMap<Element> elements_;
  NodeMap<int32_t> tile_of_;
  NodeMap<std::vector<int32_t>> read_behind_;
  std::vector<int32_t> sizes_;
};

}  // namespace tinygrad::renderer
