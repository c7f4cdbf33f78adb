#include "symbolic/bounds.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace tinygrad::symbolic {

namespace {

// Bounds are computed in 128 bits, with +-inf for "none".
__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;
constexpr Wide inf = Wide(1) << 100;

constexpr int64_t int_min = std::numeric_limits<int64_t>::min(), int_max = std::numeric_limits<int64_t>::max();

struct Interval {
  Wide lo = -inf, hi = inf;

  bool is_single() const { return lo == hi; }
};

Interval join(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

/// All values of a dtype.
Interval whole(DType d) {
  if (is_bool(d)) return {0, 1};
  if (d == DType::index || !is_int(d)) return {};
  const int bits = bitsize(d);
  if (is_unsigned(d)) return {0, (Wide(1) << bits) - 1};
  return {-(Wide(1) << (bits - 1)), (Wide(1) << (bits - 1)) - 1};
}

bool within(Interval a, Interval b) { return b.lo <= a.lo && a.hi <= b.hi; }

/// An exact result as the dtype holds it: it wraps if it does not fit.
Interval wrap(Interval exact, DType d) { return within(exact, whole(d)) ? exact : whole(d); }

Interval clamp(Interval a, DType d) { return {std::max(a.lo, whole(d).lo), std::min(a.hi, whole(d).hi)}; }

Bounds pack(Interval a) {
  Bounds b;
  if (a.lo > int_min) b.min = int64_t(std::min<Wide>(a.lo, int_max - 1));
  if (a.hi < int_max) b.max = int64_t(std::max<Wide>(a.hi, int_min + 1));
  return b;
}

Interval unpack(Bounds b, DType d) {
  const Interval all = whole(d);
  return {b.has_min() ? Wide(b.min) : all.lo, b.has_max() ? Wide(b.max) : all.hi};
}

Wide saturate(Wide a) { return std::clamp(a, -inf, inf); }
bool infinite(Wide a) { return a <= -inf || a >= inf; }

Wide multiply(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  const bool negative = (a < 0) != (b < 0);
  if (infinite(a) || infinite(b)) return negative ? -inf : inf;
  // A finite bound has 64 bits, and the product of two uint64 more than a signed 128-bit integer holds.
  const UnsignedWide product = UnsignedWide(a < 0 ? -a : a) * UnsignedWide(b < 0 ? -b : b);
  const Wide size = product < UnsignedWide(inf) ? Wide(product) : inf;
  return negative ? -size : size;
}

Wide divide_floor(Wide a, Wide b) {
  if (infinite(b)) return a == 0 || (a < 0) == (b < 0) ? 0 : -1;
  if (infinite(a)) return (a < 0) == (b < 0) ? inf : -inf;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
Wide divide_trunc(Wide a, Wide b) {
  if (infinite(b)) return 0;
  if (infinite(a)) return (a < 0) == (b < 0) ? inf : -inf;
  return a / b;
}

/// The hull of f at the corners, for an f that is monotone in each argument on the box.
template <class F>
Interval corners(Interval a, Interval b, F f) {
  const Wide v[] = {f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)};
  return {*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
}

/// The union of f over the parts of the divisor below, at (where the result is 0) and above zero.
template <class F>
Interval by_sign(Interval divisor, F f) {
  std::optional<Interval> out;
  auto add = [&](Interval part) { out = out ? join(*out, part) : part; };
  if (divisor.lo < 0) add(f({divisor.lo, std::min<Wide>(divisor.hi, -1)}));
  if (divisor.lo <= 0 && divisor.hi >= 0) add({0, 0});
  if (divisor.hi > 0) add(f({std::max<Wide>(divisor.lo, 1), divisor.hi}));
  return *out;
}

Interval floor_mod(Interval a, Interval b) {
  if (b.is_single() && !infinite(a.lo) && !infinite(a.hi)) {
    const Wide q = divide_floor(a.lo, b.lo);
    if (q == divide_floor(a.hi, b.lo)) return {a.lo - q * b.lo, a.hi - q * b.lo};
  }
  if (b.hi < 0) return {b.lo + 1, 0};
  if (a.lo >= 0 && a.hi < b.lo) return a;
  return {0, a.lo >= 0 ? std::min(a.hi, b.hi - 1) : b.hi - 1};
}

Interval trunc_mod(Interval a, Interval b) {
  const Wide m = std::max(b.lo < 0 ? -b.lo : b.lo, b.hi < 0 ? -b.hi : b.hi) - 1;
  const Wide least = std::min(b.lo < 0 ? -b.lo : b.lo, b.hi < 0 ? -b.hi : b.hi);
  if (-least < a.lo && a.hi < least) return a;
  return {a.lo >= 0 ? 0 : std::max(a.lo, -m), a.hi <= 0 ? 0 : std::min(a.hi, m)};
}

/// All bits set up to the highest of a value >= 0.
Wide bit_mask(Wide v) {
  if (infinite(v)) return inf;
  Wide mask = 0;
  while (mask < v) mask = mask * 2 + 1;
  return mask;
}

Interval bitwise(Op op, Interval a, Interval b, DType d) {
  if (op == Op::AND) {
    if (a.lo < 0 && b.lo < 0) return whole(d);
    return {0, a.lo < 0 ? b.hi : b.lo < 0 ? a.hi : std::min(a.hi, b.hi)};
  }
  if (a.lo < 0 || b.lo < 0) return whole(d);
  return {op == Op::OR ? std::max(a.lo, b.lo) : 0, bit_mask(std::max(a.hi, b.hi))};
}

Interval shift(Op op, Interval a, Interval amount, DType d) {
  if (amount.lo < 0) return whole(d);
  if (op == Op::SHR) {
    return corners(a, {std::min<Wide>(amount.lo, 64), std::min<Wide>(amount.hi, 64)},
                   [](Wide x, Wide s) { return infinite(x) && s < 64 ? x : x >> int(s); });
  }
  if (amount.hi >= bitsize(d)) return whole(d);
  return wrap(corners(a, amount, [](Wide x, Wide s) { return multiply(x, Wide(1) << int(s)); }), d);
}

Interval truth(bool always, bool never) { return {always ? 1 : 0, never ? 0 : 1}; }

Interval compare_bounds(Op op, Interval a, Interval b) {
  const bool apart = a.hi < b.lo || b.hi < a.lo;
  const bool equal = a.is_single() && b.is_single() && a.lo == b.lo && !infinite(a.lo);
  switch (op) {
    case Op::CMPLT: return truth(a.hi < b.lo, a.lo >= b.hi && !infinite(a.lo));
    case Op::CMPNE: return truth(apart, equal);
    default: return truth(equal, apart);
  }
}

/// ALU on bools as on 0 and 1.
Interval bool_binary(Op op, Interval a, Interval b) {
  switch (op) {
    case Op::AND:
    case Op::MUL: return {a.lo & b.lo, a.hi & b.hi};
    case Op::OR:
    case Op::ADD:
    case Op::MAX: return {a.lo | b.lo, a.hi | b.hi};
    case Op::XOR:
    case Op::SUB: return a.is_single() && b.is_single() ? Interval{a.lo ^ b.lo, a.lo ^ b.lo} : Interval{0, 1};
    default: return {0, 1};
  }
}

Interval binary(Op op, Interval a, Interval b, DType d) {
  if (is_bool(d)) return bool_binary(op, a, b);
  switch (op) {
    case Op::ADD: return wrap({saturate(a.lo + b.lo), saturate(a.hi + b.hi)}, d);
    case Op::SUB: return wrap({saturate(a.lo - b.hi), saturate(a.hi - b.lo)}, d);
    case Op::MUL: return wrap(corners(a, b, multiply), d);
    case Op::MAX: return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    case Op::FLOORDIV: return wrap(by_sign(b, [&](Interval part) { return corners(a, part, divide_floor); }), d);
    case Op::CDIV: return wrap(by_sign(b, [&](Interval part) { return corners(a, part, divide_trunc); }), d);
    case Op::FLOORMOD: return by_sign(b, [&](Interval part) { return floor_mod(a, part); });
    case Op::CMOD: return by_sign(b, [&](Interval part) { return trunc_mod(a, part); });
    case Op::AND:
    case Op::OR:
    case Op::XOR: return clamp(bitwise(op, a, b, d), d);
    case Op::SHL:
    case Op::SHR: return clamp(shift(op, a, b, d), d);
    default: return whole(d);
  }
}

Interval known(const UOp& u);

Interval converted(const UOp& from, DType to) {
  if (!is_int(from.dtype()) && !is_bool(from.dtype())) return whole(to);
  const Interval a = known(from);
  if (is_bool(to)) return truth(a.lo > 0 || a.hi < 0, a.lo == 0 && a.hi == 0);
  return wrap(a, to);
}

/// The bounds of a node whose sources' bounds are cached.
Interval compute(const UOp& u) {
  const DType d = u.dtype();
  const Op op = u.op();
  if (!is_int(d) && !is_bool(d)) return {};
  if (in_group(op, Group::comparison)) {
    const DType of = u.src(0).dtype();
    return is_int(of) || is_bool(of) ? compare_bounds(op, known(u.src(0)), known(u.src(1))) : Interval{0, 1};
  }
  if (in_group(op, Group::binary)) return binary(op, known(u.src(0)), known(u.src(1)), d);
  switch (op) {
    case Op::CONST: {
      const Scalar& v = u.arg_as<ConstArg>().value;
      const Wide w = is_unsigned(d) ? Wide(v.as_uint()) : Wide(v.as_int());
      return {w, w};
    }
    case Op::VAR: return {Wide(u.arg_as<VarArg>().min), Wide(u.arg_as<VarArg>().max)};
    case Op::RANGE:
    case Op::SPECIAL:
    case Op::IOTA: return wrap({0, std::max<Wide>(known(u.src(0)).hi - 1, 0)}, d);
    case Op::NEG: {
      const Interval a = known(u.src(0));
      return is_bool(d) ? whole(d) : wrap({-a.hi, -a.lo}, d);
    }
    case Op::WHERE: {
      const Interval c = known(u.src(0));
      if (c.is_single()) return known(u.src(c.lo ? 1 : 2));
      return join(known(u.src(1)), known(u.src(2)));
    }
    case Op::CAST: return converted(u.src(0), d);
    case Op::STACK: {
      Interval all = known(u.src(0));
      for (const UOp& s : u.src()) all = join(all, known(s));
      return all;
    }
    case Op::PAD:
    case Op::WEIGHT: return join(known(u.src(0)), {0, 0});
    case Op::BIND:  // the value is left open: a schedule serves all of them
    case Op::TRUNC:
    case Op::RESHAPE:
    case Op::PERMUTE:
    case Op::EXPAND:
    case Op::SHRINK:
    case Op::FLIP:
    case Op::CONTIGUOUS:
    case Op::CONTIGUOUS_BACKWARD:
    case Op::DETACH:
    case Op::TENSOR:
    case Op::WEAK:
    case Op::KNOWN: return known(u.src(0));
    default: return whole(d);
  }
}

/// How many of the first sources compute() reads.
size_t sources_read(const UOp& u) {
  switch (u.op()) {
    case Op::RANGE:
    case Op::SPECIAL:
    case Op::IOTA:
    case Op::BIND:
    case Op::RESHAPE:
    case Op::PERMUTE:
    case Op::EXPAND:
    case Op::PAD:
    case Op::SHRINK:
    case Op::FLIP: return 1;
    case Op::STACK: return u.src_count();
    default: return u.in(Group::elementwise | Group::identity) ? u.src_count() : 0;
  }
}

struct BoundsFact final : CachedFact {
  explicit BoundsFact(Bounds b) : bounds(b) {}
  Bounds bounds;
};

bool needs_no_cache(const UOp& u) { return u.is(Op::CONST) || u.is(Op::VAR) || !(is_int(u.dtype()) || is_bool(u.dtype())); }

Interval known(const UOp& u) {
  if (needs_no_cache(u)) return compute(u);
  return unpack(static_cast<const BoundsFact*>(u->fact(FactSlot::bounds))->bounds, u.dtype());
}

void fill_cache(const UOp& root) {
  struct Frame {
    const UOp* node;
    size_t next;
  };
  auto missing = [](const UOp& u) { return !needs_no_cache(u) && !u->fact(FactSlot::bounds); };
  std::vector<Frame> stack{{&root, 0}};
  while (!stack.empty()) {
    Frame& f = stack.back();
    if (f.next < sources_read(*f.node)) {
      const UOp& s = f.node->src(f.next++);
      if (missing(s)) stack.push_back({&s, 0});
    } else {
      (*f.node)->set_fact(FactSlot::bounds, new BoundsFact(pack(compute(*f.node))));
      stack.pop_back();
    }
  }
}

}  // namespace

Bounds bounds(const UOp& u) {
  if (needs_no_cache(u)) return pack(compute(u));
  if (const CachedFact* f = u->fact(FactSlot::bounds)) return static_cast<const BoundsFact*>(f)->bounds;
  fill_cache(u);
  return static_cast<const BoundsFact*>(u->fact(FactSlot::bounds))->bounds;
}

}  // namespace tinygrad::symbolic
