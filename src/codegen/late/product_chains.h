#pragma once
/// Which accumulators of a linear program only products go on with, for cores that have memory of their own for sums
/// (TensorCore::tensor_memory).

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Elements of private memory that are accessed together: the BUFFER's id, the place of the first, how many.
struct Slot {
  uint64_t memory = 0;
  int64_t place = 0;
  int32_t width = 1;
  auto operator<=>(const Slot&) const = default;
};
using Slots = std::vector<Slot>;

/// Products each of which adds to the sums of the one before.
struct ProductChain {
  UOps products;
  Slots from, to;  ///< elements that the first one's sums are loaded from and the last one's are stored to; empty if they are no such
  UOps loads, stores;
  int32_t first = 0, last = 0;  ///< places in the list
};

/// Private memory whose elements move to a tile.
struct Resident {
  Slots slots;
  int32_t begins_at = 0;    ///< a place in the list: where the first zero is stored
  int32_t finished_at = 0;  ///< the last product, or the end of the loop that it is in
};

/// Accesses of an element that belong to no chain.
struct OtherAccesses {
  std::vector<int32_t> zeros, loads;  ///< places in the list
  bool has_more = false;
};

class ProductChains {
 public:
  /// The list outlives this.
  explicit ProductChains(const UOp& linear);

  const std::vector<ProductChain>& chains() const { return chains_; }
  /// Those of which the first access stores zeros, products alone go on with, and which are read when they are finished.
  std::vector<Resident> residents();
  const OtherAccesses& others(const Slot& s) { return others_[s]; }
  const std::vector<UOp>& users(const UOp& u) const;

 private:
  void find_chains();
  void note_others();
  ProductChain begin(const UOp& wmma) const;
  void end(ProductChain& c) const;
  bool is_inside(int32_t at, const std::vector<int32_t>& blocks) const;
  std::optional<Resident> resident(const Slots& slots);

  const UOp& linear_;
  NodeMap<int32_t> place_;
  NodeMap<std::vector<UOp>> users_;
  std::vector<int32_t> open_;                 ///< blocks, by their places
  std::vector<std::vector<int32_t>> around_;  ///< each instruction
  std::map<int32_t, int32_t> end_of_;
  std::vector<ProductChain> chains_;
  std::map<Slot, OtherAccesses> others_;
  std::map<uint64_t, int32_t> widths_;  ///< of the accesses of a memory; 0: they differ, or the place of one is not a constant
};

/// The LOADs whose elements, one after another, are the sums of a STACK; none if it has something else.
UOps loaded_rows(const UOp& stack);

}  // namespace tinygrad::codegen
