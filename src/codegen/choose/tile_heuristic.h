#pragma once
#include <vector>

#include "codegen/choose/nest.h"
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The opts of a large product on a CPU whose tensor cores have tile registers; empty where none of them fits. By rules and sizes:
///
///   registers  2x2 tiles of sums, or what the product has
///   panels     both factors are copied in the order in which tiles are read: a block of columns of the second one that half of the second
///              cache holds, in front of all rows, and two tiles of rows of the first one, in front of the block's columns
///   ends       of the sum are padded with zeros where panels are filled; those of the results are masked where they are stored
///   threads    share out the blocks of columns, or else the rows
std::vector<Opt> tile_heuristic(const UOp& sink, const Nest& nest, const Target& target);

}  // namespace tinygrad::codegen
