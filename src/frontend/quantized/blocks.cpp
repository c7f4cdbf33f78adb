#include "frontend/quantized/blocks.h"

#include "ops/creation.h"
#include "ops/movement.h"
#include "shape/shape.h"

namespace tinygrad::frontend {

using ops::Expr;

namespace {

Shape with_blocks(std::initializer_list<int64_t> shape, const SInt& blocks) {
  Shape out;
  for (const int64_t size : shape) out.push_back(size);
  out.push_back(blocks);
  return out;
}

int64_t product(std::initializer_list<int64_t> shape) {
  int64_t out = 1;
  for (const int64_t size : shape) out *= size;
  return out;
}

}  // namespace

Blocks::Blocks(const UOp& bytes, std::initializer_list<int64_t> grid)
    : bytes_(ops::transpose(bytes)), grid_(with_blocks(grid, shape_of(bytes)[0])) {}

UOp Blocks::spread(const UOp& bytes, std::initializer_list<int64_t> shape) const {
  return ops::expand(ops::reshape(bytes, with_blocks(shape, grid_.back())), grid_);
}

Expr Blocks::bytes(int64_t at, std::initializer_list<int64_t> shape) const {
  return tinygrad::cast(spread(ops::shrink_axis(bytes_, 0, at, at + product(shape)), shape), DType::int32);
}
Expr Blocks::signed_bytes(int64_t at, std::initializer_list<int64_t> shape) const {
  return tinygrad::cast(tinygrad::bitcast(spread(ops::shrink_axis(bytes_, 0, at, at + product(shape)), shape), DType::int8), DType::int32);
}
Expr Blocks::columns(int64_t at, int64_t rows, int64_t stride, int64_t first, int64_t width, std::initializer_list<int64_t> shape) const {
  const UOp table = ops::unflatten(ops::shrink_axis(bytes_, 0, at, at + rows * stride), 0, {rows, stride});
  return tinygrad::cast(spread(ops::shrink_axis(table, 1, first, first + width), shape), DType::int32);
}
Expr Blocks::byte(int64_t at) const {
  const Shape one(grid_.size() - 1, SInt(1));
  Shape shape = one;
  shape.push_back(grid_.back());
  return tinygrad::cast(ops::expand(ops::reshape(ops::shrink_axis(bytes_, 0, at, at + 1), shape), grid_), DType::int32);
}
Expr Blocks::half(int64_t at) const { return half_of(byte(at) | ops::lshift(byte(at + 1), 8)); }
Expr Blocks::single(int64_t at) const {
  const auto shifted = [&](int64_t i) { return Expr(ops::lshift(tinygrad::cast(byte(at + i), DType::uint32), 8 * i)); };
  return tinygrad::bitcast(shifted(0) | shifted(1) | shifted(2) | shifted(3), DType::float32);
}
Expr Blocks::everywhere(const Expr& x) const { return ops::expand(x, grid_); }

Expr steps(std::initializer_list<int64_t> shape, int64_t step) {
  return ops::reshape(ops::mul(ops::iota(product(shape)), step), with_blocks(shape, 1));
}
Expr bits(const Expr& x, const ops::Operand& at, int width) { return Expr(ops::rshift(x, at)) & ((1 << width) - 1); }
Expr half_of(const Expr& bits) { return as_float(tinygrad::bitcast(tinygrad::cast(bits, DType::uint16), DType::float16)); }

}  // namespace tinygrad::frontend
