#include <bit>
#include <cmath>

#include "dtype/scalar_ops.h"
#include "symbolic/bounds.h"
#include "symbolic/normal.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::symbolic {

namespace {

using namespace rewrite;
constexpr Capture x{0}, c{1}, d{2};

bool is_data(DType t) { return t != DType::index && t != DType::void_; }
bool is_data_int(DType t) { return is_int(t) && is_data(t); }
bool not_const(const UOp& u) { return !u.is(Op::CONST); }

Pat data(Capture a) { return a.dtype(is_data); }
Pat integer(Capture a) { return a.dtype(is_data_int); }
Pat floating(Capture a) { return a.dtype(is_float); }

UOp zero_like(const Match& m) { return same_shape(m.root(), constant(m.root().dtype(), 0)); }

/// Amounts below zero count as large ones.
UOp all_shifted_out(const Match& m) { return m.value(c).as_uint() >= uint64_t(bitsize(m.root().dtype())) ? zero_like(m) : UOp(); }

/// x op c op d as x op (c op d), for an associative op.
UOp reassociate(const Match& m) {
  const UOp constant = fold_constants(alu(m.root().op(), {m[c], m[d]}));
  return constant ? alu(m.root().op(), {m[x], constant}) : UOp();
}

/// Division by a power of two is the product with its reciprocal, which is exact too.
UOp divide_by_power_of_two(const Match& m) {
  int exponent = 0;
  if (std::abs(std::frexp(m.value(c).as_double(), &exponent)) != 0.5) return {};
  const Scalar reciprocal = scalar::reciprocal(m.value(c));
  // Both exact and far from what a device may flush to zero.
  if (std::abs(exponent) > (bitsize(m.value(c).dtype()) >= 32 ? 100 : 13)) return {};
  if (!reciprocal.is_finite() || !(scalar::reciprocal(reciprocal) == m.value(c))) return {};
  return m[x] * constant(reciprocal);
}

UOp merge_casts(const Match& m) {
  const DType from = m[x].dtype(), middle = m[c].dtype(), to = m.root().dtype();
  const bool narrowing = is_data_int(from) && is_data_int(middle) && is_data_int(to) && bitsize(to) <= bitsize(middle);
  return narrowing || can_lossless_cast(from, middle) ? cast(m[x], to) : UOp();
}

/// The constant that the bounds leave, if they leave one.
UOp single_value(const Match& m) {
  if (!m.root()->scalar) return {};
  const auto v = bounds(m.root()).single();
  return v ? constant(m.root().dtype(), *v) : UOp();
}

/// Quotient and remainder of numbers that are known to lie in 0 <= x < c.
UOp small_remainder(const Match& m) {
  const Bounds b = bounds(m[x]);
  return b.min >= 0 && b.max < bounds(m[c]).min ? same_shape(m.root(), m[x]) : UOp();
}

/// An index that was cast to a type that holds all its values, and a number as an index; null for what is neither.
UOp as_index(const UOp& u) {
  if (u.is(Op::CONST)) return is_unsigned(u.dtype()) ? UOp() : index_const(const_value(u)->as_int());
  if (!u.is(Op::CAST) || u.src(0).dtype() != DType::index) return {};
  const Bounds b = bounds(u.src(0));
  const bool fits = b.has_min() && b.has_max() && b.min >= min_value(u.dtype()).as_int() && b.max <= max_value(u.dtype()).as_int();
  return fits && !is_unsigned(u.dtype()) ? u.src(0) : UOp();
}

UOp compare_indices(const Match& m) {
  const UOp a = as_index(m[x]), b = as_index(m[c]);
  return a && b ? alu(m.root().op(), {a, b}) : UOp();
}

/// Whether `condition` holds wherever `valid` does: each of its parts is one of the other's.
bool follows(const UOp& condition, const UOp& valid) {
  if (condition == valid) return true;
  if (condition.is(Op::AND)) return follows(condition.src(0), valid) && follows(condition.src(1), valid);
  return valid.is(Op::AND) && (follows(condition, valid.src(0)) || follows(condition, valid.src(1)));
}

/// A load that is not made where the condition does not hold gives 0 there anyway.
UOp gated_load(const Match& m) {
  const UOp& at = m[x].src(0);
  return at.is(Op::INDEX) && at.src_count() == 3 && follows(m[c], at.src(2)) ? m[x] : UOp();
}

UOp max_by_bounds(const Match& m) {
  const Bounds a = bounds(m[x]), b = bounds(m[c]);
  return a.min >= b.max ? same_shape(m.root(), m[x]) : UOp();
}

}  // namespace

const Rules<>& data_rules() {
  static const auto& rules = *new Rules<>(
      Rules<>{
          {pat(Group::alu, {any_const(c)}, rest).dtype(is_data), [](const Match& m) { return fold_constants(m.root()); }, "fold"},
          {pat(Group::convert, {any_const(c)}).dtype(is_data), [](const Match& m) { return fold_constants(m.root()); }, "fold cast"},
          {pat(Group::commutative, {any_const(c), data(x).where(not_const)}).ordered(),
           [](const Match& m) { return alu(m.root().op(), {m[x], m[c]}); }, "constant last"},
          // What does nothing, in any type. -0.0 + 0.0 is 0.0, so only -0.0 may be added to a float.
          {data(x) * 1, x, "x*1"},
          {floating(x) + -0.0, x, "x+-0.0"},
          {integer(x) + 0, x, "x+0"},
          {data(x) - 0, x, "x-0"},
          {pat(Op::FDIV, {data(x), 1}), x, "x/1"},
          {pat({Op::CDIV, Op::FLOORDIV}, {integer(x), 1}), x, "x//1"},
          {integer(x) | 0, x, "x|0"},
          {integer(x) | x, x, "x|x"},
          {integer(x) & x, x, "x&x"},
          {integer(x) & -1, x, "x&-1"},
          {integer(x) ^ 0, x, "x^0"},
          {pat({Op::SHL, Op::SHR}, {integer(x), 0}), x, "x<<0"},
          {max(data(x), x), x, "max(x,x)"},
          {-(-data(x)), x, "--x"},
          {pat(Op::TRUNC, {integer(x)}), x, "trunc int"},
          // Zeros. Not for floats: x may be NaN or infinite.
          {integer(x) * 0, zero_like, "x*0"},
          {integer(x) & 0, zero_like, "x&0"},
          {integer(x) - x, zero_like, "x-x"},
          {integer(x) ^ x, zero_like, "x^x"},
          {pat({Op::CMOD, Op::FLOORMOD}, {integer(x), 1}), zero_like, "x%1"},
          {pat(Op::SHL, {integer(x), any_const(c)}), all_shifted_out, "x<<width"},
          // Comparisons with itself: a NaN differs from itself, but is not less.
          {data(x) < x, zero_like, "x<x"},
          {ne(integer(x), x), zero_like, "x!=x"},
          {eq(integer(x), x), [](const Match& m) { return same_shape(m.root(), bool_const(true)); }, "x==x"},
          {ne(pat(Op::CAST, {x.dtype(DType::bool_)}), 0), x, "bool != 0"},
          // Constants of wrapping integers gather; floats would round differently.
          {(integer(x) + any_const(c)) + any_const(d), reassociate, "x+c+d"},
          {(integer(x) * any_const(c)) * any_const(d), reassociate, "x*c*d"},
          {(integer(x) & any_const(c)) & any_const(d), reassociate, "x&c&d"},
          {(integer(x) | any_const(c)) | any_const(d), reassociate, "x|c|d"},
          {(integer(x) ^ any_const(c)) ^ any_const(d), reassociate, "x^c^d"},
          {max(max(data(x), any_const(c)), any_const(d)), reassociate, "max(max(x,c),d)"},
          {pat(Op::SUB, {integer(x), any_const(c)}), [](const Match& m) { return m[x] + constant(scalar::neg(m.value(c))); }, "x-c"},
          {pat(Op::FDIV, {data(x), any_const(c)}), divide_by_power_of_two, "x/2^n"},
          // Conversions.
          {pat(Op::CAST, {pat(Op::CAST, {data(x)}).named(c)}).dtype(is_data), merge_casts, "cast of cast"},
          {pat({Op::CAST, Op::BITCAST}, {x}), [](const Match& m) { return m[x].dtype() == m.root().dtype() ? m[x] : UOp(); },
           "cast to itself"},
          {pat(Op::BITCAST, {pat(Op::BITCAST, {x})}), [](const Match& m) { return bitcast(m[x], m.root().dtype()); }, "bitcast of bitcast"},
          // Comparisons of indices, whatever they were cast to.
          {pat(Group::comparison, {pat(Op::CAST).dtype(is_data_int).named(x), c}).ordered(), compare_indices, "compare indices"},
          {pat(Group::comparison, {any_const(x), pat(Op::CAST).dtype(is_data_int).named(c)}).ordered(), compare_indices, "compare indices"},
          // Loads that are not made.
          {pat(Op::LOAD, {pat(Op::INDEX, {x, c, false})}), zero_like, "load of nothing"},
          {where(c, pat(Op::LOAD, {d}).named(x), 0), gated_load, "where(c,load,0)"},
          // What bounds decide.
          {pat({Op::CMOD, Op::FLOORMOD}, {integer(x), c}), small_remainder, "x%c of a small x"},
          {max(integer(x), c), max_by_bounds, "max by bounds"},
          {pat(Group::elementwise, {integer(x)}, rest).dtype([](DType t) { return is_data_int(t) || is_bool(t); }), single_value, "bounds"},
      } +
      bool_rules());
  return rules;
}

}  // namespace tinygrad::symbolic
