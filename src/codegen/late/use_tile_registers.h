#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Sums of products of tiles (AMX) move to tile registers, as BUFFERs of scope tensor that a renderer gives numbers to. Accumulators that
/// begin with zeros and that products alone go on with stay there through all loops; others are brought there for their products. What
/// products have finished is stored once to memory of the kernel's own, from which rows are loaded in front of what uses them:
///
///   STORE(INDEX(tile), 0)                   the tile is cleared
///   STORE(INDEX(tile), LOAD(INDEX(memory)))  it is loaded
///   WMMA(INDEX(a), INDEX(b), INDEX(tile))   it is added to
///   STORE(INDEX(memory), LOAD(INDEX(tile)))  it is stored
///
/// Each WMMA is followed by its WMMA_WAIT. Programs for targets with work-groups stay as they are.
UOp use_tile_registers(const UOp& linear, const Target& target);

/// The most tiles of sums that a program keeps at once; two more hold factors.
inline constexpr int most_resident_tiles = 6;

}  // namespace tinygrad::codegen
