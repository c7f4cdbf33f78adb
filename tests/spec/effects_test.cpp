// What assignments mean, as graphs: EXAMPLES of effects on one buffer and its views.

#include <gtest/gtest.h>

#include <tinygrad/errors.h>
#include "spec/evaluate.h"
#include "uop/build.h"

namespace tinygrad::spec {
namespace {

using Numbers = std::vector<double>;

class EffectsTest : public ::testing::Test {
 protected:
  EffectsTest() : x_(buffer(DType::float32, {.id = next_buffer_id(), .size = 4})) { set({1, 2, 3, 4}); }

  void set(std::initializer_list<double> values) { inputs_.set(x_, Array::of(DType::float32, values)); }
  static Numbers numbers(const Array& a) {
    Numbers out;
    for (size_t i = 0; i < a.size(); ++i) out.push_back(a[i].as_double());
    return out;
  }
  Numbers run(const UOp& u) { return numbers(evaluate(u, inputs_)); }
  Numbers memory() const { return numbers(inputs_.at(x_)); }
  static UOp assigned(const UOp& view, const UOp& value) { return after(view, std::vector<UOp>{store(view, value)}); }
  static UOp number(double v) { return constant(DType::float32, v); }

  UOp x_;
  EvalInputs inputs_;
};

TEST_F(EffectsTest, ValuesMeanTheStateWhereTheyWereWritten) {
  const UOp y = x_ + number(1);                 // before
  const UOp x2 = assigned(x_, x_ * number(2));  // x.assign(x * 2)
  const UOp z = x2 + number(1);                 // after
  const UOp roots[] = {z, y, x2};
  const Evaluation e = evaluate(roots, inputs_);
  EXPECT_EQ(numbers(e.values[0]), (Numbers{3, 5, 7, 9}));
  EXPECT_EQ(numbers(e.values[1]), (Numbers{2, 3, 4, 5}));
  EXPECT_EQ(numbers(e.values[2]), (Numbers{2, 4, 6, 8}));
  EXPECT_EQ(memory(), (Numbers{2, 4, 6, 8}));  // once, though two roots need it
}

TEST_F(EffectsTest, BothStatesInOneValue) {
  const UOp x2 = assigned(x_, x_ * number(10));
  EXPECT_EQ(run(x2 + x_), (Numbers{11, 22, 33, 44}));
}

TEST_F(EffectsTest, FlipOverlapsItself) {
  run(assigned(x_, flip(x_, {0})));
  EXPECT_EQ(memory(), (Numbers{4, 3, 2, 1}));
}

TEST_F(EffectsTest, ShiftOverlapsItself) {
  run(assigned(shrink(x_, {2, 4}), shrink(x_, {1, 3})));  // x[2:4] = x[1:3]
  EXPECT_EQ(memory(), (Numbers{1, 2, 2, 3}));
}

TEST_F(EffectsTest, TransposeInPlace) {
  const UOp square = reshape(x_, {2, 2});
  EXPECT_EQ(run(assigned(square, permute(square, {1, 0}))), (Numbers{1, 3, 2, 4}));
  EXPECT_EQ(memory(), (Numbers{1, 3, 2, 4}));
}

TEST_F(EffectsTest, StoresThroughTransposedAndPaddedViews) {
  const UOp columns = permute(reshape(x_, {2, 2}), {1, 0});
  run(assigned(columns, expand(reshape(stack(std::vector<UOp>{number(5), number(6)}), {2, 1}), {2, 2})));
  EXPECT_EQ(memory(), (Numbers{5, 6, 5, 6}));
  run(assigned(pad(shrink(x_, {0, 2}), {1, 1}), number(9)));  // padding is not stored
  EXPECT_EQ(memory(), (Numbers{9, 9, 5, 6}));
}

TEST_F(EffectsTest, RunningAgainRunsAgain) {
  const UOp x2 = assigned(x_, x_ + number(1));
  for (int i = 0; i < 3; ++i) run(x2);
  EXPECT_EQ(memory(), (Numbers{4, 5, 6, 7}));
}

TEST_F(EffectsTest, StoresOneAfterTheOther) {
  const UOp first = assigned(x_, x_ + number(1)), second = assigned(first, first * number(2));
  EXPECT_EQ(run(second - first), (Numbers{2, 3, 4, 5}));
  EXPECT_EQ(memory(), (Numbers{4, 6, 8, 10}));
}

TEST_F(EffectsTest, StoresToPartsOfOneBuffer) {
  const UOp low = store(shrink(x_, {0, 2}), number(7)), high = store(shrink(x_, {2, 4}), shrink(x_, {0, 2}));
  EXPECT_EQ(run(after(x_, std::vector<UOp>{low, high})), (Numbers{7, 7, 1, 2}));  // both values are from before
}

TEST_F(EffectsTest, AViewSeesStoresThroughAnotherView) {
  const UOp x2 = after(x_, std::vector<UOp>{store(shrink(x_, {1, 2}), number(0))});
  EXPECT_EQ(run(reshape(x2, {2, 2})), (Numbers{1, 0, 3, 4}));
}

TEST_F(EffectsTest, DiamondsRunAStoreOnce) {
  const UOp x2 = assigned(x_, x_ + number(1));
  const UOp left = x2 * number(2), right = x2 + number(3);
  EXPECT_EQ(run(left + right), (Numbers{9, 12, 15, 18}));
  EXPECT_EQ(memory(), (Numbers{2, 3, 4, 5}));
}

TEST_F(EffectsTest, SinksLeaveMemory) {
  const UOp y = buffer(DType::float32, {.id = next_buffer_id(), .size = 4});
  const UOp x2 = assigned(x_, x_ + number(1));
  run(sink(std::vector<UOp>{store(y, x2 * x_)}));  // the store to x is needed by the one to y
  EXPECT_EQ(memory(), (Numbers{2, 3, 4, 5}));
  EXPECT_EQ(numbers(inputs_.at(y)), (Numbers{2, 6, 12, 20}));
}

TEST_F(EffectsTest, KernelLevelStates) {
  // One loop nest stores, the next reads what it stored at other places.
  const UOp i = range(4, 0), j = range(4, 1), y = param(DType::float32, 4, {.slot = 0});
  const UOp first = end(store(index(x_, i), load(index(x_, i)) * number(2)), std::vector<UOp>{i});
  const UOp read = load(index(after(x_, std::vector<UOp>{first}), index_const(3) - j));
  run(sink(std::vector<UOp>{first, end(store(index(y, j), read), std::vector<UOp>{j})}, KernelArg{}));
  EXPECT_EQ(memory(), (Numbers{2, 4, 6, 8}));
  EXPECT_EQ(numbers(inputs_.at(y)), (Numbers{8, 6, 4, 2}));
}

TEST_F(EffectsTest, WrongDTypeAndNoMemory) {
  EXPECT_THROW(run(assigned(x_, constant(DType::int32, 1))), DTypeError);
  EXPECT_THROW(run(store(x_ + number(1), number(1))), InternalError);
}

}  // namespace
}  // namespace tinygrad::spec
