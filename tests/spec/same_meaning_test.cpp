#include "spec/same_meaning.h"

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "uop/build.h"

namespace tinygrad::spec {
namespace {

UOp arg(int slot, int64_t size, DType dtype = DType::float32) { return param(dtype, size, {.slot = slot}); }

/// for i: out[i] = value
UOp kernel(const UOp& i, const UOp& value) {
  const UOp out = arg(0, 8, value.dtype());
  return sink(std::vector<UOp>{end(store(index(out, i), value), std::vector<UOp>{i})}, KernelArg{.name = "k", .opts = {}});
}

std::string after_step(const UOp& before, const UOp& after) {
  MeaningCheck check(before);
  try {
    check.after("step", after);
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}

class SameMeaning : public ::testing::Test {
 protected:
  const UOp i = range(8, 0), x = load(index(arg(1, 8), i));
};

TEST_F(SameMeaning, AnotherFormIsTheSame) {
  const UOp three = constant(DType::float32, 3);
  EXPECT_EQ(after_step(kernel(i, x * three), kernel(i, x + x + x)), "");
  EXPECT_EQ(after_step(kernel(i, x), kernel(i, x)), "");
}

TEST_F(SameMeaning, TheStepIsNamed) {
  const std::string message = after_step(kernel(i, x), kernel(i, -x));
  EXPECT_EQ(message.substr(0, message.find(", element")), "SPEC=3: 'step' changed the meaning of k: argument 0");
}

TEST_F(SameMeaning, IntegersMustBeEqual) {
  const UOp n = load(index(arg(1, 8, DType::int32), i));
  EXPECT_EQ(after_step(kernel(i, n * 3), kernel(i, n + n + n)), "");
  EXPECT_NE(after_step(kernel(i, n * 1000), kernel(i, where(i < 7, n * 1000, n * 1000 + 1))), "");
}

TEST_F(SameMeaning, AnAccessOutOfBoundsIsAChange) { EXPECT_NE(after_step(kernel(i, x), kernel(i, load(index(arg(1, 8), i + 1)))), ""); }

TEST_F(SameMeaning, AnEmulatedDtypeIsTakenAsItsBits) {
  const auto halves = kernel(i, load(index(arg(1, 8, DType::bfloat16), i)));
  const UOp bits = load(index(arg(1, 8, DType::uint16), i));
  EXPECT_EQ(after_step(halves, kernel(i, bits)), "");
  EXPECT_NE(after_step(halves, kernel(i, bits + 128)), "");
}

TEST_F(SameMeaning, AnEmulatedLongIsTakenAsTwoWords) {
  const auto copied = [&](const UOp& high) {
    const UOp words = arg(1, 16, DType::uint32), out = arg(0, 16, DType::uint32);
    const UOp both = group(UOps{store(index(out, i * 2), load(index(words, i * 2))), store(index(out, i * 2 + 1), high)});
    return sink(std::vector<UOp>{end(both, std::vector<UOp>{i})}, KernelArg{.name = "k", .opts = {}});
  };
  const UOp longs = kernel(i, load(index(arg(1, 8, DType::int64), i))), high = load(index(arg(1, 16, DType::uint32), i * 2 + 1));
  EXPECT_EQ(after_step(longs, copied(high)), "");
  EXPECT_NE(after_step(longs, copied(high + 1)), "");
}

TEST_F(SameMeaning, SumsOfANarrowFloatMayChangeByItsRounding) {
  const UOp k = range(40, 1, AxisKind::reduce), half = load(index(arg(1, 40, DType::float16), k));
  const auto sum = [&](const UOp& term) { return UOp(Op::REDUCE, term.dtype(), {term, k}, ReduceArg{Op::ADD, {}}); };
  const UOp narrow = cast(sum(half), DType::float32), wide = sum(cast(half, DType::float32));
  EXPECT_EQ(after_step(kernel(i, narrow), kernel(i, wide)), "");
  EXPECT_NE(after_step(kernel(i, narrow), kernel(i, wide * constant(DType::float32, 2))), "");
}

TEST_F(SameMeaning, LargeKernelsArePassedOver) {
  const UOp r = range(int64_t(1) << 40, 1, AxisKind::reduce);
  const UOp sum(Op::REDUCE, DType::float32, {x, r}, ReduceArg{Op::ADD, {}});
  EXPECT_EQ(after_step(kernel(i, sum), kernel(i, x)), "");
}

}  // namespace
}  // namespace tinygrad::spec
