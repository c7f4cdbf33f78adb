#pragma once
#include <string>

#include "renderer/llvmir/emitter.h"
#include "renderer/tile_numbers.h"
#include "uop/uop.h"

namespace tinygrad::renderer::llvmir {

/// The instructions of AMX, on registers that have numbers. Those that LLVM would number itself are not used: it moves the configuration of
/// tiles and spills them as it likes, and what the program says of registers is already what the processor has.
class Tiles {
 public:
  /// Both outlive this.
  Tiles(Emitter& out, const UOp& linear) : out_(out), numbers_(linear) {}

  void begin();
  bool any() const { return numbers_.any(); }
  void enter(const UOp& u, size_t place) {
    if (numbers_.any()) numbers_.enter(u, place);
  }
  /// Tiles of sums are given by their BUFFERs, their places in memory by pointers.
  void clear(const UOp& tile);
  void load(const UOp& tile, const std::string& pointer);
  void store(const UOp& tile, const std::string& pointer);
  void multiply(const UOp& product, const std::string& a, const std::string& b);
  void finish();

 private:
  int factor(const UOp& address, const std::string& pointer, int other);

  Emitter& out_;
  TileNumbers numbers_;
};

}  // namespace tinygrad::renderer::llvmir
