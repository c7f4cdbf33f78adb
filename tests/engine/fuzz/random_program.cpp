#include "engine/fuzz/random_program.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/fuzz/random_values.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::test {

UOp Program::memory(spec::Array data) {
  const UOp b = buffer(data.dtype, {.id = next_buffer_id(), .size = int64_t(data.size())});
  memories.push_back({b, std::move(data)});
  return b;
}

namespace {

class ProgramGenerator {
 public:
  explicit ProgramGenerator(uint64_t seed) : dice_(seed), values_(dice_) {}

  Program make() {
    if (dice_.chance(35)) add_sizes();
    for (int64_t n = dice_.number(1, 4); n > 0; --n) values_.add(input(random_dtype(dice_), random_shape(dice_, most_elements())));
    const int64_t steps = dice_.number(1, 7);
    const bool stateful = dice_.chance(40);
    for (int64_t i = 0; i < steps; ++i) {
      values_.grow();
      if (stateful && (i == 0 || dice_.chance(30))) update();
    }
    for (State& s : states_) program_.effects.push_back(s.memory);
    for (int64_t n = dice_.number(states_.empty() ? 1 : 0, 2); n > 0; --n) output(n == 1 ? values_.pool().back() : values_.pick());
    for (size_t i = program_.effects.size(); i > 1; --i)
      std::swap(program_.effects[i - 1], program_.effects[size_t(dice_.number(0, int64_t(i) - 1))]);
    for (const Value& v : values_.pool())
      if (v.exact) program_.exact.push_back(v.u);
    return std::move(program_);
  }

 private:
  /// Memory that is stored to: `memory` has all of it in its last state, `value` that as a value.
  struct State {
    UOp memory;
    Value value;
  };

  int64_t most_elements() { return dice_.pick({6, 24, 24, 60, 120, 120, 500, 500, 3000}); }

  void add_sizes() {
    for (int64_t i = dice_.number(1, 2); i > 0; --i) {
      const int64_t most = dice_.number(2, 9), low = dice_.chance(70) ? 1 : 2;
      values_.add_size(bind(variable(Symbol(i == 1 ? "n" : "m"), low, most), dice_.number(low, most)));
    }
  }

  enum class Kind { exact, special, fractions };

  double random_element(DType d, Kind kind, int64_t most) {
    if (!is_float(d)) return 0;
    if (kind == Kind::fractions) return (dice_.fraction() * 2 - 1) * double(most);
    constexpr double inf = std::numeric_limits<double>::infinity();
    if (kind == Kind::special && dice_.chance(8))
      return dice_.pick({std::nan(""), max_value(d).is_inf() ? inf : 1.0, max_value(d).is_inf() ? -inf : -1.0, -0.0});
    return double(dice_.number(-most, most));
  }

  /// Random elements in new memory, seen in a shape.
  Value input(DType d, const Shape& shape) {
    const Kind kind = dice_.pick({Kind::exact, Kind::exact, Kind::special, Kind::fractions, Kind::fractions, Kind::fractions});
    const int64_t most = is_float(d) ? dice_.pick({1, 2, 4}) : dice_.pick({3, 10, 100});
    const bool any = is_int(d) && dice_.chance(30);
    const int64_t n = numel(shape).value();
    spec::Array data = spec::Array::zeros(d, std::span(&n, 1));
    for (int64_t i = 0; i < n; ++i) {
      const Scalar s = is_float(d) ? Scalar::from_double(random_element(d, kind, most), d)
                       : any       ? Scalar::from_uint(dice_.bits() >> dice_.number(0, 63), d)
                                   : Scalar::from_int(dice_.number(is_signed(d) ? -most : 0, most), d);
      s.to_bytes(data.bytes.data() + size_t(i) * itemsize(d));
    }
    const UOp u = tinygrad::reshape(program_.memory(std::move(data)), shape);
    return {u, !(is_float(d) && kind == Kind::fractions), any ? any_integer : is_bool(d) ? 1 : double(most), 0};
  }

  /// A view of memory to store to.
  UOp target(UOp view) {
    const Shape shape = shape_of(view);
    if (shape.empty() || dice_.chance(25)) return view;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (!dice_.chance(60)) continue;
      const int64_t n = shape[i].value();
      const int64_t begin = dice_.number(0, n - 1), end = dice_.number(begin + 1, n);
      view = ops::shrink_axis(view, int(i), begin, end);
    }
    if (dice_.chance(25)) view = ops::flip(view, {int(dice_.number(0, int64_t(shape.size()) - 1))});
    if (shape.size() > 1 && dice_.chance(25)) view = ops::transpose(view, 0, 1);
    return view;
  }

  /// Something of the dtype to store into `to`, a view of `state`.
  Value stored(const State& state, const UOp& to) {
    for (int tries = 0; tries < 8; ++tries) {
      const Value& from = dice_.chance(40) ? state.value : values_.pick();
      auto v = RandomValues::convert(values_.fit(from, shape_of(to)), to.dtype());
      if (!v) continue;
      if (dice_.chance(40) && !is_bool(v->dtype())) v = made(ops::add(v->u, 1), v->exact, v->bound + 1, v->fraction, is_signed(v->dtype()));
      if (v) return *v;
    }
    return values_.fit(state.value, shape_of(to));
  }

  /// A store into memory, new or stored to before; the state it leaves is one more value.
  void update() {
    if (states_.empty() || dice_.chance(25)) {
      Value v = input(random_dtype(dice_), random_shape(dice_, 120));
      values_.add(v);
      states_.push_back({v.u.is(Op::RESHAPE) ? v.u.src(0) : v.u, v});
    }
    State& s = states_[size_t(dice_.number(0, int64_t(states_.size()) - 1))];
    const Shape shape = s.value.shape();
    // The state is named by the flat memory or by a view of all of it.
    const UOp whole = shape_of(s.memory) == shape ? s.memory : tinygrad::reshape(s.memory, shape);
    const bool by_view = dice_.chance(30);
    UOps stores;
    bool exact = s.value.exact;
    double bound = s.value.bound;
    int fraction = s.value.fraction;
    auto add = [&](const UOp& to) {
      const Value v = stored(s, to);
      stores.push_back(store(to, v.u));
      exact = exact && v.exact;
      bound = std::max(bound, v.bound);
      fraction = std::max(fraction, v.fraction);
    };
    if (!shape.empty() && shape[0].value() > 1 && dice_.chance(20)) {  // two parts at once
      const int64_t at = dice_.number(1, shape[0].value() - 1);
      add(ops::shrink_axis(whole, 0, 0, at));
      add(ops::shrink_axis(whole, 0, at, shape[0]));
    } else {
      add(target(whole));
    }
    s.memory = after(by_view ? whole : s.memory, stores);
    const UOp seen = shape_of(s.memory) == shape ? s.memory : tinygrad::reshape(s.memory, shape);
    s.value = {seen, exact, bound, fraction};
    values_.add(s.value);
  }

  /// A value stored into memory of its own that had other elements.
  void output(const Value& v) {
    Shape most;
    for (int64_t n : max_sizes(v.shape())) most.push_back(n);
    UOp to = input(v.dtype(), most).u;
    for (size_t i = 0; i < most.size(); ++i)
      if (!v.shape()[i].known()) to = ops::shrink_axis(to, int(i), 0, v.shape()[i]);
    if (!most.empty() && dice_.chance(10)) to = ops::flip(to, {0});
    program_.effects.push_back(store(to, v.shape().empty() ? v.u : ops::broadcast_to(v.u, v.shape())));
  }

  Dice dice_;
  RandomValues values_;
  Program program_;
  std::vector<State> states_;
};

}  // namespace

Program random_program(uint64_t seed) { return ProgramGenerator(seed).make(); }

std::string to_string(const Program& p) { return print_graph(p.effects); }

}  // namespace tinygrad::test
