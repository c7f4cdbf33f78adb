#pragma once
/// Tiles of the window of an argument in which the innermost output loops move, or of what is computed of the window's elements.

#include "codegen/choose/planned_loops.h"

namespace tinygrad::codegen {

struct WindowTile {
  int axis = -1;  ///< the loop in which the tile is filled
  double cycles = 0;
  double bytes = 0;
};

/// The tile that costs the least to fill, over all of the loops in which it could be filled. Where it is filled `fills` times with
/// `elements` each,
///
///   cycles = fills * elements * (cycles to copy an element, or to compute one)
WindowTile window_tile(const PlannedLoops& loops, const NestedWork& load, const Tile& t);

/// Cycles to fill the tiles of all arguments with windows, and their bytes.
double window_cycles(const PlannedLoops& loops, const Tile& t);
double window_bytes(const PlannedLoops& loops, const Tile& t);

}  // namespace tinygrad::codegen
