#pragma once
/// The numbers in the index of an address, which are for the address itself to add.

#include <cstdint>
#include <optional>
#include <vector>

#include "uop/uop.h"

namespace tinygrad {

/// An index is `base` plus a number, or plus a number for each lane.
struct AddressParts {
  std::optional<UOp> base;  ///< a scalar; none: 0
  std::vector<int64_t> offsets;
};

/// None for lanes that differ by more than numbers.
std::optional<AddressParts> address_parts(const UOp& at);

}  // namespace tinygrad
