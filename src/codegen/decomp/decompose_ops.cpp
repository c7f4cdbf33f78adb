#include "codegen/decomp/decompose_ops.h"

#include <bit>

#include "codegen/decomp/divide.h"
#include "codegen/decomp/long_ops.h"
#include "codegen/decomp/transcendental.h"
#include "rewrite/rewrite.h"
#include "symbolic/bounds.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

using rewrite::Capture;
using rewrite::Match;
using rewrite::pat;
using rewrite::Rules;

struct Context {
  const Target& target;
  int transcendental;

  bool lacks(Op op) const { return !target.supports(op); }
  bool lacks(DType d) const { return is_long(d) && !target.has_int64(); }
  /// Of what is left for a dtype that the target lacks, emulate_long() knows the ops that take words alone.
  bool lacks(const UOp& u) const { return lacks(u.op()) || lacks(u.dtype()); }
  bool approximates(Op op) const { return transcendental == 2 || (transcendental == 1 && lacks(op)); }
};

constexpr Capture x{0}, y{1}, z{2};

bool is_fixed_int(DType d) { return is_int(d) && d != DType::index; }
bool is_wide_float(DType d) { return d == DType::float32 || d == DType::float64; }
bool is_narrow_float(DType d) { return is_float(d) && !is_wide_float(d); }

/// log2 of a CONST that is a power of two, or -1.
int power_of_two(const UOp& u) {
  const Scalar* c = const_value(u);
  if (!c || c->as_int() <= 0 || !std::has_single_bit(uint64_t(c->as_int()))) return -1;
  return std::countr_zero(uint64_t(c->as_int()));
}

/// Where the quotient towards zero has to be one less: there is a remainder and its sign is not the divisor's.
UOp rounds_down(const UOp& remainder, const UOp& divisor) {
  const UOp zero = constant(remainder.dtype(), 0);
  return ne(remainder, zero) & ne(remainder < zero, divisor < zero);
}

bool is_not_negative(const UOp& u) { return symbolic::bounds(u).min >= 0; }

UOp floor_quotient(const UOp& a, const UOp& b) {
  const DType d = a.dtype();
  if (const int k = power_of_two(b); k >= 0) return a >> constant(d, k);
  UOp q = alu(Op::CDIV, {a, b});
  if (is_unsigned(d)) return q;
  return where(rounds_down(alu(Op::CMOD, {a, b}), b), q - constant(d, 1), q);
}

UOp floor_remainder(const UOp& a, const UOp& b) {
  const DType d = a.dtype();
  if (const int k = power_of_two(b); k >= 0) return a & constant(d, (int64_t{1} << k) - 1);
  UOp r = alu(Op::CMOD, {a, b});
  if (is_unsigned(d)) return r;
  return where(rounds_down(r, b), r + b, r);
}

UOp quotient(const UOp& u, const UOp& a, const UOp& b, const Context& c) {
  if (!c.lacks(u)) return {};
  if (UOp fast = short_quotient(a, b)) return fast;
  if (UOp fast = quotient_by_constant(a, b, c.target)) return fast;
  return c.lacks(a.dtype()) ? long_quotient(a, b, c.target) : UOp();
}

UOp remainder(const UOp& u, const UOp& a, const UOp& b, const Context& c) {
  if (!c.lacks(u)) return {};
  const DType d = a.dtype();
  if (const int k = power_of_two(b); k >= 0 && is_not_negative(a)) return a & constant(d, (int64_t{1} << k) - 1);
  // A quotient by zero is 0, its remainder too.
  const UOp zero = constant(d, 0);
  return where(eq(b, zero), zero, a - alu(Op::CDIV, {a, b}) * b);
}

UOp rotated(const UOp& v, int by) { return (v << constant(v.dtype(), by)) | (v >> constant(v.dtype(), 32 - by)); }

/// Threefry-2x32 with 20 rounds; the first word is the low half of counter, key and result.
UOp threefry(const UOp& counter, const UOp& key) {
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const auto low = [](const UOp& u) { return cast(u, DType::uint32); };
  const auto high = [](const UOp& u) { return cast(u >> constant(DType::uint64, 32), DType::uint32); };
  const UOp words[3] = {low(key), high(key), low(key) ^ high(key) ^ constant(DType::uint32, 0x1bd11bda)};
  UOp a = low(counter) + words[0], b = high(counter) + words[1];
  for (int i = 0; i < 5; ++i) {
    for (int by : rotations[i % 2]) {
      a = a + b;
      b = rotated(b, by) ^ a;
    }
    a = a + words[(i + 1) % 3];
    b = b + words[(i + 2) % 3] + constant(DType::uint32, i + 1);
  }
  return (cast(b, DType::uint64) << constant(DType::uint64, 32)) | cast(a, DType::uint64);
}

/// By squaring, for as many bits as the exponent may have. Of the numbers below 0 only -1 has powers of a negative exponent, besides 1.
UOp integer_power(const UOp& base, const UOp& exponent) {
  const DType d = base.dtype();
  const UOp zero = constant(d, 0), one = constant(d, 1);
  const symbolic::Bounds range = symbolic::bounds(exponent);
  const int bits = is_unsigned(d) && !range.has_max() ? bitsize(d) : range.max < 0 ? 0 : int(std::bit_width(uint64_t(range.max)));
  UOp result = one, power = base;
  for (int i = 0; i < bits; ++i) {
    if (i > 0) power = power * power;
    result = result * where(ne(exponent & constant(d, int64_t(uint64_t(1) << i)), zero), power, one);
  }
  if (is_unsigned(d) || range.min >= 0) return result;
  const UOp sign = where(ne(exponent & one, zero), base, one);
  return where(exponent < zero, where(ne(base, one) & ne(base, constant(d, -1)), zero, sign), result);
}

/// Float functions of 8- and 16-bit types are those of float32, rounded.
UOp through_float32(const UOp& u) {
  UOps sources;
  for (const UOp& s : u.src()) sources.push_back(cast(s, DType::float32));
  return cast(alu(u.op(), sources), u.dtype());
}

UOp long_to_float(const UOp& u, DType to) {
  if (to == DType::float64) return long_to_float64(u);
  if (to == DType::float32) return long_to_float32(u, RoundTo::nearest);
  return cast(long_to_float32(u, RoundTo::odd), to);
}

// The table. Rules look at the target in their context, so one table serves all.

// clang-format off
const Rules<Context>& op_rules() {
  static const auto& rules = *new Rules<Context>{
    {pat({Op::EXP2, Op::LOG2, Op::SIN, Op::POW}).dtype(is_narrow_float).named(z),
     [](const Match& m, Context& c) { return c.approximates(m[z].op()) ? through_float32(m[z]) : UOp(); }, "narrow function"},
    {pat(Op::EXP2, {pat(Op::MUL, {x, any_const(y)})}).dtype(is_wide_float),
     [](const Match& m, Context& c) { return c.approximates(Op::EXP2) ? exp2_of_product(m[x], m[y], !c.lacks(Op::LDEXP)) : UOp(); }, "exp2 of a product"},
    {pat(Op::EXP2, {x}).dtype(is_wide_float),
     [](const Match& m, Context& c) { return c.approximates(Op::EXP2) ? exp2_by_arithmetic(m[x], !c.lacks(Op::LDEXP)) : UOp(); }, "exp2"},
    {pat(Op::LOG2, {x}).dtype(is_wide_float),
     [](const Match& m, Context& c) { return c.approximates(Op::LOG2) ? log2_by_arithmetic(m[x]) : UOp(); }, "log2"},
    {pat(Op::SIN, {x}).dtype(is_wide_float),
     [](const Match& m, Context& c) { return c.approximates(Op::SIN) ? sin_by_arithmetic(m[x]) : UOp(); }, "sin"},
    {pat(Op::POW, {x, y}).dtype(is_wide_float),
     [](const Match& m, Context& c) { return c.lacks(Op::POW) ? pow_by_arithmetic(m[x], m[y], c.target.supports(DType::float64)) : UOp(); }, "pow"},
    {pat(Op::POW, {x, y}).dtype(is_fixed_int), [](const Match& m, Context& c) { return c.lacks(Op::POW) ? integer_power(m[x], m[y]) : UOp(); }, "integer pow"},
    {pat(Op::THREEFRY, {x, y}), [](const Match& m, Context& c) { return c.lacks(m.root()) ? threefry(m[x], m[y]) : UOp(); }, "threefry"},

    {pat(Op::FLOORDIV, {x, y}).dtype(is_fixed_int), [](const Match& m, Context& c) { return c.lacks(m.root()) ? floor_quotient(m[x], m[y]) : UOp(); }, "floordiv"},
    {pat(Op::FLOORMOD, {x, y}).dtype(is_fixed_int), [](const Match& m, Context& c) { return c.lacks(m.root()) ? floor_remainder(m[x], m[y]) : UOp(); }, "floormod"},
    {pat(Op::CMOD, {x, y}).dtype(is_fixed_int), [](const Match& m, Context& c) { return remainder(m.root(), m[x], m[y], c); }, "cmod"},
    {pat(Op::CDIV, {x, y}).dtype(is_fixed_int), [](const Match& m, Context& c) { return quotient(m.root(), m[x], m[y], c); }, "cdiv"},

    {pat(Op::RECIPROCAL, {x}), [](const Match& m, Context& c) { return c.lacks(Op::RECIPROCAL) ? alu(Op::FDIV, {constant(m[x].dtype(), 1), m[x]}) : UOp(); }, "reciprocal"},
    {pat(Op::FDIV, {x, y}), [](const Match& m, Context& c) { return c.lacks(Op::FDIV) && !c.lacks(Op::RECIPROCAL) ? m[x] * alu(Op::RECIPROCAL, {m[y]}) : UOp(); }, "fdiv"},
    {pat(Op::NEG, {x}).dtype(is_bool), x, "neg of bool"},
    {pat(Op::NEG, {x}).dtype(is_float), [](const Match& m, Context& c) { return c.lacks(Op::NEG) ? m[x] * constant(m[x].dtype(), -1) : UOp(); }, "neg"},
    {pat(Op::NEG, {x}).dtype(is_int), [](const Match& m, Context& c) { return c.lacks(m.root()) ? constant(m[x].dtype(), 0) - m[x] : UOp(); }, "neg of int"},
    {pat(Op::TRUNC, {x}).dtype(is_int), x, "trunc of int"},
    {pat(Op::MULACC, {x, y, z}), [](const Match& m, Context& c) { return c.lacks(m.root()) ? m[x] * m[y] + m[z] : UOp(); }, "mulacc"},

    {pat(Op::CAST, {x.dtype(is_long)}).dtype(is_float), [](const Match& m, Context& c) { return c.lacks(m[x].dtype()) ? long_to_float(m[x], m.root().dtype()) : UOp(); }, "long to float"},
    {pat(Op::CAST, {x.dtype(is_float)}).dtype(is_long), [](const Match& m, Context& c) { return c.lacks(m.root().dtype()) ? float_to_long(m[x], m.root().dtype()) : UOp(); }, "float to long"},

    // Arithmetic on bool is logic.
    {pat(Op::ADD, {x, y}).dtype(is_bool), [](const Match& m) { return m[x] | m[y]; }, "add of bool"},
    {pat(Op::MUL, {x, y}).dtype(is_bool), [](const Match& m) { return m[x] & m[y]; }, "mul of bool"},
    {pat(Op::SUB, {x, y}).dtype(is_bool), [](const Match& m) { return m[x] ^ m[y]; }, "sub of bool"},
    {pat(Op::MAX, {x, y}).dtype(is_bool), [](const Match& m) { return m[x] | m[y]; }, "max of bool"},
    {pat(Op::MAX, {x, y}).dtype(is_int), [](const Match& m, Context& c) { return c.lacks(m.root()) ? where(m[x] < m[y], m[y], m[x]) : UOp(); }, "max of int"},
    {pat(Op::CMPEQ, {x, y}), [](const Match& m, Context& c) { return c.lacks(Op::CMPEQ) ? logical_not(ne(m[x], m[y])) : UOp(); }, "cmpeq"},
  };
  return rules;
}
// clang-format on

}  // namespace

UOp decompose_ops(const UOp& sink, const Target& target, int transcendental) {
  Context context{target, transcendental};
  return rewrite::graph_rewrite(sink, op_rules(), context, {.name = "decompose ops"});
}

}  // namespace tinygrad::codegen
