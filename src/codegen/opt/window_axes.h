#pragma once
#include <optional>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// Loops that a load moves along the same way, such as those over the places and the taps of a convolution: what they reach together is a
/// window, smaller than one element for each combination of theirs.
struct WindowAxis {
  struct Part {
    UOp range;
    int64_t ratio = 1;  ///< of its step to the window's
  };
  std::vector<Part> parts;
  int64_t stride = 0;  ///< of a step in memory, positive; 0: it is not a multiple of the loops
  int64_t first = 0;   ///< the least of the sums of ratio times iteration
  int64_t size = 1;    ///< steps from the first to the last of them; 0: not known before launch

  bool is_window() const { return parts.size() > 1; }
  /// The place in the window that the loops are at, from 0.
  UOp place() const;
};

/// True if the value changes along the loops as along their sum weighted by the ratios, or not at all.
bool moves_along(const UOp& value, const std::vector<WindowAxis::Part>& parts);

/// The loops `inside` that the load depends on, each of them in one axis. Loops are in a window only if the load's gate, too, is of nothing
/// else of theirs.
std::vector<WindowAxis> window_axes(const UOp& load, std::span<const UOp> inside);

}  // namespace tinygrad::codegen
