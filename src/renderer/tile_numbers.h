#pragma once
/// Which of the tile registers of AMX hold what, at each place of a linear program.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "target/tensor_cores/tile_products.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::renderer {

/// What LDTILECFG reads, as numbers of 64 bits: palette 1, and every register has 16 rows of 64 bytes.
std::array<uint64_t, 8> tile_configuration();

/// Tiles of sums (BUFFERs of scope tensor) have a register from their first access to their last one. Factors are loaded to the others, and
/// stay there while straight-line code uses them again.
class TileNumbers {
 public:
  explicit TileNumbers(const UOp& linear);

  /// Whether the program has tiles at all.
  bool any() const { return !spans_.empty(); }
  /// Called for each instruction, in order.
  void enter(const UOp& u, size_t place);

  /// The register of a tile of sums.
  int of_sums(const UOp& tile) const;
  struct Factor {
    int number = 0;
    bool is_loaded = false;  ///< already; else it has to be loaded now
  };
  /// The register of a factor, given by its address, that is not `other`. InternalError where sums take too many registers.
  Factor of_factor(const UOp& address, int other = -1);

 private:
  static constexpr int none = -1;
  /// The places of the first and the last access of a tile.
  struct Span {
    UOp tile;
    size_t first = 0, last = 0;
  };

  NodeMap<size_t> number_of_span_;
  std::vector<Span> spans_;
  NodeMap<int> sums_;                          ///< that are there now
  std::array<bool, tile_registers> is_sum_{};  ///< by register
  std::array<UOp, tile_registers> held_;       ///< addresses of factors; null: none
  std::array<size_t, tile_registers> used_{};  ///< when that was
  size_t now_ = 0;
};

}  // namespace tinygrad::renderer
