#include <algorithm>
#include <bit>

#include "symbolic/linear.h"
#include "symbolic/normal.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::symbolic {

namespace {

using namespace rewrite;
constexpr Capture x{0}, y{1}, z{2}, c{3};

Pat idx(Capture a) { return a.dtype(DType::index); }

/// The constant that the bounds leave, if they leave one.
UOp single_value(const Match& m) {
  if (!m.root()->scalar) return {};
  const auto v = bounds(m.root()).single();
  return v ? constant(m.root().dtype(), *v) : UOp();
}

UOp decide_max(const Match& m) {
  const auto d = difference(m[x], m[y]);
  if (!d) return {};
  const Bounds b = d->bounds();
  if (b.min >= 0) return same_shape(m.root(), m[x]);
  if (b.max <= 0) return same_shape(m.root(), m[y]);
  return {};
}

/// C's division as that of floor, where the signs are known.
UOp from_c_division(const Match& m) {
  const UOp &a = m[x], &b = m[y];
  const Op op = m.root().is(Op::CDIV) ? Op::FLOORDIV : Op::FLOORMOD;
  if (bounds(b).min <= 0) return {};
  if (bounds(a).min >= 0) return alu(op, {a, b});
  if (bounds(a).max <= 0) return alu(op, {a * -1, b}) * -1;
  return {};
}

UOp shift_to_product(const Match& m) {
  const int64_t amount = m.int_value(c);
  if (amount < 0 || amount > 62) return {};
  const int64_t power = int64_t(1) << amount;
  return m.root().is(Op::SHL) ? m[x] * power : floor_div(m[x], power);
}

UOp mask_to_mod(const Match& m) {
  const int64_t mask = m.int_value(c);
  return mask > 0 && mask < (int64_t(1) << 62) && std::has_single_bit(uint64_t(mask) + 1) ? floor_mod(m[x], mask + 1) : UOp();
}

/// How many sources come before the ranges of a REDUCE: one value, or the parts of its general form.
size_t values_of(const UOp& u) { return u.is(Op::REDUCE) && u.arg_as<ReduceArg>().op == Op::FUNCTION ? 4 : 1; }

/// END, REDUCE, STAGE and AFTER without the ranges that became constants.
UOp without_constant_ranges(const Match& m) {
  const UOp& u = m.root();
  const size_t first = std::min(values_of(u), u.src_count());
  UOps sources(u.src().begin(), u.src().begin() + std::ptrdiff_t(first));
  SmallVector<int32_t, 6> renumbered;  // of the ranges: their new places, -1 for those that go
  for (size_t i = first; i < u.src_count(); ++i) {
    const bool keep = !u.src(i).is(Op::CONST);
    renumbered.push_back(keep ? int32_t(sources.size() - first) : -1);
    if (keep) sources.push_back(u.src(i));
  }
  if (sources.size() == u.src_count()) return {};
  if (u.is(Op::STAGE)) {
    StageArg arg = u.arg_as<StageArg>();
    SmallVector<int32_t, 6> layout;
    for (int32_t r : arg.layout)
      if (renumbered[size_t(r)] >= 0) layout.push_back(renumbered[size_t(r)]);
    arg.layout = layout;
    return UOp(Op::STAGE, u.dtype(), sources, arg);
  }
  const bool nothing_left = sources.size() == 1 && !(u.is(Op::REDUCE) && !u.arg_as<ReduceArg>().axes.empty());
  return nothing_left ? u.src(0) : u.with_src(sources);
}

/// BARRIER or WAIT without those.
UOp barrier_without_constants(const Match& m) {
  UOps sources;
  for (const UOp& s : m.root().src())
    if (!s.is(Op::CONST)) sources.push_back(s);
  return sources.size() == m.root().src_count() ? UOp() : m.root().with_src(sources);
}

}  // namespace

const Rules<>& index_rules() {
  static const auto& rules = *new Rules<>(
      Rules<>{
          {pat(Group::alu, {any_const(c)}, rest).dtype({DType::index, DType::bool_}),
           [](const Match& m) { return fold_constants(m.root()); }, "fold"},
          {pat(Op::CAST, {any_const(c)}).dtype(DType::index), [](const Match& m) { return fold_constants(m.root()); }, "fold cast"},
          {pat({Op::RANGE, Op::SPECIAL}, {1}), [](const Match&) { return index_const(0); }, "range of size 1"},
          {pat({Op::END, Op::REDUCE, Op::STAGE, Op::AFTER}, {x, y}, rest), without_constant_ranges, "constant ranges"},
          {pat({Op::BARRIER, Op::WAIT}, {x}, rest), barrier_without_constants, "constant ranges"},
          // Other ways to write sums, products and divisions.
          {pat(Op::MULACC, {idx(x), y, z}), [](const Match& m) { return m[x] * m[y] + m[z]; }, "mulacc"},
          {pat(Op::TRUNC, {idx(x)}), x, "trunc"},
          {pat({Op::SHL, Op::SHR}, {idx(x), any_const(c)}), shift_to_product, "shift"},
          {pat(Op::AND, {idx(x), any_const(c)}), mask_to_mod, "x & (2^n-1)"},
          {pat({Op::CDIV, Op::CMOD}, {idx(x), y}), from_c_division, "cdiv, cmod"},
          // The normal forms.
          {pat({Op::ADD, Op::SUB, Op::MUL, Op::NEG}).dtype(DType::index),
           [](const Match& m) { return same_shape(m.root(), normal_sum(m.root())); }, "sum"},
          {pat(Op::FLOORDIV).dtype(DType::index), [](const Match& m) { return same_shape(m.root(), normal_div(m.root())); }, "floordiv"},
          {pat(Op::FLOORMOD).dtype(DType::index), [](const Match& m) { return same_shape(m.root(), normal_mod(m.root())); }, "floormod"},
          {idx(x) < y, [](const Match& m) { return same_shape(m.root(), normal_less(m.root())); }, "less"},
          {pat({Op::CMPEQ, Op::CMPNE}, {idx(x), y}).ordered(), [](const Match& m) { return same_shape(m.root(), normal_equal(m.root())); },
           "equal"},
          {pat(Op::MAX, {idx(x), y}).ordered(), decide_max, "max"},
          {pat(Op::MAX, {any_const(c), idx(x).where([](const UOp& u) { return !u.is(Op::CONST); })}).ordered(),
           [](const Match& m) { return max(m[x], m[c]); }, "max(c,x)"},
          {max(max(x, any_const(c)), any_const(y)).dtype(DType::index),
           [](const Match& m) { return max(m[x], index_const(std::max(m.int_value(c), m.int_value(y)))); }, "max(max(x,c),c)"},
          {pat(Group::elementwise).dtype({DType::index, DType::bool_}), single_value, "bounds"},
      } +
      bool_rules());
  return rules;
}

UOp simplify_index(const UOp& u) {
  static const auto& rules = *new Rules<>(index_rules().remembered());
  return graph_rewrite(u, rules, {.name = "simplify index"});
}

}  // namespace tinygrad::symbolic
