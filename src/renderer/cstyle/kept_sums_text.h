#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renderer/cstyle/names.h"
#include "renderer/cstyle/tensor_memory.h"
#include "renderer/kept_sums.h"
#include "uop/uop.h"

namespace tinygrad::renderer::cstyle {

/// What a kernel in CUDA C says of sums that tensor cores keep: as values, and as lines that stand where they are asked for.
class KeptSumsText {
 public:
  using Lines = std::vector<std::string>;

  KeptSumsText(Prelude& prelude, const KernelInfo& info, const UOp& linear, Names& names);

  /// Begins a product, given pointers to its factors; the value is that of the WMMA once it was waited for.
  Value begin(const UOp& wmma, const TensorCore& core, bool goes_on, std::string_view a, std::string_view b, const Value& sum,
              Lines& lines);
  /// An access of what is kept, or what only takes such a value apart; nothing for another instruction.
  std::optional<Value> access(const UOp& u, Lines& lines);
  /// Waits for what is under way.
  Lines wait();
  /// What stands behind an instruction.
  Lines behind(const UOp& u);
  Lines barrier() { return {memory_.barrier()}; }
  void forget_barrier() { memory_.forget_barrier(); }

  std::string prologue(std::string_view shared) { return memory_.prologue(shared) + variables_; }
  std::string epilogue() { return memory_.epilogue(); }

 private:
  struct Tile {
    int32_t column = 0, columns = 0;
    Value sums;
    std::string adds;
  };
  struct Given {
    UOp product;
    Tile tile;
  };
  Tile new_tile(int32_t columns);
  Tile& kept(int32_t number, DType dtype);
  void barrier_if_needed(Lines& lines);

  Prelude& prelude_;
  Names& names_;
  const KeptSums kept_;
  TensorMemory memory_;
  std::vector<Tile> tiles_, free_;
  std::vector<Given> given_;   ///< under way
  std::vector<int32_t> due_;   ///< kept tiles to be read once what is under way is done
  NodeMap<int32_t> parts_of_;  ///< values that are only named: the tile
  std::string variables_;
};

}  // namespace tinygrad::renderer::cstyle
