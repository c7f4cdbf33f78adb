#include "codegen/opt/tensor_core.h"

#include <algorithm>

#include <fmt/core.h>

#include "codegen/opt/kernel_axes.h"
#include "codegen/opt/opt_error.h"
#include "codegen/opt/split_range.h"
#include "codegen/reduce_op.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

/// A sum of products as a core takes it: of a over (m, k) and b over (k, n).
struct Product {
  UOp reduce;
  UOp a, b;
  UOp m, n, k;  ///< RANGEs
};

bool depends_on(const UOp& u, const UOp& range) { return is_open_over(u, std::span(&range, 1)); }

/// `x` before it was cast to the accumulator's dtype; null if it has another.
UOp factor(const UOp& x, const TensorCore& core) {
  if (x.dtype() == core.in) return x;
  return x.is(Op::CAST) && x.src(0).dtype() == core.in ? x.src(0) : UOp();
}

/// The factors of a product that is summed up in the core's dtype. A product in the narrow dtype is taken unrounded, as by MULACC.
std::optional<std::pair<UOp, UOp>> factors(const UOp& reduce, const TensorCore& core) {
  if (is_general_reduce(reduce) || reduce.arg_as<ReduceArg>().op != Op::ADD || reduce.dtype() != core.out) return std::nullopt;
  UOp x = reduce.src(0);
  if (x.is(Op::CAST) && x.src(0).dtype() == core.in) x = UOp(x.src(0));
  if (!x.is(Op::MUL)) return std::nullopt;
  const UOp a = factor(x.src(0), core), b = factor(x.src(1), core);
  if (!a || !b) return std::nullopt;
  return std::pair(a, b);
}

/// The last of the ranges that `a` moves with and `b` does or does not.
UOp last_of(std::span<const UOp> ranges, const UOp& a, const UOp& b, bool both) {
  for (size_t i = ranges.size(); i-- > 0;)
    if (depends_on(a, ranges[i]) && depends_on(b, ranges[i]) == both) return ranges[i];
  return {};
}

std::optional<Product> find_product(const UOp& sink, const TensorCore& core) {
  std::vector<UOp> loops;
  for (const UOp& r : kernel_axes(sink))
    if (r.arg_as<RangeArg>().kind == AxisKind::loop) loops.push_back(r);
  const auto place = [&](const UOp& r) { return std::find(loops.begin(), loops.end(), r) - loops.begin(); };
  for (const UOp& u : toposort(sink)) {
    if (!u.is(Op::REDUCE)) continue;
    const auto f = factors(u, core);
    if (!f) continue;
    auto [a, b] = *f;
    UOps reduced;
    for (const UOp& r : closed_ranges(u))
      if (r.arg_as<RangeArg>().kind == AxisKind::reduce) reduced.push_back(r);
    const UOp k = last_of(reduced, a, b, true);
    UOp m = last_of(loops, a, b, false), n = last_of(loops, b, a, false);
    if (!k || !m || !n) continue;
    if (place(m) > place(n)) std::swap(a, b), std::swap(m, n);  // neighbours along n are held together
    return Product{u, a, b, m, n, k};
  }
  return std::nullopt;
}

using Bits = std::vector<TensorCore::Bit>;

/// The row or column number of an element: runs of bits that stand together are moved together.
UOp number_of(const Bits& bits, const UOp& item, const UOp& element) {
  UOp sum = index_const(0);
  for (size_t i = 0; i < bits.size();) {
    size_t end = i + 1;
    while (end < bits.size() && bits[end] == TensorCore::Bit{bits[i].of_element, uint8_t(bits[i].n + (end - i))}) ++end;
    const UOp& from = bits[i].of_element ? element : item;
    sum = sum + floor_mod(floor_div(from, int64_t{1} << bits[i].n), int64_t{1} << (end - i)) * (int64_t{1} << i);
    i = end;
  }
  return sum;
}

class TensorCoreUse {
 public:
  TensorCoreUse(const UOp& sink, const Product& product, const TensorCore& core)
      : sink_(sink), p_(product), core_(core), next_range_(next_range_id(sink)) {
    // Neighbouring items of a core are neighbours in the group: their axis is the innermost of all.
    constexpr int32_t innermost = 1 << 20;
    item_ = range(index_const(core.items), {.id = next_range_++, .kind = AxisKind::local, .order = innermost});
    element_ =
        range(index_const(core.c.elements()), {.id = next_range_++, .kind = AxisKind::upcast, .order = p_.n.arg_as<RangeArg>().order});
    m_ = outer(p_.m, core.m);
    n_ = outer(p_.n, core.n);
    k_ = outer(p_.k, core.k);
  }

  UOp run() {
    NodeMap<UOp> map;
    const UOp sum = held_element(multiplied());
    map[p_.reduce] = sum;
    const UOp kernel = substitute(sink_, map);
    const UOp rows = apply_split(kernel, tile(p_.m, m_, core_.m, number_of(core_.c.row, item_, element_), {m_}));
    return apply_split(rows, tile(p_.n, n_, core_.n, number_of(core_.c.column, item_, element_), {n_, item_, element_}));
  }

 private:
  static UOp outer(const UOp& range, int64_t n) { return UOp(Op::RANGE, DType::index, {rounds_of(range, n)}, range.arg()); }

  static Split tile(const UOp& range, const UOp& outer, int64_t n, const UOp& inside, UOps parts) {
    Split s{.range = range, .parts = std::move(parts), .value = outer * n + inside, .valid = {}};
    if (const int64_t size = constant_size(range); size == 0 || size % n != 0) s.valid = s.value < range.src(0);
    return s;
  }

  /// Element `e` that the item holds of a matrix, of which k is the rows or the columns. Beyond the end of k it is 0.
  UOp fragment(const UOp& x, const Split& other, const Split& along_k) const {
    const UOp value = apply_split(apply_split(x, other), along_k);
    return along_k.valid ? where(along_k.valid, value, constant(core_.in, 0)) : value;
  }

  UOps fragments_of_a() const {
    UOps out;
    for (int e = 0; e < core_.a.elements(); ++e)
      out.push_back(fragment(p_.a, tile(p_.m, m_, core_.m, number_of(core_.a.row, item_, index_const(e)), {}),
                             tile(p_.k, k_, core_.k, number_of(core_.a.column, item_, index_const(e)), {})));
    return out;
  }
  UOps fragments_of_b() const {
    UOps out;
    for (int e = 0; e < core_.b.elements(); ++e)
      out.push_back(fragment(p_.b, tile(p_.n, n_, core_.n, number_of(core_.b.column, item_, index_const(e)), {}),
                             tile(p_.k, k_, core_.k, number_of(core_.b.row, item_, index_const(e)), {})));
    return out;
  }

  /// The sum as a general REDUCE that carries what an item holds of c.
  UOp multiplied() const {
    UOps x = fragments_of_a();
    const UOps b = fragments_of_b();
    x.append(b.begin(), b.end());
    const auto held = size_t(core_.c.elements());
    const UOps zeros(held, constant(core_.out, 0));
    UOps sources{tuple(x), tuple(zeros), step(), merge()};
    for (const UOp& r : closed_ranges(p_.reduce)) sources.push_back(r == p_.k ? k_ : r);
    return UOp(Op::REDUCE, DType::void_, sources, ReduceArg{Op::FUNCTION, {}});
  }

  static UOp tuple(const UOps& values) { return UOp(Op::TUPLE, DType::void_, values); }
  static UOp function(const UOps& values) { return UOp(Op::FUNCTION, DType::void_, {tuple(values)}, FunctionArg{"wmma"}); }
  static UOps params(DType dtype, int first, int count) {
    UOps out;
    for (int i = 0; i < count; ++i) out.push_back(UOp(Op::PARAM, dtype, {}, ParamArg{.slot = first + i}));
    return out;
  }

  UOp step() const {
    const int c = core_.c.elements(), a = core_.a.elements();
    const UOp product(Op::WMMA, core_.out,
                      {stack(params(core_.in, c, a)), stack(params(core_.in, c + a, core_.b.elements())), stack(params(core_.out, 0, c))},
                      WmmaArg{core_.name, core_.m, core_.n, core_.k, core_.in, core_.out});
    UOps held;
    for (int i = 0; i < c; ++i) held.push_back(UOp(Op::INDEX, core_.out, {product, index_const(i)}, IndexArg{}));
    return function(held);
  }

  UOp merge() const {
    const int c = core_.c.elements();
    const UOps first = params(core_.out, 0, c), second = params(core_.out, c, c);
    UOps sums;
    for (size_t i = 0; i < first.size(); ++i) sums.push_back(first[i] + second[i]);
    return function(sums);
  }

  /// The one of the held elements that the upcast axis names.
  UOp held_element(const UOp& reduce) const {
    const UOps held = reduce_results(reduce);
    UOp out = held.back();
    for (size_t i = held.size() - 1; i-- > 0;) out = where(eq(element_, index_const(int64_t(i))), held[i], out);
    return out;
  }

  const UOp sink_;
  const Product& p_;
  const TensorCore& core_;
  int32_t next_range_;
  UOp item_, element_, m_, n_, k_;
};

}  // namespace

std::optional<TensorCoreAxes> tensor_core_axes(const UOp& sink, const TensorCore& core) {
  const auto p = find_product(sink, core);
  if (!p) return std::nullopt;
  return TensorCoreAxes{p->m, p->n, p->k};
}

bool has_tensor_core(const UOp& sink) {
  for (const UOp& u : toposort(sink, Scopes::enter))
    if (u.is(Op::WMMA)) return true;
  return false;
}

UOp apply_tensor_core(const UOp& sink, const Opt& opt, const Target& target) {
  const auto count = int32_t(target.tensor_cores.size());
  if (opt.arg < -1 || opt.arg >= count) opt_error(opt, fmt::format("the target has {} tensor cores", count));
  if (has_tensor_core(sink)) opt_error(opt, "the kernel uses a tensor core already");
  for (const UOp& u : toposort(sink))
    if (u.is(Op::RANGE) && u.arg_as<RangeArg>().kind == AxisKind::lane) opt_error(opt, "the kernel has a vector axis");
  for (int32_t i = std::max(opt.arg, 0); i < (opt.arg < 0 ? count : opt.arg + 1); ++i) {
    const TensorCore& core = target.tensor_cores[size_t(i)];
    if (const auto product = find_product(sink, core)) return TensorCoreUse(sink, *product, core).run();
  }
  opt_error(opt, "the kernel has no sum of products over two output axes in the dtypes of the tensor core");
}

}  // namespace tinygrad::codegen
