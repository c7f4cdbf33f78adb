#pragma once
/// Kernels as the scheduler gives them, built by hand.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <vector>

#include "schedule/online_reduce.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::codegen::test {

inline UOp arg(int slot, int64_t size, DType dtype = DType::float32) { return param(dtype, size, ParamArg{.slot = slot}); }

inline UOp loop(int64_t size, int id) { return range(size, id); }
inline UOp reduce_loop(int64_t size, int id) { return range(size, id, AxisKind::reduce); }

inline UOp read(const UOp& memory, const UOp& at) { return load(index(memory, at)); }
inline UOp write(const UOp& memory, const UOp& at, const UOp& value) { return store(index(memory, at), value); }

inline UOp reduce_over(Op op, const UOp& x, std::vector<UOp> ranges) {
  ranges.insert(ranges.begin(), x);
  return UOp(Op::REDUCE, x.dtype(), ranges, ReduceArg{op, {}});
}

inline UOp kernel(std::vector<UOp> effects, std::vector<Opt> opts = {}, Symbol name = "k") {
  return sink(effects, KernelArg{.name = name, .opts = std::move(opts), .optimized = false});
}

inline UOp with_opts(const UOp& kernel, std::vector<Opt> opts) {
  auto arg = kernel.arg_as<KernelArg>();
  arg.opts = std::move(opts);
  return kernel.with_arg(arg);
}

inline UOp ended(const UOp& effect, std::vector<UOp> ranges) { return end(effect, ranges); }

/// How many instructions of a linear program are such.
template <class Is>
  requires std::predicate<Is, const UOp&>
size_t count(const UOp& linear, Is&& is) {
  return size_t(std::ranges::count_if(linear.src(), is));
}
inline size_t count(const UOp& linear, Op op) {
  return count(linear, [op](const UOp& u) { return u.is(op); });
}
/// An address in memory of the work-group.
inline bool is_group(const UOp& place) {
  return place.is(Op::INDEX) && place.src(0).is(Op::BUFFER) && place.src(0).arg_as<BufferArg>().scope == Scope::group;
}

/// out[i] = a[i] * b[i] + 1
inline UOp elementwise(int64_t n, std::vector<Opt> opts = {}, DType dtype = DType::float32) {
  const UOp i = loop(n, 0);
  const UOp value = read(arg(1, n, dtype), i) * read(arg(2, n, dtype), i) + 1;
  return kernel({ended(write(arg(0, n, dtype), i, value), {i})}, std::move(opts));
}

/// out[i] = sum over k of a[i, k]
inline UOp row_sums(int64_t m, int64_t k_size, std::vector<Opt> opts = {}, Op op = Op::ADD, DType dtype = DType::float32) {
  const UOp i = loop(m, 0), k = reduce_loop(k_size, 1);
  const UOp sum = reduce_over(op, read(arg(1, m * k_size, dtype), i * k_size + k), {k});
  return kernel({ended(write(arg(0, m, dtype), i, sum), {i})}, std::move(opts));
}

/// C[i, j] = sum over k of A[i, k] * B[k, j]
inline UOp matmul(int64_t m, int64_t n, int64_t k_size, std::vector<Opt> opts = {}) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(k_size, 2);
  const UOp product = read(arg(1, m * k_size), i * k_size + k) * read(arg(2, k_size * n), k * n + j);
  return kernel({ended(write(arg(0, m * n), i * n + j, reduce_over(Op::ADD, product, {k})), {i, j})}, std::move(opts));
}

/// out[i, j] = sum over k of a[i, k] * b[k, j] + r[i, j]; `in_place`: r is out
inline UOp product_and_sum(int64_t m, int64_t n, int64_t k_size, bool in_place = false) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(k_size, 2), at = i * n + j;
  const UOp sum = reduce_over(Op::ADD, read(arg(1, m * k_size), i * k_size + k) * read(arg(2, k_size * n), k * n + j), {k});
  return kernel({ended(write(arg(0, m * n), at, sum + read(arg(in_place ? 0 : 3, m * n), at)), {i, j})});
}

/// out[i, j] = sum over k of a[i, k] * b[k, j] + sum over l of c[i, l] * d[l, j]: two loops, one after another
inline UOp two_products(int64_t m, int64_t n, int64_t k_size, int64_t l_size, std::vector<Opt> opts = {}) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(k_size, 2), l = reduce_loop(l_size, 3);
  const UOp first = read(arg(1, m * k_size), i * k_size + k) * read(arg(2, k_size * n), k * n + j);
  const UOp second = read(arg(3, m * l_size), i * l_size + l) * read(arg(4, l_size * n), l * n + j);
  const UOp sum = reduce_over(Op::ADD, first, {k}) + reduce_over(Op::ADD, second, {l});
  return kernel({ended(write(arg(0, m * n), i * n + j, sum), {i, j})}, std::move(opts));
}

/// out[i, j] = exp2(x[i, j] - max over k) / sum over k of the same, the two reductions sharing their range
/// out[i, j] = 0.9 * out[i, j] + sum over k of (gate[j, k] > 0 ? b[j, k] : 0) * a[i, k]: in place, as an optimizer's update of a weight
/// whose gradient comes through a rectifier
inline UOp gated_update(int64_t m, int64_t n, int64_t k_size, std::vector<Opt> opts = {}) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(k_size, 2), zero = constant(DType::float32, 0), at = j * k_size + k;
  const UOp b = where(zero < read(arg(2, k_size * n), at), read(arg(3, k_size * n), at), zero);
  const UOp sum = reduce_over(Op::ADD, read(arg(1, m * k_size), i * k_size + k) * b, {k}), out = arg(0, m * n);
  const UOp kept = read(out, i * n + j) * constant(DType::float32, 0.9);
  return kernel({ended(write(out, i * n + j, kept + sum), {i, j})}, std::move(opts));
}

inline UOp softmax(int64_t m, int64_t n, std::vector<Opt> opts = {}) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(n, 2), x = arg(1, m * n);
  const UOp at_k = read(x, i * n + k), top = reduce_over(Op::MAX, at_k, {k});
  const UOp sum = reduce_over(Op::ADD, alu(Op::EXP2, {at_k - top}), {k});
  const UOp value = alu(Op::FDIV, {alu(Op::EXP2, {read(x, i * n + j) - top}), sum});
  return kernel({ended(write(arg(0, m * n), i * n + j, value), {i, j})}, std::move(opts));
}

/// (value, index) of the largest element of each row, ties to the smaller index: a general REDUCE
inline UOp argmax(int64_t m, int64_t n, std::vector<Opt> opts = {}) {
  const auto slot = [](DType d, int s) { return UOp(Op::PARAM, d, {}, ParamArg{.slot = s}); };
  const UOp v0 = slot(DType::float32, 0), i0 = slot(DType::int32, 1), v1 = slot(DType::float32, 2), i1 = slot(DType::int32, 3);
  const UOp better = (v0 < v1) | (eq(v0, v1) & (i1 < i0));
  const UOp body = UOp(Op::FUNCTION, DType::void_, {UOp(Op::TUPLE, DType::void_, {where(better, v1, v0), where(better, i1, i0)})},
                       FunctionArg{"argmax"});
  const UOp i = loop(m, 0), k = reduce_loop(n, 1);
  const UOp values = UOp(Op::TUPLE, DType::void_, {read(arg(2, m * n), i * n + k), cast(k, DType::int32)});
  const UOp identities = UOp(Op::TUPLE, DType::void_, {constant(min_value(DType::float32)), constant(DType::int32, int64_t{INT32_MAX})});
  const UOp both = UOp(Op::REDUCE, DType::void_, {values, identities, body, body, k}, ReduceArg{Op::FUNCTION, {}});
  const UOp top = UOp(Op::GETTUPLE, DType::float32, {both}, TupleArg{0}), at = UOp(Op::GETTUPLE, DType::int32, {both}, TupleArg{1});
  return kernel({ended(group(std::vector<UOp>{write(arg(0, m), i, top), write(arg(1, m, DType::int32), i, at)}), {i})}, std::move(opts));
}

/// out[i, d] = sum over k of exp2(score) * v[k, d] / the same without v, score[i, k] = sum over c of q[i, c] * keys[k, c]: what is carried
/// of the sums is measured from the largest score so far
inline UOp attention(int64_t m, int64_t n, int64_t width, std::vector<Opt> opts = {}) {
  const auto f = DType::float32;
  const auto slot = [&](int s) { return UOp(Op::PARAM, f, {}, ParamArg{.slot = s}); };
  const auto exp2 = [](const UOp& x) { return UOp(Op::EXP2, f, {x}); };
  const auto function = [](std::vector<UOp> values) {
    return UOp(Op::FUNCTION, DType::void_, {UOp(Op::TUPLE, DType::void_, values)}, FunctionArg{"attention"});
  };
  const UOp top = max(slot(0), slot(3)), old = exp2(slot(0) - top), now = exp2(slot(3) - top);
  const UOp step = function({top, slot(1) * old + now, slot(2) * old + now * slot(4)});
  const UOp merge = function({top, slot(1) * old + slot(4) * now, slot(2) * old + slot(5) * now});
  const UOp i = loop(m, 0), d = loop(width, 1), k = reduce_loop(n, 2), c = reduce_loop(width, 3);
  const UOp score = reduce_over(Op::ADD, read(arg(1, m * width), i * width + c) * read(arg(2, n * width), k * width + c), {c});
  const UOp values = UOp(Op::TUPLE, DType::void_, {score, read(arg(3, n * width), k * width + d)});
  const UOp identities = UOp(Op::TUPLE, DType::void_, {constant(f, -1e30), constant(f, 0), constant(f, 0)});
  const UOp sums = UOp(Op::REDUCE, DType::void_, {values, identities, step, merge, k}, ReduceArg{Op::FUNCTION, {}});
  const auto sum = [&](int number) { return UOp(Op::GETTUPLE, f, {sums}, TupleArg{number}); };
  return kernel({ended(write(arg(0, m * width), i * width + d, UOp(Op::FDIV, f, {sum(2), sum(1)})), {i, d})}, std::move(opts));
}

/// The same as the scheduler makes it: a maximum with each of two sums. With the mask no i sees a k behind it.
inline UOp joined_attention(int64_t m, int64_t n, int64_t width, std::vector<Opt> opts = {}, bool masked = false, int64_t channels = 0) {
  const auto f = DType::float32;
  const int64_t wide = channels ? channels : width;
  const UOp i = loop(m, 0), d = loop(wide, 1), c = reduce_loop(width, 2), k = reduce_loop(n, 3);
  const UOp product = reduce_over(Op::ADD, read(arg(1, m * width), i * width + c) * read(arg(2, n * width), k * width + c), {c});
  const UOp score = masked ? where(cast(i, DType::int32) < cast(k, DType::int32), constant(min_value(f)), product) : product;
  const UOp weight(Op::EXP2, f, {score - reduce_over(Op::MAX, score, {k})});
  const auto sum = [&](const UOp& x) { return reduce_over(Op::ADD, x, {k}); };
  std::vector<UOp> stored{UOp(Op::FDIV, f, {sum(weight * read(arg(3, n * wide), k * wide + d)), sum(weight)})};
  int32_t next_range = schedule::next_range_of(stored);
  schedule::join_reduces(stored, Target{}, next_range);
  return kernel({ended(write(arg(0, m * wide), i * wide + d, stored[0]), {i, d})}, std::move(opts));
}

/// out[i, j] = sum over k from j to i + ahead of a[i, k] * b[k, j]: a product of triangles
inline UOp triangles(int64_t n, int64_t ahead, std::vector<Opt> opts = {}) {
  const UOp i = loop(n, 0), j = loop(n, 1), k = reduce_loop(n, 2);
  const UOp product = read(arg(1, n * n), i * n + k) * read(arg(2, n * n), k * n + j);
  const UOp term = where((k < i + (ahead + 1)) & logical_not(k < j), product, constant(DType::float32, 0));
  return kernel({ended(write(arg(0, n * n), i * n + j, reduce_over(Op::ADD, term, {k})), {i, j})}, std::move(opts));
}

/// out[i, j] = 2 * (sum over k of a[i, k] * b[j, k]) where j <= i, else -1: the masked scores of attention
inline UOp masked_products(int64_t m, int64_t n, int64_t k_size, std::vector<Opt> opts = {}) {
  const UOp i = range(index_const(m), {.id = 0}), j = range(index_const(n), {.id = 1, .order = 1});
  const UOp k = range(index_const(k_size), {.id = 2, .kind = AxisKind::reduce, .order = 2});
  const UOp sum = reduce_over(Op::ADD, read(arg(1, m * k_size), i * k_size + k) * read(arg(2, n * k_size), j * k_size + k), {k});
  const UOp value = where(i < j, constant(DType::float32, -1), sum * constant(DType::float32, 2));
  return kernel({ended(write(arg(0, m * n), i * n + j, value), {i, j})}, std::move(opts));
}

/// out[i, j] = sum over k of exp2(s[i, k] - m[i]) * (p[i, k] - n[i]) * v[k, j]; of a transposed s and p their [k, i]; where masked, of k <=
/// i alone: the gradient of attention's queries or keys
inline UOp weighted_sums(int64_t m, int64_t n, int64_t k_size, bool transposed, bool masked, std::vector<Opt> opts = {}) {
  const UOp i = range(index_const(m), {.id = 0}), j = range(index_const(n), {.id = 1, .order = 1});
  const UOp k = range(index_const(k_size), {.id = 2, .kind = AxisKind::reduce, .order = 2}), counts = k < i + 1;
  const UOp at = transposed ? k * m + i : i * k_size + k, zero = constant(DType::float32, 0);
  UOp score = read(arg(1, m * k_size), at);
  if (masked) score = where(counts, score, constant(DType::float32, -std::numeric_limits<double>::infinity()));
  UOp weight = alu(Op::EXP2, {score - read(arg(2, m), i)}) * (read(arg(3, m * k_size), at) - read(arg(4, m), i));
  if (masked) weight = where(counts, weight, zero);
  return kernel({ended(write(arg(0, m * n), i * n + j, reduce_over(Op::ADD, weight * read(arg(5, k_size * n), k * n + j), {k})), {i, j})},
                std::move(opts));
}

/// out[i, j] = sum over r, c and d of x[d, i - r, j - c] * w[d, r, c], 0 for what x lacks: the gradient of a convolution's input
inline UOp convolution_adjoint(int64_t size, int64_t window, int64_t channels, std::vector<Opt> opts = {}) {
  const auto reduced = [](int64_t n, int id) { return range(index_const(n), {.id = id, .kind = AxisKind::reduce, .order = id}); };
  const int64_t n = size - window + 1;
  const UOp i = range(index_const(size), {.id = 0}), j = range(index_const(size), {.id = 1, .order = 1});
  const UOp r = reduced(window, 2), c = reduced(window, 3), d = reduced(channels, 4), y = i - r, x = j - c;
  const UOp valid = logical_not(y < 0) & (y < n) & logical_not(x < 0) & (x < n);
  const UOp product = load(index_valid(arg(1, channels * n * n), d * (n * n) + y * n + x, valid)) *
                      read(arg(2, channels * window * window), d * (window * window) + r * window + c);
  const UOp sum = reduce_over(Op::ADD, where(valid, product, constant(DType::float32, 0)), {r, c, d});
  return kernel({ended(write(arg(0, size * size), i * size + j, sum), {i, j})}, std::move(opts));
}

/// out[i] = sum over j of (j < i ? rows[j] : 0) + sum over j of rows[j], rows being sums of a: two loops with the same loop inside
inline UOp nested_sums(int64_t m, int64_t n, std::vector<Opt> opts = {}) {
  const UOp i = loop(m, 0), j = reduce_loop(m, 1), k = reduce_loop(n, 2);
  const UOp row = reduce_over(Op::ADD, read(arg(1, m * n), j * n + k), {k});
  const UOp below = reduce_over(Op::ADD, where(j < i, row, constant(DType::float32, 0)), {j}), all = reduce_over(Op::ADD, row, {j});
  return kernel({ended(write(arg(0, m), i, below + all), {i})}, std::move(opts));
}

/// out[i] = a[i] + sum over k of b[k], and the sum into every other[j]: two loop nests with one loop of a reduction
inline UOp nests_of_one_sum(int64_t m, int64_t n, std::vector<Opt> opts = {}) {
  const UOp i = loop(m, 0), j = loop(m, 1), k = reduce_loop(n, 2), sum = reduce_over(Op::ADD, read(arg(3, n), k), {k});
  return kernel({ended(write(arg(0, m), i, read(arg(2, m), i) + sum), {i}), ended(write(arg(1, m), j, sum), {j})}, std::move(opts));
}

/// out[i] = table[i + sum over k of shift[k]] + sum over k of a[i, k]: the sums share a loop, and one is in the address of a vector
inline UOp shifted_by_a_sum(int64_t m, int64_t n, std::vector<Opt> opts = {}) {
  const UOp i = loop(m, 0), k = reduce_loop(n, 1);
  const UOp shift = reduce_over(Op::ADD, read(arg(2, n, DType::int32), k), {k});
  const UOp sum = reduce_over(Op::ADD, read(arg(1, m * n), i * n + k), {k});
  return kernel({ended(write(arg(0, m), i, read(arg(3, m + 4 * n), i + cast(shift, DType::index)) + sum), {i})}, std::move(opts));
}

/// out[j, i] = a[j, i] where i < width and j < m - 1, else 0, i < 16
inline UOp narrow_rows(int64_t m, int64_t width, std::vector<Opt> opts = {}) {
  const UOp j = loop(m, 0), i = loop(16, 1);
  const UOp value = load(index_valid(arg(1, m * width, DType::int32), j * width + i, (i < width) & (j < m - 1)));
  return kernel({ended(write(arg(0, m * 16, DType::int32), j * 16 + i, value), {j, i})}, std::move(opts));
}

/// out[i] = a[i - before] where that exists, else 0
inline UOp padded(int64_t n, int64_t before, int64_t after, std::vector<Opt> opts = {}) {
  const UOp i = loop(before + n + after, 0), at = i - before;
  const UOp valid = logical_not(i < before) & (i < before + n);
  return kernel({ended(write(arg(0, before + n + after), i, load(index_valid(arg(1, n), at, valid))), {i})}, std::move(opts));
}

/// out[i, j] = a[i - by, j], 0 for the rows that a lacks
inline UOp shifted_rows(int64_t rows, int64_t columns, int64_t by, DType dtype = DType::float32) {
  const UOp i = loop(rows, 0), j = loop(columns, 1), from = i - by, valid = logical_not(from < 0) & (from < rows);
  const UOp x = load(index_valid(arg(1, rows * columns, dtype), from * columns + j, valid));
  return kernel({ended(write(arg(0, rows * columns, dtype), i * columns + j, x), {i, j})});
}

/// The same kernel of arguments that share no memory.
inline UOp apart(const UOp& kernel) {
  NodeMap<UOp> map;
  for (const UOp& u : toposort(kernel)) {
    if (!u.is(Op::PARAM) || u.src_count() == 0) continue;
    const int32_t slot = u.arg_as<ParamArg>().slot;
    map[u] = u.with_arg(ParamArg{.slot = slot, .alias = uint16_t(slot + 1)});
  }
  return substitute(kernel, map);
}

/// out[i] = a[indices[i]]
inline UOp gather(int64_t n, int64_t table, std::vector<Opt> opts = {}) {
  const UOp i = loop(n, 0), at = cast(read(arg(2, n, DType::int32), i), DType::index);
  return kernel({ended(write(arg(0, n), i, read(arg(1, table), at)), {i})}, std::move(opts));
}

/// out[i] = table[sum over k of indices[i, k]]
inline UOp gather_of_sums(int64_t m, int64_t n, std::vector<Opt> opts = {}) {
  const UOp i = loop(m, 0), k = reduce_loop(n, 1), sum = reduce_over(Op::ADD, read(arg(1, m * n, DType::int32), i * n + k), {k});
  return kernel({ended(write(arg(0, m), i, read(arg(2, 100), cast(sum, DType::index))), {i})}, std::move(opts));
}

/// out[i] += sum over k of a[i, k]
inline UOp running_sums(int64_t m, int64_t n, std::vector<Opt> opts = {}) {
  const UOp i = loop(m, 0), k = reduce_loop(n, 1), sum = reduce_over(Op::ADD, read(arg(1, m * n), i * n + k), {k});
  return kernel({ended(write(arg(0, m), i, read(arg(0, m), i) + sum), {i})}, std::move(opts));
}

/// matmul of float16, summed up in float32; the number of rows and of products may be variables, up to m and k_size.
inline UOp half_matmul(int64_t m, int64_t n, int64_t k_size, bool symbolic = false, std::vector<Opt> opts = {}) {
  const UOp rows = symbolic ? variable("m", 1, m) : index_const(m), terms = symbolic ? variable("k", 1, k_size) : index_const(k_size);
  const UOp i = range(rows, {.id = 0}), j = loop(n, 1), k = range(terms, {.id = 2, .kind = AxisKind::reduce});
  const UOp a = read(arg(1, m * k_size, DType::float16), i * k_size + k), b = read(arg(2, k_size * n, DType::float16), k * n + j);
  const UOp product = cast(a, DType::float32) * cast(b, DType::float32);
  return kernel({ended(write(arg(0, m * n), i * n + j, reduce_over(Op::ADD, product, {k}) + 1), {i, j})}, std::move(opts));
}

/// out[i, j] = sum over k of a[i, k] * b[k, j], of narrow numbers in a wide one
inline UOp narrow_matmul(int64_t m, int64_t n, int64_t k_size, DType a_type, DType b_type, DType out) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(k_size, 2);
  const UOp a = read(arg(1, m * k_size, a_type), i * k_size + k), b = read(arg(2, k_size * n, b_type), k * n + j);
  return kernel({ended(write(arg(0, m * n, out), i * n + j, reduce_over(Op::ADD, cast(a, out) * cast(b, out), {k})), {i, j})});
}

/// out[i, j] = sum over k and l of a[i, k, l] * (k < j ? b[k, l, j] : 0), of narrow numbers in a wide one
inline UOp narrow_triangle(int64_t m, int64_t n, int64_t k_size, int64_t l_size, DType a_type, DType b_type, DType out) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(k_size, 2), l = reduce_loop(l_size, 3), at = k * l_size + l;
  const UOp a = read(arg(1, m * k_size * l_size, a_type), i * (k_size * l_size) + at),
            b = read(arg(2, k_size * l_size * n, b_type), at * n + j);
  const UOp product = cast(a, out) * cast(where(k < j, b, constant(b_type, 0)), out);
  return kernel({ended(write(arg(0, m * n, out), i * n + j, reduce_over(Op::ADD, product, {l, k})), {i, j})});
}

/// out[i] = sum over k < n of a[i, k] for i < m, where m and n are variables
inline UOp symbolic_row_sums(int64_t most_m, int64_t most_n, std::vector<Opt> opts = {}) {
  const UOp i = range(variable("m", 1, most_m), {.id = 0}), k = range(variable("n", 1, most_n), {.id = 1, .kind = AxisKind::reduce});
  const UOp sum = reduce_over(Op::ADD, read(arg(1, most_m * most_n), i * most_n + k), {k});
  return kernel({ended(write(arg(0, most_m), i, sum), {i})}, std::move(opts));
}

/// out[j, i] = a[i, j]
inline UOp transpose(int64_t m, int64_t n, std::vector<Opt> opts = {}) {
  const UOp i = loop(m, 0), j = loop(n, 1);
  return kernel({ended(write(arg(0, m * n), j * m + i, read(arg(1, m * n), i * n + j)), {i, j})}, std::move(opts));
}

/// out[o, x] = sum over c, w of a[c, x + w - 1] * b[o, c, w], with zeros around a
inline UOp convolution(int64_t out_channels, int64_t n, int64_t channels, int64_t width, std::vector<Opt> opts = {}) {
  const UOp o = loop(out_channels, 0), x = loop(n, 1), c = reduce_loop(channels, 2), w = reduce_loop(width, 3), at = x + w - 1;
  const UOp a = load(index_valid(arg(1, channels * n), c * n + at, logical_not(at < 0) & (at < n)));
  const UOp b = read(arg(2, out_channels * channels * width), (o * channels + c) * width + w);
  return kernel({ended(write(arg(0, out_channels * n), o * n + x, reduce_over(Op::ADD, a * b, {c, w})), {o, x})}, std::move(opts));
}

}  // namespace tinygrad::codegen::test
