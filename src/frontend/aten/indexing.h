#pragma once
/// Where several index tensors point, as places of rows.

#include <vector>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

/// The axes with an index become the first ones, joined to one of `rows`; the others follow.
struct AdvancedIndex {
  std::vector<int> axes = {};   ///< with an index
  std::vector<int> order = {};  ///< these, and the others
  Sizes index_shape = {};       ///< that the indices broadcast to
  Sizes rest = {};              ///< the sizes of the others
  int place = 0;                ///< where the index's axes stand in the result
  int64_t rows = 1;
  Tensor flat;  ///< a row for each place of index_shape, a vector of int64
};
/// Of the argument `indices`; masks are the places where they hold, which are read.
AdvancedIndex advanced_index(const Call& c, const Tensor& x);

}  // namespace tinygrad::aten
