#pragma once
/// Arguments of operations that are the same for a Tensor and for a node of a graph.

#include <cstdint>

namespace tinygrad {

/// A new axis of size 1 (Python's None).
struct NewAxis {};
/// Stands for as many whole axes as are left (Python's ...).
struct Ellipsis {};

enum class Rounding : uint8_t { none, trunc, floor };
enum class Reduction : uint8_t { mean, sum, none };
enum class GeluForm : uint8_t { tanh, erf };
enum class PadMode : uint8_t { constant, reflect, replicate, circular };
enum class Interpolation : uint8_t { linear, nearest, nearest_exact };
enum class ScatterMode : uint8_t { sum, prod, mean, amax, amin };

struct InterpolateOptions {
  Interpolation mode = Interpolation::linear;
  bool align_corners = false;  ///< of linear: the middles of the outer elements coincide, not their edges
};

struct CloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};

}  // namespace tinygrad
