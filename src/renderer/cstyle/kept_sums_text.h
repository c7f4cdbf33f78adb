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

/// The CUDA C of accumulators in tensor memory (renderer/kept_sums.h): expressions for values, and statements for the place where they are
/// asked for.
class KeptSumsText {
 public:
  using Lines = std::vector<std::string>;

  KeptSumsText(Prelude& prelude, const KernelInfo& info, const UOp& linear, Names& names);

  /// Begins a product of the factors at `a` and `b`; the value of the WMMA, valid once it was waited for.
  Value begin(const UOp& wmma, const TensorCore& core, bool goes_on, std::string_view a, std::string_view b, const Value& sum,
              Lines& lines);
  /// The value of an access to resident sums, or of an instruction that only takes such a value apart; nothing for another instruction.
  std::optional<Value> access(const UOp& u, Lines& lines);
  /// Statements that wait for the products under way.
  Lines wait();
  /// Statements that stand behind an instruction.
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
  std::vector<Given> given_;   ///< products under way
  std::vector<int32_t> due_;   ///< tiles to be read once the products under way are done
  NodeMap<int32_t> parts_of_;  ///< the tile of values that only name parts of it
  std::string variables_;
};

}  // namespace tinygrad::renderer::cstyle
