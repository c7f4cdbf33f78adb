#include "runtime/interp/alu.h"

#include <bit>
#include <cmath>
#include <type_traits>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "dtype/scalar_ops.h"

namespace tinygrad::runtime::interp {

namespace {

using Inputs = const Operand (&)[3];

template <class F>
bool each(uint64_t* out, Inputs in, size_t count, F f) {
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_invocable_v<F, uint64_t>)
      out[i] = f(in[0][i]);
    else if constexpr (std::is_invocable_v<F, uint64_t, uint64_t>)
      out[i] = f(in[0][i], in[1][i]);
    else
      out[i] = f(in[0][i], in[1][i], in[2][i]);
  }
  return true;
}

double real(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t canonical(double value) { return std::isnan(value) ? 0x7ff8000000000000u : std::bit_cast<uint64_t>(value); }

// The common ops on float32 and float64; false for the others.
template <class T>
bool apply_float(Op op, uint64_t* out, Inputs in, size_t count) {
  const auto get = [](uint64_t bits) { return static_cast<T>(real(bits)); };
  const auto put = [](T value) { return canonical(static_cast<double>(value)); };
  switch (op) {
    case Op::ADD: return each(out, in, count, [=](uint64_t a, uint64_t b) { return put(get(a) + get(b)); });
    case Op::SUB: return each(out, in, count, [=](uint64_t a, uint64_t b) { return put(get(a) - get(b)); });
    case Op::MUL: return each(out, in, count, [=](uint64_t a, uint64_t b) { return put(get(a) * get(b)); });
    case Op::FDIV: return each(out, in, count, [=](uint64_t a, uint64_t b) { return put(get(a) / get(b)); });
    case Op::MULACC: return each(out, in, count, [=](uint64_t a, uint64_t b, uint64_t c) { return put(std::fma(get(a), get(b), get(c))); });
    case Op::SQRT: return each(out, in, count, [=](uint64_t a) { return put(std::sqrt(get(a))); });
    default: return false;
  }
}

// Cuts 64 bits to an integer's width and extends them again.
struct Wrap {
  int shift;
  bool is_signed;
  explicit Wrap(DType d) : shift(64 - bitsize(d)), is_signed(tinygrad::is_signed(d)) {}
  uint64_t operator()(uint64_t x) const {
    return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(x << shift) >> shift) : x << shift >> shift;
  }
};

// Ops on integers.
bool apply_int(Op op, DType dtype, uint64_t* out, Inputs in, size_t count) {
  const Wrap wrap(dtype);
  switch (op) {
    case Op::ADD: return each(out, in, count, [=](uint64_t a, uint64_t b) { return wrap(a + b); });
    case Op::SUB: return each(out, in, count, [=](uint64_t a, uint64_t b) { return wrap(a - b); });
    case Op::MUL: return each(out, in, count, [=](uint64_t a, uint64_t b) { return wrap(a * b); });
    case Op::MULACC: return each(out, in, count, [=](uint64_t a, uint64_t b, uint64_t c) { return wrap(a * b + c); });
    case Op::NEG: return each(out, in, count, [=](uint64_t a) { return wrap(0 - a); });
    default: return false;
  }
}

bool apply_bits(Op op, uint64_t* out, Inputs in, size_t count) {
  switch (op) {
    case Op::AND: return each(out, in, count, [](uint64_t a, uint64_t b) { return a & b; });
    case Op::OR: return each(out, in, count, [](uint64_t a, uint64_t b) { return a | b; });
    case Op::XOR: return each(out, in, count, [](uint64_t a, uint64_t b) { return a ^ b; });
    default: return false;
  }
}

template <class T>
bool compare_as(Op op, uint64_t* out, Inputs in, size_t count) {
  const auto get = [](uint64_t bits) { return std::bit_cast<T>(bits); };
  switch (op) {
    case Op::CMPLT: return each(out, in, count, [=](uint64_t a, uint64_t b) { return uint64_t(get(a) < get(b)); });
    case Op::CMPNE: return each(out, in, count, [=](uint64_t a, uint64_t b) { return uint64_t(get(a) != get(b)); });
    case Op::CMPEQ: return each(out, in, count, [=](uint64_t a, uint64_t b) { return uint64_t(get(a) == get(b)); });
    default: return false;
  }
}

bool apply_compare(Op op, DType dtype, uint64_t* out, Inputs in, size_t count) {
  if (is_float(dtype)) return compare_as<double>(op, out, in, count);
  return is_signed(dtype) ? compare_as<int64_t>(op, out, in, count) : compare_as<uint64_t>(op, out, in, count);
}

// What needs no arithmetic on scalars: the ops that kernels are full of.
bool apply_fast(Op op, DType in_dtype, uint64_t* out, Inputs in, size_t count) {
  if (op == Op::WHERE) return each(out, in, count, [](uint64_t c, uint64_t a, uint64_t b) { return c ? a : b; });
  if (apply_compare(op, in_dtype, out, in, count)) return true;
  if (in_dtype == DType::float32) return apply_float<float>(op, out, in, count);
  if (in_dtype == DType::float64) return apply_float<double>(op, out, in, count);
  if (is_int(in_dtype) && apply_int(op, in_dtype, out, in, count)) return true;
  return !is_float(in_dtype) && apply_bits(op, out, in, count);
}

using Unary = Scalar (*)(const Scalar&);
Unary unary(Op op) {
  switch (op) {
    case Op::NEG: return scalar::neg;
    case Op::RECIPROCAL: return scalar::reciprocal;
    case Op::SQRT: return scalar::sqrt;
    case Op::EXP2: return scalar::exp2;
    case Op::LOG2: return scalar::log2;
    case Op::SIN: return scalar::sin;
    case Op::TRUNC: return scalar::trunc;
    default: return nullptr;
  }
}

using Binary = Scalar (*)(const Scalar&, const Scalar&);
Binary binary(Op op) {
  switch (op) {
    case Op::ADD: return scalar::add;
    case Op::SUB: return scalar::sub;
    case Op::MUL: return scalar::mul;
    case Op::FDIV: return scalar::fdiv;
    case Op::CDIV: return scalar::cdiv;
    case Op::CMOD: return scalar::cmod;
    case Op::FLOORDIV: return scalar::floordiv;
    case Op::FLOORMOD: return scalar::floormod;
    case Op::MAX: return scalar::max;
    case Op::XOR: return scalar::xor_;
    case Op::OR: return scalar::or_;
    case Op::AND: return scalar::and_;
    case Op::SHL: return scalar::shl;
    case Op::SHR: return scalar::shr;
    case Op::POW: return scalar::pow;
    case Op::LDEXP: return scalar::ldexp;
    case Op::THREEFRY: return scalar::threefry;
    default: return nullptr;
  }
}

}  // namespace

Scalar scalar_of(uint64_t bits, DType dtype) {
  return is_float(dtype) ? Scalar::from_double(real(bits), dtype) : Scalar::from_uint(bits, dtype);
}

void apply(Op op, DType out_dtype, DType in_dtype, uint64_t* out, const Operand (&in)[3], size_t count) {
  const auto value = [in_dtype](uint64_t bits) { return scalar_of(bits, in_dtype); };
  if (op == Op::CAST) {
    each(out, in, count, [&](uint64_t a) { return value(a).cast(out_dtype).bits(); });
  } else if (op == Op::BITCAST) {
    each(out, in, count, [&](uint64_t a) { return value(a).bitcast(out_dtype).bits(); });
  } else if (apply_fast(op, in_dtype, out, in, count)) {
    return;
  } else if (const Unary one = unary(op)) {
    each(out, in, count, [&](uint64_t a) { return one(value(a)).bits(); });
  } else if (op == Op::SHL || op == Op::SHR) {
    // The amount may have another integer dtype; its canonical bits read as int64 are the same amount, or one that shifts all out.
    const Binary shift = binary(op);
    each(out, in, count, [&](uint64_t a, uint64_t b) { return shift(value(a), Scalar::from_uint(b, DType::uint64)).bits(); });
  } else if (const Binary two = binary(op)) {
    each(out, in, count, [&](uint64_t a, uint64_t b) { return two(value(a), value(b)).bits(); });
  } else if (op == Op::MULACC) {
    each(out, in, count, [&](uint64_t a, uint64_t b, uint64_t c) { return scalar::mulacc(value(a), value(b), value(c)).bits(); });
  } else {
    throw DeviceError(fmt::format("the interpreted device does not have {}", name(op)));
  }
}

}  // namespace tinygrad::runtime::interp
