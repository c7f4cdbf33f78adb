#pragma once
/// Memory of the evaluator: versions, and the lists of writes that lead from one to the next.

#include <vector>

#include "spec/value.h"

namespace tinygrad::spec {

/// Writes to one memory in the order they are made: for each point of the axes, element index[j] = values[j], j = 0, 1, ...; a negative
/// index is no write. Index and values have the same axes and one shape axis.
struct Writes {
  UOp base;    ///< the BUFFER or PARAM
  UOp origin;  ///< the effect that makes them
  Value index, values;
};
using WritesPtr = std::shared_ptr<const Writes>;

/// What an effect does: its own writes, and those that it builds upon, which others may have been told of.
struct Written {
  WritesPtr writes;
  bool own;
};
using Effects = std::vector<Written>;

/// A version of some memory, or a view of it.
struct Memory {
  UOp base;
  DType dtype;
  int64_t size = 0;                     ///< elements of the whole memory
  Value state = {};                     ///< all elements, flat; null: no data were given
  std::vector<WritesPtr> history = {};  ///< what this version has on top of the first
  std::vector<Move> moves = {};         ///< from the flat memory to this view

  /// For each element of the view its place in the memory, -1 for padding.
  Value places() const;
  Value state_or_zeros() const;
  /// The elements of the view.
  Value contents() const;
};

/// The elements of flat `from` at `index`, `width` of each in a trailing axis if that is above 1; 0 where `valid` (may be null) does not
/// hold. IndexError naming `node` for one out of bounds.
Value gather(const UOp& node, const Value& from, const Value& index, const Value& valid, int32_t width);

/// The places that a store through INDEX writes, -1 where `valid` does not hold, in the shape that gather() would give.
Value store_places(const UOp& node, int64_t size, const Value& index, const Value& valid, int32_t width);

/// Index and values brought to one frame.
WritesPtr make_writes(const UOp& base, const UOp& origin, Value places, Value values);

/// The state after the writes; changed in place if nobody else holds it.
Value after_writes(Value state, std::span<const WritesPtr> list);

/// For each point of the `closed` axes, row-major in the order given, all the writes of the list (to one base), in its order.
WritesPtr close_axes(const UOp& origin, std::span<const WritesPtr> list, const AxisIds& closed, std::span<const int64_t> sizes);

}  // namespace tinygrad::spec
