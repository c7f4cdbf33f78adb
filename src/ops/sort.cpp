// Sorting along an axis.
#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <bit>

#include "ops/creation.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/order.h"
#include "ops/reduce.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// Counting is two kernels, the network one for every two of its log2(n) * (log2(n) + 1) / 2 columns: on one core of an AVX-512 CPU they
/// take the same time at about this length.
constexpr int64_t longest_counted = 1024;

/// Each element's place in the last axis, counted: n^2 comparisons in two kernels.
UOp order_by_counting(const UOp& x, bool descending) {
  const SInt& n = shape_of(x).back();
  // Over (..., i, j): j comes before i.
  const UOp xi = ops::unsqueeze(x, -1), xj = ops::unsqueeze(x, -2);
  const UOp first = lt(iota_along(1, 2, n), iota_along(0, 2, n));
  const UOp precedes = bitwise_or(descending ? before(xi, xj) : before(xj, xi), bitwise_and(same(xi, xj), first));
  const UOp place = contiguous(count(precedes, -1));
  // Over (..., k, i): i has the place k.
  const UOp found = ops::eq(ops::unsqueeze(place, -2), iota_along(0, 2, n));
  return sum(ops::where(found, iota(n), 0), -1, false, index_dtype(n));
}

DType unsigned_of(int bits) { return bits <= 8 ? DType::uint8 : bits <= 16 ? DType::uint16 : bits <= 32 ? DType::uint32 : DType::uint64; }

/// Unsigned integers in the order of the values: equal values have equal bits, NaN has the greatest.
UOp ordered_bits(const UOp& x, bool descending) {
  if (is_bool(x.dtype())) return ordered_bits(tinygrad::cast(x, DType::uint8), descending);
  const int bits = int(bitsize(x.dtype()));
  const DType word = unsigned_of(bits);
  const Scalar sign = Scalar::of(uint64_t{1} << (bits - 1), word);
  UOp key = tinygrad::bitcast(x, word);
  if (is_float(x.dtype())) {
    // Negative numbers grow away from zero, and -0.0 is 0.0.
    const UOp ordered = ops::where(lt(key, sign), bitwise_xor(key, sign), bitwise_not(key));
    key = ops::where(isnan(x), max_value(word), ops::where(ops::eq(x, 0), sign, ordered));
  } else if (!is_unsigned(x.dtype())) {
    key = bitwise_xor(key, sign);
  }
  return descending ? bitwise_not(key) : key;
}

/// One column of the network: in each pair of elements the less goes first. Pairs are `distance` apart, or (crossing) lie symmetrically in
/// runs of twice that.
UOp exchanged(const UOp& words, int64_t distance, bool crossing) {
  const UOp own = ops::unflatten(words, -1, Shape{-1, 2, distance});
  const UOp partner = ops::flip(own, crossing ? Axes{-2, -1} : Axes{-2});
  const UOp goes_first = ops::eq(iota_along(0, 2, 2), 0);
  return ops::flatten(ops::where(ops::eq(lt(own, partner), goes_first), own, partner), -3, -1);
}

/// The words of the last axis, a power of two of them, in order: a bitonic network (Batcher, "Sorting networks and their applications",
/// 1968), in the form where all pairs point the same way, so that what merges the runs of one length merges those of the next as well: few
/// kernels differ. A kernel takes several columns: what it computes again for its neighbours costs less than passing through memory.
UOp sorted_words(UOp words, int64_t n) {
  constexpr int columns_in_kernel = 3;
  for (int width = 1; int64_t{1} << width <= n; ++width) {
    words = exchanged(words, int64_t{1} << (width - 1), true);
    for (int left = width - 1; left > 0; --left) {
      if (left % columns_in_kernel == 0) words = contiguous(words);
      words = exchanged(words, int64_t{1} << (left - 1), false);
    }
    words = contiguous(words);
  }
  return words;
}

}  // namespace

// Key and position make one word: no two are equal, and equal keys keep their order.
SortedKeys sorted_keys(const UOp& keys, int key_bits) {
  const int64_t n = shape_of(keys).back().value();
  if (n <= longest_counted) {
    const UOp stored = contiguous(keys), order = contiguous(order_by_counting(stored, false));
    return {gather(stored, -1, order), order};
  }
  const int bits = int(std::bit_width(uint64_t(n - 1)));
  const DType word = unsigned_of(std::max(key_bits + bits, 32));
  const Scalar shift = Scalar::of(bits, word);
  const UOp words = bitwise_or(lshift(tinygrad::cast(keys, word), shift), iota(n, word));
  const int64_t whole = int64_t{1} << bits;
  const UOp sorted = sorted_words(contiguous(pad_axis(words, -1, 0, whole - n, max_value(word))), whole);
  const UOp position = bitwise_and(sorted, Scalar::of(uint64_t(whole - 1), word)), key = rshift(sorted, shift);
  return {tinygrad::cast(shrink_axis(key, -1, 0, n), keys.dtype()), tinygrad::cast(shrink_axis(position, -1, 0, n), index_dtype(n))};
}

namespace {

/// Keys whose bits do not fit a word beside the positions are ordered by their low bits, and those, keeping that order among equals, by the
/// next ones.
UOp order_by_network(const UOp& x, bool descending) {
  const UOp keys = ordered_bits(x, descending);
  const int width = int(bitsize(keys.dtype()));
  const int positions = int(std::bit_width(uint64_t(shape_of(x).back().value() - 1)));
  const int at_once = width <= 32 && width + positions <= 64 ? width : std::min(32, 64 - positions);
  if (at_once == width) return sorted_keys(keys, width).order;
  const UOp stored = contiguous(keys);
  UOp order;
  for (int bit = 0; bit < width; bit += at_once) {
    const int bits = std::min(at_once, width - bit);
    UOp part = tinygrad::cast(bit ? rshift(stored, bit) : stored, unsigned_of(bits));
    if (bits < int(bitsize(part.dtype()))) part = bitwise_and(part, Scalar::of((uint64_t{1} << bits) - 1, part.dtype()));
    const UOp next = sorted_keys(order ? gather(part, -1, order) : part, bits).order;
    order = contiguous(order ? gather(order, -1, next) : next);
  }
  return order;
}

}  // namespace

UOp argsort(const UOp& x, int axis, bool descending, const OpsContext& ctx) {
  const Shape& in = shape_of(x);
  const int a = resolve_axis("sort", axis, std::max<size_t>(in.size(), 1));
  if (in.empty()) return constant(ctx.default_int, 0);
  // From memory: computed at several places, an element could be rounded differently and be less than itself.
  const UOp t = ops::transpose(contiguous(x), a, -1);
  const SInt& n = in[size_t(a)];
  const bool by_counting = !n.known() || n.value() <= longest_counted;
  const UOp order = by_counting ? order_by_counting(t, descending) : order_by_network(t, descending);
  return ops::transpose(tinygrad::cast(order, index_dtype(n, ctx.default_int)), a, -1);
}

ValuesAndIndices sort(const UOp& x, int axis, bool descending, const OpsContext& ctx) {
  const UOp indices = argsort(x, axis, descending, ctx);
  return {rank_of(x) == 0 ? x : gather(contiguous(x), axis, indices), indices};
}

ValuesAndIndices topk(const UOp& x, int64_t k, int axis, bool largest, const OpsContext& ctx) {
  const Shape& in = shape_of(x);
  const int a = resolve_axis("topk", axis, in.size());
  if (k < 0 || surely_less(in[size_t(a)], k)) throw ValueError(fmt::format("topk: k = {} for axis {} of {}", k, a, to_string(in)));
  const UOp indices = shrink_axis(argsort(x, a, largest, ctx), a, 0, k);
  return {gather(contiguous(x), a, indices), indices};
}

}  // namespace tinygrad::ops
