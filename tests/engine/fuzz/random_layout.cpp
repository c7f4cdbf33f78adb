// The ops of RandomValues that move elements and those that combine many.
#include <algorithm>
#include <cmath>

#include "engine/fuzz/random_values.h"
#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/nn.h"
#include "ops/reduce.h"
#include "uop/build.h"

namespace tinygrad::test {

namespace {

Axes random_order(Dice& dice, size_t rank) {
  Axes order;
  for (size_t i = 0; i < rank; ++i) order.push_back(int(i));
  for (size_t i = rank; i > 1; --i) std::swap(order[i - 1], order[size_t(dice.number(0, int64_t(i) - 1))]);
  return order;
}

/// At least one axis.
Axes random_axes(Dice& dice, size_t rank) {
  Axes axes;
  const int64_t sure = dice.number(0, int64_t(rank) - 1);
  for (size_t i = 0; i < rank; ++i)
    if (int64_t(i) == sure || dice.chance(35)) axes.push_back(int(i));
  return axes;
}

Shape random_factors(Dice& dice, int64_t n) {
  Shape shape;
  for (int64_t d : {2, 3, 4, 5, 7, 8})
    if (n % d == 0 && dice.chance(40)) {
      shape.push_back(d);
      n /= d;
    }
  shape.push_back(n);
  std::swap(shape.front(), shape[size_t(dice.number(0, int64_t(shape.size()) - 1))]);
  return shape;
}

}  // namespace

std::optional<Value> RandomValues::movement(const Value& x) {
  if (x.shape().empty()) return view(x, tinygrad::expand(x.u, random_shape(dice_, 64)));
  return dice_.chance(50) ? resize(x) : rearrange(x);
}

std::optional<Value> RandomValues::resize(const Value& x) {
  const Shape& shape = x.shape();
  const int axis = int(dice_.number(0, int64_t(shape.size()) - 1));
  const SInt n = shape[size_t(axis)];
  switch (dice_.number(0, 5)) {
    case 0: {
      const int64_t begin = dice_.number(0, n.min() - 1);
      return view(x, ops::shrink_axis(x.u, axis, begin, dice_.chance(50) ? n : SInt(dice_.number(begin + 1, n.min()))));
    }
    case 1: return view(x, ops::pad_axis(x.u, axis, dice_.number(0, 3), dice_.number(0, 3)));
    case 2: {
      const Value value = constant_like(x);
      const UOp u = ops::pad_axis(x.u, axis, dice_.number(0, 2), dice_.number(0, 2), value.u);
      return made(u, x.exact, std::max(x.bound, value.bound), x.fraction);
    }
    case 3:
      return view(x, ops::broadcast_to(ops::unsqueeze(x.u, 0), [&] {
                    Shape to{dice_.number(2, 6)};
                    to.append(shape.begin(), shape.end());
                    return to;
                  }()));
    case 4:
      if (!n.known() || n.value() > 16 || n.value() < 3) return {};
      return view(x, ops::unfold(x.u, axis, dice_.number(1, 3), dice_.number(1, 2)));
    default: {
      if (!all_known(shape)) return {};
      Shape repeats(shape.size(), SInt(1));
      repeats[size_t(axis)] = dice_.number(1, 3);
      return view(x, ops::repeat(x.u, repeats));
    }
  }
}

std::optional<Value> RandomValues::rearrange(const Value& x) {
  const Shape& shape = x.shape();
  switch (dice_.number(0, 5)) {
    case 0: return view(x, ops::permute(x.u, random_order(dice_, shape.size())));
    case 1: return view(x, ops::flip(x.u, random_axes(dice_, shape.size())));
    case 2: return view(x, ops::flatten(x.u));
    case 3:
    case 4:
      if (!all_known(shape)) return view(x, ops::unsqueeze(x.u, int(dice_.number(0, int64_t(shape.size())))));
      return view(x, ops::reshape(x.u, random_factors(dice_, numel(shape).value())));
    default: {
      if (!all_known(shape)) return {};
      const int64_t shift[] = {dice_.number(-3, 3)};
      return view(x, ops::roll(x.u, shift, {int(dice_.number(0, int64_t(shape.size()) - 1))}));
    }
  }
}

std::optional<Value> RandomValues::join(const Value& a, const Value& b) {
  const DType d = least_upper_dtype(a.dtype(), b.dtype());
  const Maybe x = convert(a, d), y = convert(b, d);
  if (!x || !y || !all_known(a.shape())) return {};
  const bool exact = x->exact && y->exact;
  const double bound = std::max(x->bound, y->bound);
  const int fraction = std::max(x->fraction, y->fraction);
  const UOp other = fit(*y, a.shape()).u;
  if (a.shape().empty() || dice_.chance(30))
    return made(ops::stack(UOps{x->u, other}, int(dice_.number(0, int64_t(a.shape().size())))), exact, bound, fraction);
  return made(ops::cat(UOps{x->u, other}, int(dice_.number(0, int64_t(a.shape().size()) - 1))), exact, bound, fraction);
}

std::optional<Value> RandomValues::reduction(const Value& x) {
  if (x.shape().empty()) return {};
  const Axes axes = random_axes(dice_, x.shape().size());
  const bool keepdim = dice_.chance(40);
  const int axis = axes[0];
  const bool small = x.exact ? x.bound <= 0x1p20 : true;
  switch (dice_.number(0, 9)) {
    case 0:
      if (!small) return {};
      return made(ops::mean(x.u, axes, keepdim), false, x.bound);
    case 1: return x.exact ? made(ops::argmax(x.u, axis, keepdim), true, double(x.shape()[size_t(axis)].max())) : Maybe();
    case 2: return x.exact ? made(ops::any(x.u, axes, keepdim), true, 1) : Maybe();
    case 3: return x.exact ? made(ops::all(x.u, axes, keepdim), true, 1) : Maybe();
    case 4: {
      const double n = double(x.shape()[size_t(axis)].max());
      if (n > 20) return {};
      return made(ops::cumsum(x.u, axis), x.exact, x.bound * n, x.fraction, is_signed(x.dtype()));
    }
    default: return plain_reduction(x, axes, keepdim);
  }
}

std::optional<Value> RandomValues::plain_reduction(const Value& x, const Axes& axes, bool keepdim) {
  double n = 1;
  for (int a : axes) n *= double(x.shape()[size_t(a)].max());
  const bool sign = is_signed(x.dtype()) || x.is_float();
  switch (dice_.number(0, 6)) {
    case 0:
    case 1: return made(ops::sum(x.u, axes, keepdim), x.exact, x.bound * n, x.fraction, sign);
    case 2: return made(ops::max(x.u, axes, keepdim), x.exact, x.bound, x.fraction, sign);
    case 3: return made(ops::min(x.u, axes, keepdim), x.exact, x.bound, x.fraction, sign);
    case 4:
      if (x.is_float() && n > 12) return {};
      return made(ops::prod(x.u, axes, keepdim), x.exact, std::pow(std::max(x.bound, 1.0), n), x.fraction * int(n), sign);
    case 5:  // in the dtype itself
      if (is_bool(x.dtype())) return made(tinygrad::reduce(Op::MAX, x.u, axes), true, 1);
      return made(tinygrad::reduce(Op::ADD, x.u, axes), x.exact, x.bound * n, x.fraction, sign);
    default:
      if (x.is_float()) return {};
      return made(tinygrad::reduce(dice_.pick({Op::AND, Op::OR, Op::XOR}), x.u, axes), true, any_integer);
  }
}

std::optional<Value> RandomValues::diamond(const Value& x) {
  if (x.shape().empty() || !x.is_float() || x.bound > 64) return {};
  const Axes axes = random_axes(dice_, x.shape().size());
  switch (dice_.number(0, 4)) {
    case 0: return made(ops::softmax(x.u, axes), false, 1.1);
    case 1: return made(ops::log_softmax(x.u, axes), false, 3 * x.bound + 12);
    case 2: return made(ops::sub(x.u, ops::mean(x.u, axes, true)), false, 2 * x.bound);
    case 3: return made(ops::sub(ops::max(x.u, axes, true), x.u), x.exact, 2 * x.bound, x.fraction);
    default: return made(ops::div(x.u, ops::add(ops::sum(ops::abs(x.u), axes, true), 1)), false, 1.1);
  }
}

std::optional<Value> RandomValues::product(const Value& a, const Value& b) {
  const int64_t m = dice_.number(1, 9), k = dice_.number(1, 12), n = dice_.number(1, 17);
  const DType d = least_upper_dtype(a.dtype(), b.dtype());
  const Maybe x = convert(a, d), y = convert(b, d);
  if (!x || !y) return {};
  const bool exact = x->exact && y->exact;
  const double bound = x->bound * y->bound;
  const int fraction = x->fraction + y->fraction;
  if (x->is_float() && dice_.chance(30)) {
    const int64_t c = dice_.number(1, 2);
    const UOp image = fit(a, make_shape({1, c, 5, 6})).u, weight = fit(b, make_shape({2, c, 3, 3})).u;
    const UOp u = ops::conv2d(image, weight, {}, {.stride = dice_.number(1, 2), .padding = dice_.number(0, 1)});
    return made(u, exact, bound * double(9 * c), fraction);
  }
  const UOp left = fit(a, make_shape({m, k})).u, right = fit(b, make_shape({k, n})).u;
  return made(ops::matmul(left, right), exact, bound * double(k), fraction);
}

std::optional<Value> RandomValues::indexed(const Value& x) {
  if (x.shape().empty() || !all_known(x.shape())) return {};
  std::vector<Value> integers;
  for (const Value& v : pool_)
    if (is_int(v.dtype())) integers.push_back(v);
  const int64_t n = x.shape()[0].value();
  switch (dice_.number(0, 3)) {
    case 0: {
      if (integers.empty() || n > 40) return {};
      const UOp index = ops::mod(fit(dice_.pick(integers), random_shape(dice_, 12)).u, std::min<int64_t>(n, 100));
      return view(x, ops::get_item(x.u, std::vector<ops::Index>{index}));
    }
    case 1: {
      std::vector<ops::Index> slices;
      for (const SInt& size : x.shape()) {
        const int64_t step = dice_.pick({1, 1, 2, 3, -1, -2});
        if (size.value() < std::abs(step)) return {};
        slices.push_back(ops::Slice{.step = step});
      }
      return view(x, ops::get_item(x.u, slices));
    }
    case 2: return rank_of(x.u) < 2 ? Maybe() : view(x, ops::triu(x.u, dice_.number(-2, 2)));
    default: {
      if (!x.exact || n > 9 || is_bool(x.dtype())) return {};
      return view(x, ops::sort(x.u, 0, dice_.chance(50)).values);
    }
  }
}

}  // namespace tinygrad::test
