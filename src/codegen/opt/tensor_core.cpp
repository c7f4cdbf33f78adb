#include "codegen/opt/tensor_core.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "codegen/kernel_axes.h"
#include "codegen/opt/opt_error.h"
#include "codegen/rebuild.h"
#include "codegen/reduce_op.h"
#include "codegen/split_range.h"
#include "shape/ranges.h"
#include "target/tensor_cores/registers.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

/// A sum of products as a core takes it: `a` depends on (m, k), `b` on (k, n).
struct Product {
  UOp reduce;
  UOp a, b;
  UOp m, n, k;              ///< RANGEs
  UOps casts;               ///< to the accumulator's dtype
  bool is_shifted = false;  ///< `a` has numbers that are less, or more, half of their range
};

bool depends_on(const UOp& u, const UOp& range) { return is_open_over(u, std::span(&range, 1)); }

/// True if the integer `dtype` has all numbers of the other one, which is shorter.
bool holds(DType dtype, DType shorter) {
  return is_int(dtype) && is_int(shorter) && itemsize(shorter) < itemsize(dtype) && (is_unsigned(shorter) || !is_unsigned(dtype));
}

/// The integer of the dtype that has the highest of its bits alone.
UOp highest_bit(DType dtype) { return constant(Scalar::from_uint(uint64_t{1} << (bitsize(dtype) - 1), dtype)); }

/// `x` before it was cast to the accumulator's dtype, or a shorter integer in the core's; null if it has another.
UOp factor(const UOp& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (!x.is(Op::CAST)) return {};
  if (x.src(0).dtype() == dtype) return x.src(0);
  return holds(dtype, x.src(0).dtype()) ? cast(x.src(0), dtype) : UOp();
}

/// The numbers of `x`, before they were cast, as integers of the other sign: less half of their range, or more. That is their highest bit.
UOp shifted_factor(const UOp& x, const TensorCore& core) {
  const UOp from = x.is(Op::CAST) ? UOp(x.src(0)) : x;
  const DType d = from.dtype();
  if (!shifts_a(core) || !is_int(d) || itemsize(d) != itemsize(core.a_type) || d == core.a_type) return {};
  return bitcast(alu(Op::XOR, {from, highest_bit(d)}), core.a_type);
}

/// The factors of a sum in the core's dtype. A product in a narrow float is not rounded, as in MULACC.
std::optional<std::pair<UOp, UOp>> factors(const UOp& reduce, const TensorCore& core) {
  if (is_general_reduce(reduce) || reduce.arg_as<ReduceArg>().op != Op::ADD || reduce.dtype() != core.out) return std::nullopt;
  UOp x = reduce.src(0);
  if (x.is(Op::CAST) && is_float(core.out) && x.src(0).dtype() == core.a_type) x = UOp(x.src(0));
  if (!x.is(Op::MUL)) return std::nullopt;
  return std::pair(x.src(0), x.src(1));
}

/// The last range on which `a` depends and on which `b` does, or does not, depend; preferably one that `n` divides.
UOp last_of(std::span<const UOp> ranges, const UOp& a, const UOp& b, bool both, int64_t n = 1) {
  UOp any;
  for (size_t i = ranges.size(); i-- > 0;) {
    if (!depends_on(a, ranges[i]) || depends_on(b, ranges[i]) != both) continue;
    if (constant_size(ranges[i]) != 0 && constant_size(ranges[i]) % n == 0) return ranges[i];
    if (!any) any = ranges[i];
  }
  return any;
}

std::optional<Product> find_product(const UOp& sink, const TensorCore& core) {
  std::vector<UOp> loops;
  // An axis that was unrolled as a whole has a loop of size 1 left, whose split would be itself.
  for (const UOp& r : kernel_axes(sink))
    if (r.arg_as<RangeArg>().kind == AxisKind::loop && constant_size(r) != 1) loops.push_back(r);
  const auto place = [&](const UOp& r) { return std::find(loops.begin(), loops.end(), r) - loops.begin(); };
  for (const UOp& u : toposort(sink)) {
    if (!u.is(Op::REDUCE)) continue;
    const auto f = factors(u, core);
    if (!f) continue;
    auto [a, b] = *f;
    UOps reduced;
    for (const UOp& r : closed_ranges(u))
      if (r.arg_as<RangeArg>().kind == AxisKind::reduce) reduced.push_back(r);
    const UOp k = last_of(reduced, a, b, true, core.k);
    UOp m = last_of(loops, a, b, false), n = last_of(loops, b, a, false);
    if (!k || !m || !n) continue;
    if (place(m) > place(n)) std::swap(a, b), std::swap(m, n);  // neighbours along n are held together
    UOps casts;
    for (const UOp& x : {UOp(u.src(0)), a, b})
      if (x.is(Op::CAST) && x.dtype() == core.out) casts.push_back(x);
    b = factor(b, core.b_type);
    const UOp as_it_is = factor(a, core.a_type), shifted = as_it_is ? UOp() : shifted_factor(a, core);
    if (b && (as_it_is || shifted)) return Product{u, as_it_is ? as_it_is : shifted, b, m, n, k, casts, bool(shifted)};
  }
  return std::nullopt;
}

/// True if the factor is loaded as it is and neighbours in the core's memory are neighbours in the argument, 16 bytes of them.
bool lies_as_read(const UOp& x, const TensorCore::Layout& layout, const UOp& row, const UOp& column) {
  if (!x.is(Op::LOAD) || x.src(0).src_count() != 2) return false;
  const bool in_columns = layout.row[0] == TensorCore::Bit{true, 0};
  const auto along = stride_of(x.src(0).src(1), in_columns ? row : column), across = stride_of(x.src(0).src(1), in_columns ? column : row);
  return along == 1 && across && *across % int64_t(16 / itemsize(x.dtype())) == 0;
}

bool is_argument(UOp x) {
  if (x.is(Op::BITCAST) && x.src(0).is(Op::XOR) && const_value(x.src(0).src(1))) x = UOp(x.src(0).src(0));  // it is shifted
  while (x.is(Op::CAST)) x = UOp(x.src(0));
  return x.is(Op::LOAD);
}

bool lie_as_read(const Product& p, const TensorCore& core) {
  return (!core.a.in_memory || lies_as_read(p.a, core.a, p.m, p.k)) && (!core.b.in_memory || lies_as_read(p.b, core.b, p.k, p.n));
}

/// A core that reads group memory takes large products only, and each such core one layout.
bool suits(const Product& p, const TensorCore& core) {
  if (!core.a.in_memory && !core.b.in_memory) return true;
  const auto is_long = [](const UOp& range, int64_t n) { return constant_size(range) == 0 || constant_size(range) >= n; };
  return lie_as_read(p, core) && is_long(p.m, core.m) && is_long(p.n, core.n) && is_long(p.k, core.k);
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
  TensorCoreUse(const UOp& sink, const Product& product, const TensorCore& core, AxisKind items)
      : sink_(sink), p_(product), core_(core), next_range_(next_range_id(sink)) {
    // Neighbouring items of a core are neighbours in the group: their axis is the innermost of all.
    item_ = new_range(core.items, items, innermost);
    held_ = core.c.elements() == 1 ? index_const(0) : new_range(core.c.elements(), AxisKind::upcast, p_.n.arg_as<RangeArg>().order);
    of_a_ = new_range(core.a.elements(), AxisKind::element, innermost + 1);
    of_b_ = new_range(core.b.elements(), AxisKind::element, innermost + 1);
    m_ = outer(p_.m, core.m);
    n_ = outer(p_.n, core.n);
  }

  UOp run() {
    NodeMap<UOp> map;
    map[p_.reduce] = held_element(p_.is_shifted ? shifted_back(sums(p_.a), sums(highest_bit(core_.a_type))) : sums(p_.a));
    UOps columns{n_, item_};
    if (held_.is(Op::RANGE)) columns.push_back(held_);
    const UOp rows = split(substitute(sink_, map), p_.m, m_, core_.m, number_of(core_.c.row, item_, held_), {m_});
    return split(rows, p_.n, n_, core_.n, number_of(core_.c.column, item_, held_), columns);
  }

 private:
  static constexpr int32_t innermost = 1 << 20;

  UOp new_range(int64_t size, AxisKind kind, int32_t order) {
    return range(index_const(size), {.id = next_range_++, .kind = kind, .order = order});
  }

  static UOp outer(const UOp& range, int64_t n) { return UOp(Op::RANGE, DType::index, {rounds_of(range, n)}, range.arg()); }

  static Split tile(const UOp& range, const UOp& outer, int64_t n, const UOp& inside, UOps parts) {
    Split s{.range = range, .parts = std::move(parts), .value = outer * n + inside, .valid = {}};
    if (const int64_t size = constant_size(range); size == 0 || size % n != 0) s.valid = s.value < range.src(0);
    return s;
  }
  static UOp split(const UOp& x, const UOp& range, const UOp& outer, int64_t n, const UOp& inside, UOps parts) {
    return n == 1 ? x : apply_split(x, tile(range, outer, n, inside, std::move(parts)));
  }

  /// The elements of c that an item holds, summed up. Where the core's k does not divide the terms, the rest is a step of its own. The axis
  /// stays, even if it has one iteration, as opts number the axes behind it.
  UOps sums(const UOp& a) const {
    const int64_t size = constant_size(p_.k), rounds = size / core_.k;
    if (rounds == 0 || size % core_.k == 0 || is_padded()) return reduce_results(multiplied(a, outer(p_.k, core_.k)));
    const UOp last = multiplied(a, index_const(rounds));
    return merge_partials(last, reduce_results(multiplied(a, UOp(Op::RANGE, DType::index, {index_const(rounds)}, p_.k.arg()))),
                          reduce_results(last));
  }

  /// (a + h) b - h b, where what h added may wrap around: h is the highest bit, which is -2^7 in a signed core.
  static UOps shifted_back(UOps sums, const UOps& more) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i] - more[i];
    return sums;
  }

  /// The elements that an item holds of a matrix whose rows or columns are k; 0 beyond the end of k.
  UOp fragment(const UOp& x, const UOp& k, const UOp& k_inside) const {
    Split along_k = tile(p_.k, k, core_.k, k_inside, {});
    if (k.is(Op::RANGE) && constant_size(k) != 0 && constant_size(k) * core_.k <= constant_size(p_.k)) along_k.valid = {};
    const UOp value = apply_split(x, along_k);
    return along_k.valid ? where(along_k.valid, value, constant(x.dtype(), 0)) : value;
  }

  /// The sum over a loop `k`, or the terms of its iteration `k`, as a general REDUCE that carries the elements of c in an item.
  UOp multiplied(const UOp& a, const UOp& k) const {
    const UOp rows = split(a, p_.m, m_, core_.m, number_of(core_.a.row, item_, of_a_), {});
    const UOp columns = split(p_.b, p_.n, n_, core_.n, number_of(core_.b.column, item_, of_b_), {});
    UOps x{fragment(rows, k, number_of(core_.a.column, item_, of_a_)), fragment(columns, k, number_of(core_.b.row, item_, of_b_))};
    if (is_told_item()) x.push_back(item_);
    const UOps zeros(size_t(core_.c.elements()), constant(core_.out, 0));
    UOps sources{tuple(x), tuple(zeros), step(), merge()};
    for (const UOp& r : closed_ranges(p_.reduce))
      if (r != p_.k) sources.push_back(r);
    if (k.is(Op::RANGE)) sources.push_back(k);
    sources.push_back(of_a_);
    sources.push_back(of_b_);
    return UOp(Op::REDUCE, DType::void_, sources, ReduceArg{Op::FUNCTION, {}});
  }

  static UOp tuple(const UOps& values) { return UOp(Op::TUPLE, DType::void_, values); }
  static UOp function(const UOps& values) { return UOp(Op::FUNCTION, DType::void_, {tuple(values)}, FunctionArg{"wmma"}); }
  static UOp param(DType dtype, int slot) { return UOp(Op::PARAM, dtype, {}, ParamArg{.slot = slot}); }
  static UOps params(DType dtype, int first, int count) {
    UOps out;
    for (int i = 0; i < count; ++i) out.push_back(param(dtype, first + i));
    return out;
  }

  /// On a CPU, masks that are only where memory is filled cost less than another step with sums of its own.
  bool is_padded() const { return core_.a.in_memory && core_.b.in_memory && item_.arg_as<RangeArg>().kind == AxisKind::lane; }

  /// Factors in group memory are the same for all items; the sums that items hold differ.
  bool is_told_item() const { return core_.a.in_memory && core_.b.in_memory; }

  /// Each factor is one parameter here.
  UOp step() const {
    const int held = core_.c.elements();
    const UOps c = params(core_.out, 0, held);
    UOps sources{param(core_.a_type, held), param(core_.b_type, held + 1), held == 1 ? c[0] : stack(c)};
    if (is_told_item()) sources.push_back(param(DType::index, held + 2));
    const UOp product(Op::WMMA, core_.out, sources, WmmaArg{core_.name, core_.m, core_.n, core_.k, core_.a_type, core_.b_type, core_.out});
    if (held == 1) return function({product});
    UOps sums;
    for (int i = 0; i < held; ++i) sums.push_back(UOp(Op::INDEX, core_.out, {product, index_const(i)}, IndexArg{}));
    return function(sums);
  }

  UOp merge() const {
    const int c = core_.c.elements();
    const UOps first = params(core_.out, 0, c), second = params(core_.out, c, c);
    UOps sums;
    for (size_t i = 0; i < first.size(); ++i) sums.push_back(first[i] + second[i]);
    return function(sums);
  }

  /// The held element that the upcast axis names.
  UOp held_element(const UOps& held) const {
    UOp out = held.back();
    for (size_t i = held.size() - 1; i-- > 0;) out = where(eq(held_, index_const(int64_t(i))), held[i], out);
    return out;
  }

  const UOp sink_;
  const Product& p_;
  const TensorCore& core_;
  int32_t next_range_;
  UOp item_, held_, of_a_, of_b_, m_, n_;
};

bool is_element(const UOp& range) { return range.arg_as<RangeArg>().kind == AxisKind::element; }

/// The value at each of the first `count` iterations of the range.
UOps written_out(const UOp& value, const UOp& range, int64_t count) {
  UOps out;
  for (int64_t i = 0; i < count; ++i) {
    NodeMap<UOp> at;
    at[range] = index_const(i);
    out.push_back(substitute_open(std::span(&value, 1), std::span(&range, 1), std::move(at))[0]);
  }
  return out;
}

UOps element_ranges(const UOp& reduce) {
  UOps out;
  for (const UOp& r : closed_ranges(reduce))
    if (is_element(r)) out.push_back(r);
  return out;
}

/// The core that makes the products of a REDUCE; null if none does.
const TensorCore* core_of(const UOp& reduce) {
  if (!is_general_reduce(reduce)) return nullptr;
  for (const UOp& u : toposort(reduce.src(2).src(0)))
    if (u.is(Op::WMMA)) return find_tensor_core(u.arg_as<WmmaArg>().name);
  return nullptr;
}

/// How a core reads each factor from memory; null for a factor in registers.
std::array<const TensorCore::Layout*, 2> layouts_in_memory(const UOp& reduce) {
  const TensorCore* core = core_of(reduce);
  const auto in_memory = [](const TensorCore::Layout& l) { return l.in_memory ? &l : nullptr; };
  if (!core) return {};
  return {in_memory(core->a), in_memory(core->b)};
}

/// The carried values of a REDUCE. Its identities are stacks along the element ranges, or begin in memory where the ranges are 0.
UOps write_out_elements(const UOp& reduce) {
  const UOps elements = element_ranges(reduce);
  UOps loops;
  for (const UOp& r : closed_ranges(reduce))
    if (!is_element(r)) loops.push_back(r);
  if (elements.empty()) return reduce_results(reduce);
  const auto layouts = layouts_in_memory(reduce);
  UOps arguments, values;
  const UOps identities = reduce_identities(reduce), stacked = reduced_values(reduce);
  const auto parameter = [&](DType dtype) {
    return UOp(Op::PARAM, dtype, {}, ParamArg{.slot = int32_t(identities.size() + values.size())});
  };
  for (size_t i = 0; i < identities.size(); ++i)
    arguments.push_back(UOp(Op::PARAM, identities[i].dtype(), {}, ParamArg{.slot = int32_t(i)}));
  for (size_t i = 0; i < stacked.size(); ++i) {
    UOps parameters;
    const bool is_factor = i < elements.size(), in_memory = is_factor && layouts[i] != nullptr;
    for (const UOp& v : is_factor ? written_out(stacked[i], elements[i], in_memory ? 1 : constant_size(elements[i])) : UOps{stacked[i]}) {
      parameters.push_back(parameter(v.dtype()));
      values.push_back(v);
    }
    arguments.push_back(is_factor && !in_memory ? stack(parameters) : parameters[0]);
  }
  const UOp step(Op::FUNCTION, DType::void_, {inline_function(reduce.src(2), arguments)}, reduce.src(2).arg());
  UOps sources{UOp(Op::TUPLE, DType::void_, values), reduce.src(1), step, reduce.src(3)};
  sources.append(loops.begin(), loops.end());
  const UOp expanded = reduce.with_src(sources);
  return loops.empty() ? reduce_step(expanded, identities, values) : reduce_results(expanded);
}

}  // namespace

std::optional<TensorCoreAxes> tensor_core_axes(const UOp& sink, const TensorCore& core) {
  const auto p = find_product(sink, core);
  if (!p) return std::nullopt;
  return TensorCoreAxes{p->m, p->n, p->k, p->casts, is_argument(p->a) && is_argument(p->b), lie_as_read(*p, core), p->is_shifted};
}

bool has_tensor_core(const UOp& sink) {
  for (const UOp& u : toposort(sink, Scopes::enter))
    if (u.is(Op::WMMA)) return true;
  return false;
}

bool sums_products_of_memory(const UOp& reduce) {
  const auto layouts = layouts_in_memory(reduce);
  return layouts[0] || layouts[1];
}

std::vector<MemoryOperand> memory_operands(const UOp& sink) {
  std::vector<MemoryOperand> out;
  for (const UOp& u : toposort(sink)) {
    if (!sums_products_of_memory(u)) continue;
    const auto layouts = layouts_in_memory(u);
    const UOps elements = element_ranges(u), values = reduced_values(u);
    for (size_t i = 0; i < layouts.size(); ++i)
      if (layouts[i]) out.push_back({values[i], elements[i], layouts[i]});
  }
  return out;
}

UOp expand_elements(const UOp& sink) {
  NodeMap<UOps> expanded;
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    UOp out = u.with_src(sources);
    if (is_general_reduce(u)) expanded[u] = write_out_elements(out);
    if (u.is(Op::GETTUPLE) && is_general_reduce(u.src(0))) return expanded[u.src(0)][size_t(u.arg_as<TupleArg>().index)];
    return out;
  });
}

UOp apply_tensor_core(const UOp& sink, const Opt& opt, const Target& target) {
  const auto count = int32_t(target.tensor_cores.size());
  if (opt.arg < -1 || opt.arg >= count) opt_error(opt, fmt::format("the target has {} tensor cores", count));
  if (has_tensor_core(sink)) opt_error(opt, "the kernel uses a tensor core already");
  for (const UOp& u : toposort(sink))
    if (u.is(Op::RANGE) && u.arg_as<RangeArg>().kind == AxisKind::lane) opt_error(opt, "the kernel has a vector axis");
  const AxisKind items = target.has_groups ? AxisKind::local : AxisKind::lane;
  for (int32_t i = std::max(opt.arg, 0); i < (opt.arg < 0 ? count : opt.arg + 1); ++i) {
    const TensorCore& core = target.tensor_cores[size_t(i)];
    const auto product = find_product(sink, core);
    if (product && (opt.arg >= 0 || (suits(*product, core) && !(product->is_shifted && target.has_groups))))
      return TensorCoreUse(sink, *product, core, items).run();
  }
  opt_error(opt, "the kernel has no sum of products over two output axes in the dtypes of the tensor core");
}

}  // namespace tinygrad::codegen
