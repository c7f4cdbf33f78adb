#pragma once
#include <optional>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// Loops that move a load along the same axis of memory, such as the loops over the places and the taps of a convolution. Together they
/// reach a window of elements, fewer than there are combinations of their iterations.
struct WindowAxis {
  struct Part {
    UOp range;
    int64_t ratio = 1;  ///< of its step to the window's
  };
  std::vector<Part> parts;
  int64_t stride = 0;  ///< elements of memory that a step of the window is, positive; 0: the index is no multiple of the loops
  int64_t first = 0;   ///< the least of the sums of ratio times iteration
  int64_t size = 1;    ///< steps from the first to the last of them; 0: not known before launch

  bool is_window() const { return parts.size() > 1; }
  /// The place in the window, from 0, of the loops' current iteration.
  UOp place() const;
};

/// True if the value changes along the loops as along their sum weighted by the ratios, or not at all.
bool moves_along(const UOp& value, const std::vector<WindowAxis::Part>& parts);

/// The loops `inside` on which the load depends, each in one axis. Several loops are one window only if the load's gate, too, depends on
/// them by the window's place alone. Where a clause of `masks` does not hold, what is loaded is not used: those of the gate that are masks
/// may only bound the window (bound_of).
std::vector<WindowAxis> window_axes(const UOp& load, std::span<const UOp> inside, std::span<const UOp> masks = {});

/// The number of a window's places up to the last that is used where the clause holds, a bound on some of its loops and on others. Null:
/// the clause says no such thing, or it depends on the window's place alone.
UOp bound_of(const UOp& clause, const WindowAxis& window);

}  // namespace tinygrad::codegen
