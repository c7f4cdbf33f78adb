#include "engine/fuzz/error_bound.h"

#include <cmath>
#include <numbers>

#include <tinygrad/errors.h>

#include "shape/shape.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::test {
namespace {

UOp number(double x) { return constant(DType::float64, x); }
UOp as_double(const UOp& x) { return cast(x, DType::float64); }
UOp magnitude(const UOp& x) {
  const UOp d = as_double(x);
  return max(d, -d);
}
UOp inverse_of(const UOp& x) { return alu(Op::RECIPROCAL, {x}); }
/// |x| - e, not below 0: what a denominator may be.
UOp least(const UOp& x, const UOp& e) { return max(magnitude(x) - e, number(0)); }

/// Half of the least number above zero: what rounding may lose where numbers are denormal.
double least_step(DType d) {
  const FloatInfo f = finfo(d);
  return std::ldexp(1.0, 1 - ((1 << (f.exponent_bits - 1)) - 1) - f.mantissa_bits);
}

class Analysis {
 public:
  Analysis(const std::vector<UOp>& order, const NodeSet& exact) : exact_(exact) {
    for (const UOp& u : order)
      if (u.is(Op::STORE)) written(base_of(u.src(0)));
    for (const UOp& u : order) {
      const UOp e = error(u);
      const bool scalar = e && e.dtype() == DType::float64 && shape_of(e).empty() && !shape_of(u).empty();
      errors_[u] = scalar ? tinygrad::expand(e, shape_of(u)) : e;
    }
  }

  ErrorBounds take(const UOp& sink) { return {errors_[sink], std::move(memory_)}; }

 private:
  static UOp base_of(UOp view) {
    while (!view.is(Op::BUFFER)) view = view.src(0);
    return view;
  }
  void written(const UOp& b) {
    if (is_float(b.dtype()) && !memory_.contains(b))
      memory_[b] = buffer(DType::float64, {.id = next_buffer_id(), .size = b.arg_as<BufferArg>().size});
  }
  /// The error of a source; 0 where it has none.
  UOp of(const UOp& x) const {
    const UOp& e = *errors_.find(x);
    return e ? e : number(0);
  }
  static UOp rounding(const UOp& result, double ulps = 1) {
    return magnitude(result) * number(ulps * ulp_of_one(result.dtype())) + number(least_step(result.dtype()));
  }

  /// Null: the value has no error.
  UOp error(const UOp& u) {
    if (u.is(Op::BUFFER)) return memory_.contains(u) ? memory_[u] : UOp();
    if (u.in(Group::effect) || u.is(Op::AFTER)) return effect(u);
    if (!is_float(u.dtype())) return {};
    if (u.in(Group::movement) || u.is(Op::STACK) || u.in(Group::identity)) return moved(u);
    if (exact_.contains(u)) return {};
    if (u.is(Op::REDUCE)) return reduced(u);
    if (u.is(Op::CONST)) return {};
    if (u.in(Group::elementwise)) return computed(u);
    throw InternalError("error_bounds: no rule for " + print_expr(u));
  }

  UOp effect(const UOp& u) {
    if (u.is(Op::AFTER) && !errors_[u.src(0)]) return {};
    if (u.is(Op::STORE) && !is_float(u.src(0).dtype())) return {};
    UOps sources;
    for (const UOp& s : u.src()) {
      if (const UOp& e = errors_[s])
        sources.push_back(e);
      else if (u.is(Op::STORE))
        sources.push_back(tinygrad::expand(number(0), shape_of(s)));
    }
    return UOp(u.op(), u.is(Op::AFTER) ? DType::float64 : DType::void_, sources, u.arg());
  }

  UOp moved(const UOp& u) {
    bool any = false;
    UOps sources;
    const size_t values = u.is(Op::STACK) ? u.src_count() : 1;
    for (size_t i = 0; i < u.src_count(); ++i) {
      const UOp& s = u.src(i);
      const UOp& e = errors_[s];
      any = any || (i < values && e);
      sources.push_back(i >= values ? s : e ? e : tinygrad::expand(number(0), shape_of(s)));
    }
    return any ? UOp(u.op(), DType::float64, sources, u.arg()) : UOp();
  }

  UOp reduced(const UOp& u) {
    const auto& r = u.arg_as<ReduceArg>();
    const UOp& x = u.src(0);
    double n = 1;
    for (int a : r.axes) n *= double(max_sizes(shape_of(x))[size_t(a)]);
    if (r.op == Op::MAX) return errors_[x] ? tinygrad::reduce(Op::MAX, errors_[x], r.axes) : UOp();
    const UOp most = tinygrad::reduce(r.op, magnitude(x) + of(x), r.axes);
    const UOp own = most * number(n * ulp_of_one(u.dtype())) + number(n * least_step(u.dtype()));
    if (r.op == Op::ADD) return errors_[x] ? tinygrad::reduce(Op::ADD, of(x), r.axes) + own : own;
    return most - tinygrad::reduce(r.op, magnitude(x), r.axes) + own;
  }

  UOp computed(const UOp& u) {
    auto x = [&](size_t i) -> const UOp& { return u.src(i); };
    auto e = [&](size_t i) { return of(u.src(i)); };
    auto product = [&] { return magnitude(x(0)) * e(1) + magnitude(x(1)) * e(0) + e(0) * e(1); };
    switch (u.op()) {
      case Op::CAST: return e(0) + rounding(u);
      case Op::NEG: return e(0);
      case Op::ADD:
      case Op::SUB: return e(0) + e(1) + rounding(u);
      case Op::MUL: return product() + rounding(u);
      case Op::MULACC: return product() + e(2) + rounding(x(0) * x(1)) + rounding(u);
      case Op::MAX: return max(e(0), e(1));
      case Op::WHERE: return where(x(0), e(1), e(2));
      case Op::FDIV: return (e(0) + magnitude(u) * e(1)) * inverse_of(least(x(1), e(1))) + rounding(u, 2);
      case Op::RECIPROCAL: return e(0) * magnitude(u) * inverse_of(least(x(0), e(0))) + rounding(u, 2);
      case Op::SQRT: {
        auto root = [](const UOp& v) { return alu(Op::SQRT, {v}); };
        return root(as_double(x(0)) + e(0)) - root(least(x(0), e(0))) + rounding(u, 2);
      }
      case Op::EXP2: return alu(Op::EXP2, {as_double(x(0)) + e(0)}) - as_double(u) + rounding(u, 4);
      case Op::LOG2: return e(0) * inverse_of(least(x(0), e(0)) * number(std::numbers::ln2)) + rounding(u, 4);
      case Op::SIN: return e(0) + rounding(u, 4);
      default: throw InternalError("error_bounds: no rule for " + print_expr(u));
    }
  }

  const NodeSet& exact_;
  NodeMap<UOp> errors_, memory_;
};

}  // namespace

double ulp_of_one(DType dtype) { return std::ldexp(1.0, -finfo(dtype).mantissa_bits); }

ErrorBounds error_bounds(const UOp& sink, const NodeSet& exact) { return Analysis(toposort(sink), exact).take(sink); }

}  // namespace tinygrad::test
