#pragma once
#include <string>
#include <string_view>

#include "renderer/cstyle/prelude.h"
#include "renderer/tile_numbers.h"
#include "uop/uop.h"

namespace tinygrad::renderer::cstyle {

/// The instructions of AMX, as statements of C.
class Tiles {
 public:
  /// Both outlive this.
  Tiles(Prelude& prelude, const UOp& linear) : prelude_(prelude), numbers_(linear) {}

  bool any() const { return numbers_.any(); }
  void enter(const UOp& u, size_t place) {
    if (numbers_.any()) numbers_.enter(u, place);
  }
  /// Tiles of sums are given by their BUFFERs, their places in memory by pointers.
  std::string clear(const UOp& tile);
  std::string load(const UOp& tile, std::string_view pointer);
  std::string store(const UOp& tile, std::string_view pointer);
  std::string multiply(const UOp& product, std::string_view a, std::string_view b);
  /// The body with the registers made ready in front of it and given back behind it.
  std::string surround(std::string body);

 private:
  int factor(const UOp& address, std::string_view pointer, int other, std::string& lines);

  Prelude& prelude_;
  TileNumbers numbers_;
};

}  // namespace tinygrad::renderer::cstyle
