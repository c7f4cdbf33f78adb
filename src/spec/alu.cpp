#include "spec/alu.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <tinygrad/errors.h>
#include "dtype/convert.h"
#include "dtype/scalar_ops.h"

namespace tinygrad::spec {

Scalar alu_element(Op op, std::span<const Scalar> s) {
  switch (op) {
    case Op::EXP2: return scalar::exp2(s[0]);
    case Op::LOG2: return scalar::log2(s[0]);
    case Op::SIN: return scalar::sin(s[0]);
    case Op::SQRT: return scalar::sqrt(s[0]);
    case Op::RECIPROCAL: return scalar::reciprocal(s[0]);
    case Op::NEG: return scalar::neg(s[0]);
    case Op::TRUNC: return scalar::trunc(s[0]);
    case Op::ADD: return scalar::add(s[0], s[1]);
    case Op::MUL: return scalar::mul(s[0], s[1]);
    case Op::SUB: return scalar::sub(s[0], s[1]);
    case Op::FDIV: return scalar::fdiv(s[0], s[1]);
    case Op::CDIV: return scalar::cdiv(s[0], s[1]);
    case Op::CMOD: return scalar::cmod(s[0], s[1]);
    case Op::FLOORDIV: return scalar::floordiv(s[0], s[1]);
    case Op::FLOORMOD: return scalar::floormod(s[0], s[1]);
    case Op::MAX: return scalar::max(s[0], s[1]);
    case Op::CMPLT: return scalar::cmplt(s[0], s[1]);
    case Op::CMPNE: return scalar::cmpne(s[0], s[1]);
    case Op::CMPEQ: return scalar::cmpeq(s[0], s[1]);
    case Op::XOR: return scalar::xor_(s[0], s[1]);
    case Op::OR: return scalar::or_(s[0], s[1]);
    case Op::AND: return scalar::and_(s[0], s[1]);
    case Op::SHL: return scalar::shl(s[0], s[1]);
    case Op::SHR: return scalar::shr(s[0], s[1]);
    case Op::POW: return scalar::pow(s[0], s[1]);
    case Op::LDEXP: return scalar::ldexp(s[0], s[1]);
    case Op::THREEFRY: return scalar::threefry(s[0], s[1]);
    case Op::WHERE: return scalar::where(s[0], s[1], s[2]);
    case Op::MULACC: return scalar::mulacc(s[0], s[1], s[2]);
    default: throw InternalError(fmt::format("{} is no ALU op", name(op)));
  }
}

namespace {

/// An operand of a loop: an array, or one element for all.
struct Operand {
  const Data* data;
  bool one;
};

template <class T>
struct Reader {
  explicit Reader(const Operand& o) : at(o.data->as<T>()), step(o.one ? 0 : 1) {}
  const T& operator[](size_t i) const { return at[i * step]; }
  const T* at;
  size_t step;
};

/// out[i] = f(a[i], b[i]), with loops of their own where an operand is one element, so that each vectorizes.
template <class Out, class A, class B, class F>
void map2(Data& out, const Operand& a, const Operand& b, F f) {
  Out* to = out.as<Out>();
  const A* x = a.data->as<A>();
  const B* y = b.data->as<B>();
  const size_t n = out.count();
  if (n == 0) return;
  if (a.one && b.one) {
    std::fill_n(to, n, Out(f(*x, *y)));
  } else if (a.one) {
    const A v = *x;
    for (size_t i = 0; i < n; ++i) to[i] = Out(f(v, y[i]));
  } else if (b.one) {
    const B v = *y;
    for (size_t i = 0; i < n; ++i) to[i] = Out(f(x[i], v));
  } else {
    for (size_t i = 0; i < n; ++i) to[i] = Out(f(x[i], y[i]));
  }
}

template <class Out, class A, class F>
void map1(Data& out, const Operand& a, F f) {
  Out* to = out.as<Out>();
  const Reader<A> x(a);
  for (size_t i = 0; i < out.count(); ++i) to[i] = Out(f(x[i]));
}

template <class T>
T float_max(T x, T y) {
  if (std::isnan(x)) return x;
  if (std::isnan(y)) return y;
  if (x == y) return std::signbit(x) ? y : x;
  return x < y ? y : x;
}

/// Arithmetic that is done in the dtype itself: T is float or double. False for other ops.
template <class T>
bool float_op(Op op, Data& out, std::span<const Operand> s) {
  switch (op) {
    case Op::SQRT: map1<T, T>(out, s[0], [](T x) { return std::sqrt(x); }); return true;
    case Op::RECIPROCAL: map1<T, T>(out, s[0], [](T x) { return 1 / x; }); return true;
    case Op::NEG: map1<T, T>(out, s[0], [](T x) { return -x; }); return true;
    case Op::TRUNC: map1<T, T>(out, s[0], [](T x) { return std::trunc(x); }); return true;
    case Op::ADD: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return x + y; }); return true;
    case Op::SUB: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return x - y; }); return true;
    case Op::MUL: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return x * y; }); return true;
    case Op::FDIV: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return x / y; }); return true;
    case Op::MAX: map2<T, T, T>(out, s[0], s[1], float_max<T>); return true;
    case Op::CMPLT: map2<uint8_t, T, T>(out, s[0], s[1], [](T x, T y) { return x < y; }); return true;
    case Op::CMPNE: map2<uint8_t, T, T>(out, s[0], s[1], [](T x, T y) { return x != y; }); return true;
    case Op::CMPEQ: map2<uint8_t, T, T>(out, s[0], s[1], [](T x, T y) { return x == y; }); return true;
    case Op::MULACC: {
      const Reader<T> x(s[0]), y(s[1]), z(s[2]);
      for (size_t i = 0; i < out.count(); ++i) out.as<T>()[i] = std::fma(x[i], y[i], z[i]);
      return true;
    }
    default: return false;
  }
}

/// Functions computed in double for every dtype and rounded once.
template <class T>
bool transcendental_op(Op op, Data& out, std::span<const Operand> s) {
  switch (op) {
    case Op::EXP2: map1<T, T>(out, s[0], [](T x) { return std::exp2(double(x)); }); return true;
    case Op::LOG2: map1<T, T>(out, s[0], [](T x) { return std::log2(double(x)); }); return true;
    case Op::SIN: map1<T, T>(out, s[0], [](T x) { return std::sin(double(x)); }); return true;
    case Op::LDEXP: map2<T, T, T>(out, s[0], s[1], scalar::ldexp_double); return true;
    case Op::POW: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return std::pow(double(x), double(y)); }); return true;
    default: return false;
  }
}

/// Ops that wrap; T is a fixed-width integer (bool: uint8_t, made 0 or 1 afterwards). False for those left to alu_element.
template <class T>
bool wrapping_op(Op op, Data& out, std::span<const Operand> s) {
  using U = uint64_t;
  switch (op) {
    case Op::NEG: map1<T, T>(out, s[0], [](T x) { return U(0) - U(x); }); return true;
    case Op::ADD: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return U(x) + U(y); }); return true;
    case Op::SUB: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return U(x) - U(y); }); return true;
    case Op::MUL: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return U(x) * U(y); }); return true;
    default: return false;
  }
}

/// What all integers share, `index` included.
template <class T>
bool integer_op(Op op, Data& out, std::span<const Operand> s) {
  switch (op) {
    case Op::MAX: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return std::max(x, y); }); return true;
    case Op::AND: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return x & y; }); return true;
    case Op::OR: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return x | y; }); return true;
    case Op::XOR: map2<T, T, T>(out, s[0], s[1], [](T x, T y) { return x ^ y; }); return true;
    case Op::CMPLT: map2<uint8_t, T, T>(out, s[0], s[1], [](T x, T y) { return x < y; }); return true;
    case Op::CMPNE: map2<uint8_t, T, T>(out, s[0], s[1], [](T x, T y) { return x != y; }); return true;
    case Op::CMPEQ: map2<uint8_t, T, T>(out, s[0], s[1], [](T x, T y) { return x == y; }); return true;
    default: return false;
  }
}

/// `index` arithmetic with positive divisors, whose overflow is an error of ours: alu_element then says which.
bool index_op(Op op, Data& out, std::span<const Operand> s) {
  bool overflow = false;
  auto checked = [&](auto f) {
    map2<int64_t, int64_t, int64_t>(out, s[0], s[1], [&](int64_t x, int64_t y) {
      int64_t r = 0;
      overflow |= f(x, y, &r);
      return r;
    });
    return !overflow;
  };
  switch (op) {
    case Op::ADD: return checked([](int64_t x, int64_t y, int64_t* r) { return __builtin_add_overflow(x, y, r); });
    case Op::SUB: return checked([](int64_t x, int64_t y, int64_t* r) { return __builtin_sub_overflow(x, y, r); });
    case Op::MUL: return checked([](int64_t x, int64_t y, int64_t* r) { return __builtin_mul_overflow(x, y, r); });
    case Op::FLOORDIV:
      return checked([](int64_t x, int64_t y, int64_t* r) {
        if (y <= 0) return true;
        *r = x / y - (x % y < 0);
        return false;
      });
    case Op::FLOORMOD:
      return checked([](int64_t x, int64_t y, int64_t* r) {
        if (y <= 0) return true;
        *r = x % y + (x % y < 0 ? y : 0);
        return false;
      });
    default: return false;
  }
}

template <class T>
bool sized_integer_op(Op op, Data& out, std::span<const Operand> s) {
  return wrapping_op<T>(op, out, s) || integer_op<T>(op, out, s);
}

bool integer_dispatch(Op op, DType d, Data& out, std::span<const Operand> s) {
  switch (d) {
    case DType::bool_:
      if (!sized_integer_op<uint8_t>(op, out, s)) return false;
      for (size_t i = 0; i < out.count(); ++i) out.as<uint8_t>()[i] = out.as<uint8_t>()[i] != 0;
      return true;
    case DType::int8: return sized_integer_op<int8_t>(op, out, s);
    case DType::uint8: return sized_integer_op<uint8_t>(op, out, s);
    case DType::int16: return sized_integer_op<int16_t>(op, out, s);
    case DType::uint16: return sized_integer_op<uint16_t>(op, out, s);
    case DType::int32: return sized_integer_op<int32_t>(op, out, s);
    case DType::uint32: return sized_integer_op<uint32_t>(op, out, s);
    case DType::int64: return sized_integer_op<int64_t>(op, out, s);
    case DType::uint64:
      if (op == Op::THREEFRY) {
        map2<uint64_t, uint64_t, uint64_t>(out, s[0], s[1], scalar::threefry2x32);
        return true;
      }
      return sized_integer_op<uint64_t>(op, out, s);
    case DType::index: return index_op(op, out, s) || integer_op<int64_t>(op, out, s);
    default: return false;
  }
}

void select(Data& out, std::span<const Operand> s) {
  auto run = [&]<class T>(T) {
    const Reader<uint8_t> c(s[0]);
    const Reader<T> x(s[1]), y(s[2]);
    T* to = out.as<T>();
    for (size_t i = 0; i < out.count(); ++i) to[i] = c[i] ? x[i] : y[i];
  };
  switch (itemsize(out.dtype)) {
    case 1: return run(uint8_t{});
    case 2: return run(uint16_t{});
    case 4: return run(uint32_t{});
    default: return run(uint64_t{});
  }
}

/// Any op on any dtype, slowly.
void by_element(Op op, Data& out, std::span<const Operand> s) {
  std::vector<Scalar> elements(s.size());
  for (size_t i = 0; i < out.count(); ++i) {
    for (size_t k = 0; k < s.size(); ++k) elements[k] = s[k].data->element(s[k].one ? 0 : i);
    alu_element(op, elements).to_bytes(out.bytes() + i * itemsize(out.dtype));
  }
}

/// Floats narrower than float32 are computed in a wider type and rounded to theirs.
Value narrow_float_op(Op op, DType out, std::span<const Value> sources, DType wide) {
  std::vector<Value> widened;
  for (const Value& v : sources) widened.push_back(cast_value(v, wide));
  return cast_value(alu_values(op, in_group(op, Group::comparison) ? out : wide, widened), out);
}

}  // namespace

Value alu_values(Op op, DType out_dtype, std::span<const Value> sources) {
  const DType d = sources[op == Op::WHERE ? 1 : 0]->dtype;
  const bool transcendental = op == Op::EXP2 || op == Op::LOG2 || op == Op::SIN || op == Op::POW;
  if (is_float(d) && bitsize(d) < 32 && op != Op::WHERE)
    return narrow_float_op(op, out_dtype, sources, transcendental ? DType::float64 : DType::float32);

  Frame frame;
  for (const Value& v : sources) frame.include(*v);
  SmallVector<Value, 3> kept;
  SmallVector<Operand, 3> operands;
  for (const Value& v : sources) {
    const bool one = v->is_single();
    kept.push_back(one ? v : broadcast(v, frame));
    operands.push_back({kept.back().get(), one});
  }
  auto out = std::make_shared<Data>(out_dtype, frame.axes, frame.sizes());
  bool done = true;
  if (op == Op::WHERE)
    select(*out, operands);
  else if (d == DType::float32)
    done = float_op<float>(op, *out, operands) || transcendental_op<float>(op, *out, operands);
  else if (d == DType::float64)
    done = float_op<double>(op, *out, operands) || transcendental_op<double>(op, *out, operands);
  else
    done = integer_dispatch(op, d, *out, operands);
  if (!done) by_element(op, *out, operands);
  return out;
}

Value cast_value(const Value& x, DType to) {
  if (x->dtype == to) return x;
  auto out = std::make_shared<Data>(to, x->axes, x->sizes);
  convert_array(to, out->bytes(), x->dtype, x->bytes(), x->count());
  return out;
}

Value bitcast_value(const Value& x, DType to) {
  if (x->dtype == to) return x;
  auto out = std::make_shared<Data>(to, x->axes, x->sizes);
  std::memcpy(out->bytes(), x->bytes(), x->byte_count());
  if (to == DType::bool_)
    for (size_t i = 0; i < out->count(); ++i) out->as<uint8_t>()[i] = out->as<uint8_t>()[i] != 0;
  return out;
}

}  // namespace tinygrad::spec
