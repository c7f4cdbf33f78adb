#include "ops/runs.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/order.h"
#include "uop/build.h"

namespace tinygrad::ops {

bool worth_ordering(const SInt& indices, const SInt& positions) {
  // A core compares this many in some milliseconds, which the kernels of a sort take as well.
  constexpr double most_compared = 0x1p24;
  return indices.known() && positions.known() && double(indices.value()) * double(positions.value()) > most_compared;
}

UOp count_at_most(const UOp& sorted, const UOp& value) {
  const int64_t m = shape_of(sorted).back().value();
  UOp count = full(shape_of(value), 0, index_dtype(m + 1));
  for (int64_t step = int64_t(std::bit_floor(uint64_t(m))); step > 0; step /= 2) {
    const Expr next = add(count, step);
    const UOp fits = le(next, m);
    const UOp there = gather(sorted, -1, minimum(sub(next, 1), m - 1));
    count = ops::where(bitwise_and(fits, le(there, value)), next, count);
  }
  return count;
}

Runs ordered_runs(const UOp& index, int64_t n) {
  if (const int64_t count = shape_of(index).back().value(); std::max(n, count) > std::numeric_limits<int32_t>::max())  // they are int32
    throw ValueError(fmt::format("a write by {} indices into {} positions; expects fewer than 2^31 of both", count, n));
  const UOp inside = bitwise_and(ge(index, 0), lt(index, n));
  const UOp keys = tinygrad::cast(ops::where(inside, index, n), DType::uint32);
  auto [sorted, order] = sorted_keys(keys, int(std::bit_width(uint64_t(n))));
  Runs runs;
  runs.keys = contiguous(tinygrad::cast(sorted, DType::int32));
  runs.order = contiguous(order);
  Shape positions = shape_of(index);
  positions.back() = n;
  const UOp end = contiguous(count_at_most(runs.keys, broadcast_to(iota(n), positions)));
  runs.count = sub(end, pad_axis(end, -1, 1, -1));
  runs.last = maximum(sub(end, 1), 0);
  return runs;
}

UOp scan_runs(const UOp& values, const UOp& keys, int axis, UOp (*combine)(const Operand&, const Operand&, const OpsContext&)) {
  constexpr int steps_in_kernel = 2;
  const int64_t m = shape_of(values)[size_t(axis)].value();
  UOp v = contiguous(values);
  int steps = 0;
  for (int64_t distance = 1; distance < m; distance *= 2) {
    // What lies `distance` before, of the same run; nothing has the key -1.
    const UOp before = pad_axis(v, axis, distance, -distance), key = pad_axis(keys, axis, distance, -distance, -1);
    v = ops::where(ops::eq(key, keys), combine(before, v, {}), v);
    if (++steps % steps_in_kernel == 0) v = contiguous(v);
  }
  return contiguous(v);
}

}  // namespace tinygrad::ops
