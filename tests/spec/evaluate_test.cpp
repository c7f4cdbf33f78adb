#include "spec/evaluate.h"

#include <chrono>

#include <gtest/gtest.h>

#include <tinygrad/errors.h>
#include "shape/shape.h"
#include "uop/build.h"

namespace tinygrad::spec {
namespace {

/// Tensor-level values made of a BUFFER each.
class EvaluateTest : public ::testing::Test {
 protected:
  UOp data(std::initializer_list<int64_t> sizes, std::initializer_list<double> values, DType dtype = DType::float32) {
    const UOp b = buffer(dtype, {.id = next_buffer_id(), .size = int64_t(values.size())});
    inputs_.set(b, Array::of(dtype, values));
    return reshape(b, sizes);
  }
  std::vector<double> run(const UOp& u) { return numbers(evaluate(u, inputs_)); }
  static std::vector<double> numbers(const Array& a) {
    std::vector<double> out;
    for (size_t i = 0; i < a.size(); ++i) out.push_back(a[i].as_double());
    return out;
  }
  std::vector<double> memory(const UOp& b) const { return numbers(inputs_.at(b)); }

  EvalInputs inputs_;
};

using Numbers = std::vector<double>;
using Pairs = std::vector<std::pair<SInt, SInt>>;
UOp number(double v, DType d = DType::float32) { return constant(d, v); }

TEST_F(EvaluateTest, Elementwise) {
  const UOp x = data({2, 2}, {1, 2, 3, 4}), y = data({2, 2}, {10, 20, 30, 40});
  EXPECT_EQ(run(x + y), (Numbers{11, 22, 33, 44}));
  EXPECT_EQ(run(x * number(2)), (Numbers{2, 4, 6, 8}));
  EXPECT_EQ(run(where(x < number(2.5), x, y)), (Numbers{1, 2, 30, 40}));
  EXPECT_EQ(run(cast(x + number(0.75), DType::int32)), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(run(bitcast(number(1.0), DType::uint32)), (Numbers{0x3f800000}));
  const Array a = evaluate(x + y, inputs_);
  EXPECT_EQ(a.dtype, DType::float32);
  EXPECT_EQ(a.shape, (SmallVector<int64_t, 6>{2, 2}));
}

TEST_F(EvaluateTest, EachOpRoundsToItsDType) {
  const UOp x = number(1, DType::float16), tiny = number(0.0004, DType::float16);
  EXPECT_EQ(run(x + tiny + tiny), (Numbers{1}));
  EXPECT_EQ(run(number(16777216) + number(1)), (Numbers{16777216}));
}

TEST_F(EvaluateTest, Movement) {
  const UOp x = data({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(permute(x, {1, 0})), (Numbers{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run(flip(x, {1})), (Numbers{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(run(shrink(x, {0, 2, 1, 3})), (Numbers{2, 3, 5, 6}));
  EXPECT_EQ(run(pad(x, {1, 0, 0, 1})), (Numbers{0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6, 0}));
  EXPECT_EQ(run(expand(reshape(x, {2, 1, 3}), {2, 2, 3})), (Numbers{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(run(expand(number(7), {3})), (Numbers{7, 7, 7}));
  EXPECT_EQ(run(shrink(x, {1, 1, 0, 3})), Numbers{});
  EXPECT_EQ(run(reduce(Op::ADD, shrink(x, {1, 1, 0, 3}), {0})), (Numbers{0, 0, 0}));
}

TEST_F(EvaluateTest, Reductions) {
  const UOp x = data({2, 3}, {1, 2, 3, 4, 5, -6});
  EXPECT_EQ(run(reduce(Op::ADD, x, {1})), (Numbers{6, 3}));
  EXPECT_EQ(run(reduce(Op::MAX, x, {0})), (Numbers{4, 5, 3}));
  EXPECT_EQ(run(reduce(Op::MUL, x, {0, 1})), (Numbers{-720}));
}

TEST_F(EvaluateTest, IotaStackTuple) {
  const UOp n(Op::IOTA, DType::int32, {index_const(4)}, DeviceArg{});
  EXPECT_EQ(run(n), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(run(stack(std::vector<UOp>{number(1), number(2)})), (Numbers{1, 2}));
  const UOp x = data({2}, {5, 6});
  EXPECT_EQ(run(stack(std::vector<UOp>{x, x + number(1)})), (Numbers{5, 6, 6, 7}));
  const UOp t(Op::TUPLE, DType::void_, {x, number(3)});
  EXPECT_EQ(run(UOp(Op::GETTUPLE, DType::float32, {t}, TupleArg{1})), (Numbers{3}));
}

TEST_F(EvaluateTest, Identities) {
  const UOp x = data({2}, {5, 6});
  for (Op op : {Op::CONTIGUOUS, Op::CONTIGUOUS_BACKWARD, Op::DETACH}) EXPECT_EQ(run(UOp(op, DType::float32, {x})), (Numbers{5, 6}));
  EXPECT_EQ(run(UOp(Op::COPY, DType::float32, {x}, DeviceArg{"CUDA"})), (Numbers{5, 6}));
}

TEST_F(EvaluateTest, Variables) {
  const UOp n = variable("n", 1, 4), x = data({4}, {1, 2, 3, 4});
  const UOp part = shrink(x, Pairs{{0, n}});
  inputs_.variables["n"] = 3;
  EXPECT_EQ(run(part), (Numbers{1, 2, 3}));
  EXPECT_EQ(run(shrink(x, Pairs{{0, bind(n, 2)}})), (Numbers{1, 2}));
  inputs_.variables["n"] = 5;
  EXPECT_THROW(run(part), ValueError);
  inputs_.variables.clear();
  EXPECT_THROW(run(part), ValueError);
}

TEST_F(EvaluateTest, SizesThatOnlyDifferAtRunTime) {
  const UOp n = variable("n", 1, 4), x = data({4}, {1, 2, 3, 4});
  inputs_.variables["n"] = 3;
  EXPECT_THROW(run(shrink(x, Pairs{{0, n}}) + shrink(x, Pairs{{0, 2}})), ShapeError);
}

TEST_F(EvaluateTest, Threefry) {
  const UOp bits = alu(Op::THREEFRY, {constant(DType::uint64, int64_t{0}), constant(DType::uint64, int64_t{0})});
  EXPECT_EQ(evaluate(bits)[0].as_uint(), 0x99ba4efe6b200159u);  // the Random123 known-answer test
}

TEST_F(EvaluateTest, Matmul) {
  constexpr int64_t n = 64;
  std::vector<double> values;
  for (int64_t i = 0; i < n * n; ++i) values.push_back(double(i % 13) - 6);
  const UOp a = buffer(DType::float32, {.id = next_buffer_id(), .size = n * n}),
            b = buffer(DType::float32, {.id = next_buffer_id(), .size = n * n});
  inputs_.set(a, Array::of(DType::float32, values));
  inputs_.set(b, Array::of(DType::float32, values));
  const UOp left = expand(reshape(a, {n, 1, n}), {n, n, n}),
            right = expand(reshape(permute(reshape(b, {n, n}), {1, 0}), {1, n, n}), {n, n, n});
  const auto start = std::chrono::steady_clock::now();
  const Numbers c = run(reduce(Op::ADD, left * right, {2}));
  RecordProperty("microseconds", int((std::chrono::steady_clock::now() - start) / std::chrono::microseconds(1)));
  for (int64_t i : {0, 17, 63})
    for (int64_t j : {0, 5, 63}) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += values[size_t(i * n + k)] * values[size_t(k * n + j)];
      EXPECT_EQ(c[size_t(i * n + j)], sum);
    }
}

TEST_F(EvaluateTest, MillionNodes) {
  UOp x = number(0);
  const UOp one = number(1);
  for (int i = 0; i < 1'000'000; ++i) x = x + one;
  EXPECT_EQ(run(x), (Numbers{1e6}));
}

TEST_F(EvaluateTest, NoData) {
  const UOp b = buffer(DType::float32, {.id = next_buffer_id(), .size = 4});
  EXPECT_THROW(run(b + number(1)), ValueError);
  EXPECT_THROW(inputs_.at(b), ValueError);
  inputs_.set(b, Array::of(DType::float32, {1, 2}));
  EXPECT_THROW(run(b + number(1)), ShapeError);
  inputs_.set(b, Array::of(DType::int32, {1, 2, 3, 4}));
  EXPECT_THROW(run(b + number(1)), DTypeError);
}

TEST_F(EvaluateTest, Exact) {
  const UOp x = data({3}, {1e8, 1, -1e8});
  const UOp sum = reduce(Op::ADD, x, {0});
  EXPECT_EQ(run(sum), (Numbers{0}));
  const Evaluation e = evaluate(std::span(&sum, 1), inputs_, {.exact = true});
  EXPECT_EQ(numbers(e.values[0]), (Numbers{1}));
  EXPECT_EQ(e.values[0].dtype, DType::float64);
  EXPECT_EQ(e.largest_magnitude, 100000001.0);  // the partial sum, not the result
  EXPECT_EQ(run(bitcast(cast(sum, DType::float16), DType::uint16)), (Numbers{0}));
}

// The inside of kernels.

TEST_F(EvaluateTest, LoadsOverRanges) {
  const UOp p = param(DType::float32, 6, {.slot = 0}), out = param(DType::float32, 6, {.slot = 1});
  inputs_.set(p, Array::of(DType::float32, {1, 2, 3, 4, 5, 6}));
  const UOp i = range(2, 0), j = range(3, 1);
  const UOp x = load(index(p, i * 3 + j));
  run(sink(std::vector<UOp>{end(store(index(out, j * 2 + i), x * number(10)), std::vector<UOp>{i, j})}));
  EXPECT_EQ(memory(out), (Numbers{10, 40, 20, 50, 30, 60}));
}

TEST_F(EvaluateTest, ReduceOverRanges) {
  const UOp p = param(DType::float32, 6, {.slot = 0}), out = param(DType::float32, 2, {.slot = 1});
  inputs_.set(p, Array::of(DType::float32, {1, 2, 3, 4, 5, 6}));
  const UOp i = range(2, 0), j = range(3, 1, AxisKind::reduce);
  const UOp sum(Op::REDUCE, DType::float32, {load(index(p, i * 3 + j)), j}, ReduceArg{Op::ADD, {}});
  run(sink(std::vector<UOp>{end(store(index(out, i), sum), std::vector<UOp>{i})}));
  EXPECT_EQ(memory(out), (Numbers{6, 15}));
  const UOp five(Op::REDUCE, DType::float32, {number(1), range(5, 9)}, ReduceArg{Op::ADD, {}});
  EXPECT_EQ(run(five), (Numbers{5}));
}

TEST_F(EvaluateTest, ValidityAndGates) {
  const UOp p = param(DType::float32, 3, {.slot = 0});
  inputs_.set(p, Array::of(DType::float32, {1, 2, 3}));
  const UOp i = range(5, 0), inside = i < 3;
  auto sum = [&](const UOp& x) { return UOp(Op::REDUCE, DType::float32, {x, i}, ReduceArg{Op::ADD, {}}); };
  EXPECT_EQ(run(sum(load(index_valid(p, i, inside)))), (Numbers{6}));
  EXPECT_EQ(run(sum(UOp(Op::LOAD, DType::float32, {index_valid(p, i, inside), number(100)}))), (Numbers{206}));
  EXPECT_EQ(run(sum(UOp(Op::LOAD, DType::float32, {index(p, i), number(100), inside}))), (Numbers{206}));
  EXPECT_THROW(run(sum(load(index(p, i)))), IndexError);
  EXPECT_THROW(run(load(index(p, index_const(-1)))), IndexError);
  const UOp out = param(DType::float32, 3, {.slot = 1});
  run(end(UOp(Op::STORE, DType::void_, {index(out, i), number(9), i < 2}), std::vector<UOp>{i}));
  EXPECT_EQ(memory(out), (Numbers{9, 9, 0}));
  EXPECT_THROW(run(end(store(index(out, i), number(9)), std::vector<UOp>{i})), IndexError);
}

TEST_F(EvaluateTest, VectorsAndLanes) {
  const UOp p = param(DType::float32, 8, {.slot = 0}), out = param(DType::float32, 8, {.slot = 1});
  inputs_.set(p, Array::of(DType::float32, {0, 1, 2, 3, 4, 5, 6, 7}));
  const UOp i = range(2, 0);
  const UOp v = load(index(p, i * 4, 4));
  run(end(store(index(out, i * 4, 4), v * expand(number(2), {4})), std::vector<UOp>{i}));
  EXPECT_EQ(memory(out), (Numbers{0, 2, 4, 6, 8, 10, 12, 14}));
  const UOp w = load(index(p, index_const(2), 4));
  EXPECT_EQ(run(index(w, index_const(1))), (Numbers{3}));
  EXPECT_EQ(run(load(index(p, stack(std::vector<UOp>{index_const(7), index_const(0)})))), (Numbers{7, 0}));
}

TEST_F(EvaluateTest, RunsWithAGateForEachLane) {
  const UOp p = param(DType::float32, 6, {.slot = 0}), out = param(DType::float32, 6, {.slot = 1});
  inputs_.set(p, Array::of(DType::float32, {0, 1, 2, 3, 4, 5}));
  const UOp i = range(2, 0), alternative = expand(number(9), {4});
  UOps lanes;
  for (int64_t n = 0; n < 4; ++n) lanes.push_back(i * 4 + n < 6);
  const UOp gate = stack(lanes);
  const UOp v(Op::LOAD, DType::float32, {index(p, i * 4, 4), alternative, gate});
  EXPECT_EQ(run(UOp(Op::REDUCE, DType::float32, {v, i}, ReduceArg{Op::ADD, {}})), (Numbers{4, 6, 11, 12}));
  run(end(UOp(Op::STORE, DType::void_, {index(out, i * 4, 4), v, gate}), std::vector<UOp>{i}));
  EXPECT_EQ(memory(out), (Numbers{0, 1, 2, 3, 4, 5}));
}

TEST_F(EvaluateTest, StagesKeepValues) {
  const UOp i = range(2, 0), j = range(3, 1), k = range(6, 2);
  const UOp staged(Op::STAGE, DType::index, {i * 10 + j, i, j}, StageArg{.scope = Scope::reg});
  EXPECT_EQ(run(staged), (Numbers{0, 1, 2, 10, 11, 12}));
  const UOp back(Op::REDUCE, DType::index, {index(staged, k) * k, k}, ReduceArg{Op::ADD, {}});
  EXPECT_EQ(run(back), (Numbers{0 + 1 + 4 + 30 + 44 + 60}));
}

TEST_F(EvaluateTest, RangesOfOtherRanges) {
  const UOp i = range(4, 0), j = range(i + 1, RangeArg{.id = 1});
  const UOp inner(Op::REDUCE, DType::index, {j, j}, ReduceArg{Op::ADD, {}});
  EXPECT_EQ(run(UOp(Op::REDUCE, DType::index, {inner, i}, ReduceArg{Op::ADD, {}})), (Numbers{0 + 1 + 3 + 6}));
  const UOp p = param(DType::int32, 10, {.slot = 0});
  run(end(end(store(index(p, floor_div(i * (i + 1), 2) + j), cast(j, DType::int32)), std::vector<UOp>{j}), std::vector<UOp>{i}));
  EXPECT_EQ(memory(p), (Numbers{0, 0, 1, 0, 1, 2, 0, 1, 2, 3}));
}

TEST_F(EvaluateTest, LoopsCarryMemory) {
  // acc = 0; for r: acc += x[r]; out[i] = acc
  const UOp p = param(DType::float32, 6, {.slot = 0}), out = param(DType::float32, 2, {.slot = 1});
  inputs_.set(p, Array::of(DType::float32, {1, 2, 3, 4, 5, 6}));
  const UOp acc = buffer(DType::float32, {.id = 1, .size = 1, .scope = Scope::reg}), zero = index_const(0);
  const UOp i = range(2, 0), r = range(3, 1);
  const UOp init = store(index(after(acc, std::vector<UOp>{i}), zero), number(0));
  const UOp head = after(acc, std::vector<UOp>{init, r});
  const UOp step = store(index(head, zero), load(index(head, zero)) + load(index(p, i * 3 + r)));
  const UOp total = load(index(after(acc, std::vector<UOp>{end(step, std::vector<UOp>{r})}), zero));
  run(sink(std::vector<UOp>{end(store(index(out, i), total), std::vector<UOp>{i})}));
  EXPECT_EQ(memory(out), (Numbers{6, 15}));
}

TEST_F(EvaluateTest, LoopsThatCarryInOneRangeOnly) {
  // The accumulator is not tied to the outer loop: each of its iterations starts from the memory as it was.
  const UOp out = param(DType::int32, 3, {.slot = 0});
  const UOp acc = buffer(DType::int32, {.id = 1, .size = 1, .scope = Scope::reg}), zero = index_const(0);
  const UOp i = range(3, 0), r = range(4, 1);
  const UOp init = store(index(acc, zero), cast(i, DType::int32) * 100);
  const UOp head = after(acc, std::vector<UOp>{init, r});
  const UOp step = store(index(head, zero), load(index(head, zero)) + cast(r, DType::int32));
  const UOp total = load(index(after(acc, std::vector<UOp>{end(step, std::vector<UOp>{r})}), zero));
  run(sink(std::vector<UOp>{end(store(index(out, i), total), std::vector<UOp>{i})}));
  EXPECT_EQ(memory(out), (Numbers{6, 106, 206}));
}

TEST_F(EvaluateTest, LanesOfALoopStepTogether) {
  // A running count that all lanes share, and a vector that adds it up: a lane must not find what another one counted in the same
  // iteration.
  const UOp out = param(DType::int32, 2, {.slot = 0});
  const UOp count = buffer(DType::int32, {.id = 1, .size = 1, .scope = Scope::reg}), zero = index_const(0);
  const UOp sums = buffer(DType::int32, {.id = 2, .size = 2, .scope = Scope::reg});
  const UOp k = range(3, 0), lane = range(2, 1, AxisKind::lane);
  const auto carried = [&](const UOp& memory, const UOp& at) {
    const UOp start = store(index(memory, at), constant(DType::int32, 0));
    return index(after(memory, std::vector<UOp>{start, k}), at);
  };
  const UOp counted = carried(count, zero), summed = carried(sums, lane);
  const UOp next = load(counted) + 1;
  const UOp steps = group(std::vector<UOp>{store(counted, next), store(summed, load(summed) + next * cast(lane + 1, DType::int32))});
  const UOp total = load(index(after(sums, std::vector<UOp>{end(steps, std::vector<UOp>{k, lane})}), lane));
  run(sink(std::vector<UOp>{end(store(index(out, lane), total), std::vector<UOp>{lane})}));
  EXPECT_EQ(memory(out), (Numbers{6, 12}));
}

TEST_F(EvaluateTest, LoopsOfZeroIterationsKeepWhatWasBefore) {
  const UOp acc = buffer(DType::int32, {.id = 1, .size = 1, .scope = Scope::reg}), zero = index_const(0), r = range(0, 1);
  const UOp head = after(acc, std::vector<UOp>{store(index(acc, zero), constant(DType::int32, 7)), r});
  const UOp step = store(index(head, zero), load(index(head, zero)) + 1);
  EXPECT_EQ(run(load(index(after(acc, std::vector<UOp>{end(step, std::vector<UOp>{r})}), zero))), (Numbers{7}));
}

TEST_F(EvaluateTest, StoresOfALoopInterleave) {
  // Each iteration writes i and then i + 1: the second iteration's first store wins over the first's second.
  const UOp p = param(DType::int32, 4, {.slot = 0}), i = range(3, 0);
  const UOp both =
      group(std::vector<UOp>{store(index(p, i), constant(DType::int32, 1)), store(index(p, i + 1), constant(DType::int32, 2))});
  run(end(both, std::vector<UOp>{i}));
  EXPECT_EQ(memory(p), (Numbers{1, 1, 1, 2}));
}

TEST_F(EvaluateTest, LaunchDimensions) {
  const UOp p = param(DType::int32, 6, {.slot = 0});
  const UOp g(Op::SPECIAL, DType::index, {index_const(2)}, SpecialArg{AxisKind::global, 0});
  const UOp l(Op::SPECIAL, DType::index, {index_const(3)}, SpecialArg{AxisKind::local, 0});
  const UOp shared = buffer(DType::int32, {.id = 1, .size = 3, .scope = Scope::group});
  const UOp put = store(index(shared, l), cast(g * 10 + l, DType::int32));
  const UOp seen = after(shared, std::vector<UOp>{UOp(Op::BARRIER, DType::void_, {put})});
  run(sink(std::vector<UOp>{store(index(p, g * 3 + l), load(index(seen, index_const(2) - l)))}));
  EXPECT_EQ(memory(p), (Numbers{2, 1, 0, 12, 11, 10}));
}

// Tuples carried through a reduction.

UOp slot(int32_t i, DType d = DType::float32) { return UOp(Op::PARAM, d, {}, ParamArg{.slot = i}); }
UOp tuple(std::initializer_list<UOp> s) { return UOp(Op::TUPLE, DType::void_, s); }
UOp function(const UOp& body) { return UOp(Op::FUNCTION, body.dtype(), {body}, FunctionArg{"f"}); }
UOp element(const UOp& t, int32_t i, DType d) { return UOp(Op::GETTUPLE, d, {t}, TupleArg{i}); }

UOp argmax(const UOp& x, const UOp& at, const Axes& axes, std::initializer_list<UOp> ranges) {
  const UOp best = slot(0), where_best = slot(1, DType::int32), next = slot(2), where_next = slot(3, DType::int32);
  const UOp better = best < next;
  const UOp step = function(tuple({where(better, next, best), where(better, where_next, where_best)}));
  UOps s{tuple({x, at}), tuple({number(-1e30), constant(DType::int32, -1)}), step, step};
  for (const UOp& r : ranges) s.push_back(r);
  return UOp(Op::REDUCE, DType::void_, s, ReduceArg{Op::FUNCTION, axes});
}

TEST_F(EvaluateTest, GeneralReduceOverAxes) {
  const UOp x = data({2, 3}, {3, 9, 9, -1, -2, -3});
  const UOp at = expand(reshape(UOp(Op::IOTA, DType::int32, {index_const(3)}, DeviceArg{}), {1, 3}), {2, 3});
  const UOp r = argmax(x, at, {1}, {});
  EXPECT_EQ(run(element(r, 0, DType::float32)), (Numbers{9, -1}));
  EXPECT_EQ(run(element(r, 1, DType::int32)), (Numbers{1, 0}));
}

TEST_F(EvaluateTest, GeneralReduceOverRanges) {
  const UOp p = param(DType::float32, 6, {.slot = 0}), out = param(DType::int32, 2, {.slot = 1});
  inputs_.set(p, Array::of(DType::float32, {1, 5, 2, 7, 7, 0}));
  const UOp i = range(2, 0), k = range(3, 1);
  const UOp r = argmax(load(index(p, i * 3 + k)), cast(k, DType::int32), {}, {k});
  run(end(store(index(out, i), element(r, 1, DType::int32)), std::vector<UOp>{i}));
  EXPECT_EQ(memory(out), (Numbers{1, 0}));
}

// Calls.

TEST_F(EvaluateTest, FunctionsAreClosedScopes) {
  const UOp r = range(3, 0), body = slot(0, DType::index) * 10 + UOp(Op::REDUCE, DType::index, {r, r}, ReduceArg{Op::ADD, {}});
  const UOp call(Op::CALL, DType::index, {function(body), r});  // the same RANGE node means another loop inside
  EXPECT_EQ(run(UOp(Op::REDUCE, DType::index, {call, r}, ReduceArg{Op::ADD, {}})), (Numbers{3 + 13 + 23}));
}

TEST_F(EvaluateTest, FunctionsNest) {
  const UOp x = data({3}, {1, 2, 3});
  const UOp p = UOp(Op::PARAM, DType::float32, {index_const(3)}, ParamArg{.slot = 0});
  const UOp square = function(p * p);
  const UOp twice = function(UOp(Op::CALL, DType::float32, {square, UOp(Op::CALL, DType::float32, {square, p})}));
  EXPECT_EQ(run(UOp(Op::CALL, DType::float32, {twice, x})), (Numbers{1, 16, 81}));
  const UOp pair = function(tuple({p, reduce(Op::ADD, p, {0})}));
  EXPECT_EQ(run(element(UOp(Op::CALL, DType::void_, {pair, x}), 1, DType::float32)), (Numbers{6}));
}

UOp add_one_kernel(int64_t n) {
  const UOp out = param(DType::float32, n, {.slot = 0}), in = param(DType::float32, n, {.slot = 1}), i = range(n, 0);
  return sink(std::vector<UOp>{end(store(index(out, i), load(index(in, i)) + number(1)), std::vector<UOp>{i})}, KernelArg{});
}

TEST_F(EvaluateTest, KernelsWriteTheirArguments) {
  const UOp a = buffer(DType::float32, {.id = next_buffer_id(), .size = 3}),
            b = buffer(DType::float32, {.id = next_buffer_id(), .size = 3});
  inputs_.set(a, Array::of(DType::float32, {1, 2, 3}));
  const UOp call(Op::CALL, DType::void_, {add_one_kernel(3), b, a});
  run(call);
  EXPECT_EQ(memory(b), (Numbers{2, 3, 4}));
  EXPECT_EQ(run(after(b, std::vector<UOp>{call}) * number(2)), (Numbers{4, 6, 8}));
}

TEST_F(EvaluateTest, SchedulesRunInOrder) {
  const UOp a = buffer(DType::float32, {.id = next_buffer_id(), .size = 2}),
            b = buffer(DType::float32, {.id = next_buffer_id(), .size = 2});
  inputs_.set(a, Array::of(DType::float32, {1, 2}));
  const UOp forth(Op::CALL, DType::void_, {add_one_kernel(2), b, a}), back(Op::CALL, DType::void_, {add_one_kernel(2), a, b});
  run(UOp(Op::LINEAR, DType::void_, {forth, back, forth}, LinearArg{}));  // the same call twice runs twice
  EXPECT_EQ(memory(a), (Numbers{3, 4}));
  EXPECT_EQ(memory(b), (Numbers{4, 5}));
}

TEST_F(EvaluateTest, KernelsOnViewsAndVariables) {
  const UOp a = buffer(DType::float32, {.id = next_buffer_id(), .size = 4});
  inputs_.set(a, Array::of(DType::float32, {1, 2, 3, 4}));
  const UOp view = shrink(a, {2, 4}), n = variable("n", 1, 2), out = param(DType::float32, 2, {.slot = 0});
  const UOp i = range(n, RangeArg{});
  const UOp body = sink(std::vector<UOp>{end(store(index(out, i), number(0)), std::vector<UOp>{i})}, KernelArg{});
  run(UOp(Op::CALL, DType::void_, {body, view, bind(n, 1)}));
  EXPECT_EQ(memory(a), (Numbers{1, 2, 0, 4}));
}

TEST_F(EvaluateTest, Copies) {
  const UOp a = buffer(DType::float32, {.id = next_buffer_id(), .size = 2}),
            b = buffer(DType::float32, {.id = next_buffer_id(), .size = 2});
  inputs_.set(a, Array::of(DType::float32, {1, 2}));
  const UOp body(Op::COPY, DType::float32, {param(DType::float32, 2, {.slot = 1})}, DeviceArg{"CPU"});
  run(UOp(Op::CALL, DType::void_, {body, b, a}));
  EXPECT_EQ(memory(b), (Numbers{1, 2}));
}

TEST_F(EvaluateTest, WhatNoEvaluatorRuns) {
  EXPECT_THROW(run(UOp(Op::WMMA, DType::float32, {number(1), number(1), number(1)}, WmmaArg{})), InternalError);
  EXPECT_THROW(run(UOp(Op::LINEAR, DType::void_, {number(1)}, LinearArg{1})), InternalError);
  EXPECT_THROW(run(range(3, 0)), InternalError);
}

}  // namespace
}  // namespace tinygrad::spec
