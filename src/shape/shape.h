#pragma once
/// The shape of every node, inferred from its sources.

#include <initializer_list>
#include <span>
#include <string>

#include "base/small_vector.h"
#include "shape/sint.h"
#include "uop/uop.h"

namespace tinygrad {

using Shape = SmallVector<SInt, 6>;

/// The shape of a node; () for scalars and effects. Computed from the sources without recursion and cached in the node.
/// Throws ShapeError where sources do not fit the op; for symbolic sizes only where they cannot fit for any value.
const Shape& shape_of(const UOp& u);
/// Of a node that is gone at once, a copy.
inline Shape shape_of(UOp&& u) { return shape_of(std::as_const(u)); }

/// Number of axes of shape_of(u).
inline size_t rank_of(const UOp& u) { return shape_of(u).size(); }

Shape make_shape(std::initializer_list<int64_t> sizes);
/// From index expressions, one an axis.
Shape make_shape(std::span<const UOp> sizes);
/// The sizes as nodes, as movement ops take them.
UOps size_nodes(const Shape& shape);

/// Product of the sizes; 1 for ().
SInt numel(const Shape& shape);
/// True if a size is 0.
bool is_empty(const Shape& shape);
/// True if every size is a number.
bool all_known(const Shape& shape);
/// The sizes as numbers; ValueError if one is symbolic.
SmallVector<int64_t, 6> known_sizes(const Shape& shape);
/// Upper bounds of the sizes: what storage is laid out for.
SmallVector<int64_t, 6> max_sizes(const Shape& shape);
/// Row-major element strides of storage laid out for the sizes' upper bounds.
SmallVector<int64_t, 6> row_major_strides(const Shape& shape);

/// "(3, 4)", "(5,)", "()".
std::string to_string(const Shape& shape);

/// The source of a movement op that shows elements of it; of SHRINK(RESHAPE(PAD(x))) that takes every n-th element along an axis, so that
/// nothing is left of the padding: x.
const UOp& below_view(const UOp& movement);

// Movement nodes from sizes; the checks are shape_of's, as for any node.
UOp reshape(const UOp& x, const Shape& shape);
UOp expand(const UOp& x, const Shape& shape);
/// (before, after) an axis.
UOp pad(const UOp& x, std::span<const std::pair<SInt, SInt>> before_after);
/// [begin, end) an axis.
UOp shrink(const UOp& x, std::span<const std::pair<SInt, SInt>> begin_end);

}  // namespace tinygrad
