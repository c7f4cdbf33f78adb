#pragma once
/// Formulas over all blocks of a tensor at once.

#include <cstdint>
#include <initializer_list>

#include "ops/expr.h"

namespace tinygrad::frontend {

/// Bytes of blocks, each at the elements that it is a part of. Every field has all of the elements, in the axes of a format's own and,
/// last, an axis of the blocks: what many elements share is no value by itself that could be stored, and loops compute it as often as it
/// changes. Numbers of one byte or two are int32, as vectors of processors shift them.
class Blocks {
 public:
  /// `bytes`: uint8, (blocks, bytes of one); `grid`: the axes of the elements of a block.
  Blocks(const UOp& bytes, std::initializer_list<int64_t> grid);

  /// Bytes from `at` on as an array with the axes of the grid, of size 1 where a byte is for all elements of the axis.
  ops::Expr bytes(int64_t at, std::initializer_list<int64_t> shape) const;
  ops::Expr signed_bytes(int64_t at, std::initializer_list<int64_t> shape) const;
  /// Of `rows` rows of `stride` bytes from `at` on the bytes [first, first + width) of each, as an array of that shape.
  ops::Expr columns(int64_t at, int64_t rows, int64_t stride, int64_t first, int64_t width, std::initializer_list<int64_t> shape) const;
  /// One byte for all elements.
  ops::Expr byte(int64_t at) const;
  /// The same of two bytes, a float16, as float32, and of four, a float32.
  ops::Expr half(int64_t at) const;
  ops::Expr single(int64_t at) const;
  /// A field of what is the same for all blocks.
  ops::Expr everywhere(const ops::Expr& x) const;

 private:
  UOp spread(const UOp& bytes, std::initializer_list<int64_t> shape) const;

  UOp bytes_;  // (bytes of one, blocks)
  Shape grid_;
};

/// 0, step, 2 * step, ... along the last axes, which these are, before that of the blocks.
ops::Expr steps(std::initializer_list<int64_t> shape, int64_t step);
/// As many bits of x as `width` from bit `at` on.
ops::Expr bits(const ops::Expr& x, const ops::Operand& at, int width);
/// 16 bits that are a float16, as float32.
ops::Expr half_of(const ops::Expr& bits);
inline ops::Expr as_float(const ops::Expr& x) { return tinygrad::cast(x, DType::float32); }

/// The elements of blocks of codebook formats, (blocks, bytes of one), on their grid.
ops::Expr iq2_xxs(const UOp& blocks);
ops::Expr iq2_xs(const UOp& blocks);
ops::Expr iq2_s(const UOp& blocks);
ops::Expr iq3_xxs(const UOp& blocks);
ops::Expr iq3_s(const UOp& blocks);
ops::Expr iq1_s(const UOp& blocks);
ops::Expr iq1_m(const UOp& blocks);

}  // namespace tinygrad::frontend
