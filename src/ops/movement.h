#pragma once
/// Views of a value: no arithmetic. What would change nothing returns `x` itself. Axes count from the end where negative; IndexError
/// where out of range, ShapeError where sizes do not fit.

#include <string_view>
#include <vector>

#include <tinygrad/op_arguments.h>

#include "ops/operand.h"

namespace tinygrad::ops {

/// One (before, after) or [begin, end) an axis.
using Pairs = SmallVector<std::pair<SInt, SInt>, 6>;

/// The axis counted from the start; `extra`: one past the last is an axis too. `op` is named in the IndexError.
int resolve_axis(std::string_view op, int axis, size_t rank, bool extra = false);
/// The same for several, which must differ.
Axes resolve_axes(std::string_view op, std::span<const int> axes, size_t rank);

/// One size may be -1: what the others leave.
UOp reshape(const UOp& x, const Shape& sizes);
/// A size of -1 keeps the axis; leading axes may be added.
UOp expand(const UOp& x, const Shape& sizes);
UOp permute(const UOp& x, const Axes& order);
UOp transpose(const UOp& x, int axis0 = 1, int axis1 = 0);
UOp flip(const UOp& x, const Axes& axes);
UOp shrink(const UOp& x, const Pairs& bounds);
/// One axis shrunk to [begin, end).
UOp shrink_axis(const UOp& x, int axis, const SInt& begin, const SInt& end);
/// The leading box of these sizes; -1 keeps an axis.
UOp shrink_to(const UOp& x, const Shape& sizes);

/// Negative amounts cut.
UOp pad(const UOp& x, const Pairs& amounts, const Operand& value = 0, PadMode mode = PadMode::constant);
UOp pad_axis(const UOp& x, int axis, const SInt& before, const SInt& after, const Operand& value = 0);
/// At the ends, to these sizes; -1 keeps an axis.
UOp pad_to(const UOp& x, const Shape& sizes, const Operand& value = 0);
/// The flat form of PyTorch, last axis first: (left, right, top, bottom, ...) as pairs for `rank` axes.
Pairs grouped_padding(std::span<const int64_t> flat, size_t rank);

/// Every axis of size 1 removed, or only `axis` if it has size 1.
UOp squeeze(const UOp& x);
UOp squeeze(const UOp& x, int axis);
UOp unsqueeze(const UOp& x, int axis);
UOp flatten(const UOp& x, int start = 0, int end = -1);
/// One size may be -1.
UOp unflatten(const UOp& x, int axis, const Shape& sizes);
/// Whole copies side by side; missing leading axes are added.
UOp repeat(const UOp& x, const Shape& repeats);
/// Each element repeated; without an axis, of the flattened value.
UOp repeat_interleave(const UOp& x, int64_t repeats, std::optional<int> axis = {});
/// Values joined along an axis; dtypes promote.
UOp cat(std::span<const UOp> values, int axis = 0);
/// Values of one shape joined along a new axis.
UOp stack(std::span<const UOp> values, int axis = 0);
std::vector<UOp> split(const UOp& x, int64_t size, int axis = 0);
std::vector<UOp> split(const UOp& x, std::span<const int64_t> sizes, int axis = 0);
std::vector<UOp> chunk(const UOp& x, int64_t chunks, int axis = 0);
/// Elements moved along the axes, around the end; without axes, of the flattened value.
UOp roll(const UOp& x, std::span<const int64_t> shifts, const Axes& axes = {});
/// Windows of `size` every `step` along an axis; the window is a new last axis.
UOp unfold(const UOp& x, int axis, int64_t size, int64_t step);
/// A square matrix with the vector on its diagonal.
UOp diag(const UOp& x);
UOp diagonal(const UOp& x, int offset = 0, int axis0 = 0, int axis1 = 1);
/// The values (1-D) each broadcast over the grid of all; `xy` swaps the first two axes.
std::vector<UOp> meshgrid(std::span<const UOp> values, bool xy = false);

/// The size of an axis that a formula names.
using NamedSize = std::pair<std::string_view, SInt>;
/// Axes split, reordered and joined as the formula says, in the notation of einops: "b (h w) c -> (b h) w c" with the size of h or of w
/// given. "..." stands for axes without names, 1 and () for an axis of size 1. ValueError for a formula that is not well formed or a size
/// that it does not name, ShapeError where the value does not fit it.
UOp rearrange(const UOp& x, std::string_view formula, std::span<const NamedSize> sizes = {});

/// Windows over the last axes: shape (..., o0, o1, ..., k0, k1, ...), each o counting positions `stride` apart, each k elements
/// `dilation` apart. The three have one number an axis.
UOp pool(const UOp& x, std::span<const int64_t> kernel, std::span<const int64_t> stride, std::span<const int64_t> dilation,
         std::string_view op = "pool");

}  // namespace tinygrad::ops
