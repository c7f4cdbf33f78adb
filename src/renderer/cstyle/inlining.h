#pragma once
#include <cstdint>
#include <vector>

#include "renderer/cstyle/private_memory.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::renderer::cstyle {

/// Which values of a program may stand inside the expression that uses them instead of in a variable: those used once, whose place may be
/// moved down to that of their use. Computation stays in its loop, and a load on its side of stores to the same memory.
class Inlining {
 public:
  /// Unless `fuses_halves`, products of halves stand alone: within an expression a compiler may fuse them with the sum around.
  Inlining(const UOp& linear, const PrivateMemory& memory, bool fuses_halves);

  bool may_inline(const UOp& u) const { return inlined_[static_cast<size_t>(*position_.find(u))]; }
  /// Whether the place that a LOAD reads holds its value up to the last use, so that the name of the place may stand for it.
  bool stays_in_place(const UOp& load) const { return in_place_[static_cast<size_t>(*position_.find(load))]; }
  int32_t uses(const UOp& u) const { return uses_[static_cast<size_t>(*position_.find(u))]; }
  /// Whether all accesses of a BUFFER are in the block where its first access is, so that it may be declared there.
  bool is_local_to_first_access(const UOp& buffer) const;

 private:
  void count_uses(std::span<const UOp> list);
  void find_blocks(std::span<const UOp> list);
  bool may_move(const UOp& u, size_t from, size_t to) const;
  bool crosses_store(const UOp& load, size_t from, size_t to) const;

  const PrivateMemory& memory_;
  const bool fuses_halves_;
  NodeMap<int32_t> position_;
  std::vector<int32_t> uses_;
  std::vector<int32_t> controls_before_;         // RANGE, END, IF, ENDIF, BARRIER
  std::vector<int32_t> block_end_;               // of each instruction: where the innermost block around it ends
  std::vector<int32_t> last_access_;             // of each BUFFER, by its position
  std::vector<std::pair<int32_t, UOp>> stores_;  // position and address
  std::vector<bool> inlined_, in_place_;
};

}  // namespace tinygrad::renderer::cstyle
