#include "kernel/address_parts.h"

#include <gtest/gtest.h>

#include "renderer/llvmir/liveness.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

using renderer::llvmir::Liveness;

UOp number(int64_t n) { return constant(DType::int32, n); }
UOp loop(int64_t size) { return UOp(Op::RANGE, DType::int32, {number(size)}, RangeArg{}); }
UOp repeated(const UOp& x, int64_t lanes) { return UOp(Op::EXPAND, x.dtype(), {x, number(lanes)}); }

TEST(AddressParts, ConstantsAreForTheAddress) {
  const UOp r = loop(10);
  const auto parts = address_parts(r * 4 + 3);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->base, r * 4);
  EXPECT_EQ(parts->offsets, std::vector<int64_t>{3});
  EXPECT_EQ(address_parts(number(7))->base, std::nullopt);
}

TEST(AddressParts, LanesThatAreEvenlySpacedShareABase) {
  const UOp r = loop(10);
  const auto parts = address_parts(repeated(r + 1, 2) + stack(UOps{number(0), number(9)}));
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->base, r);
  EXPECT_EQ(parts->offsets, (std::vector<int64_t>{1, 10}));
  EXPECT_FALSE(address_parts(stack(UOps{r, number(1)})));
}

TEST(AddressParts, ASumThatMayWrapStaysOne) {
  const UOp wraps = loop(int64_t{1} << 30) + int64_t{0x7fffffff};
  const auto parts = address_parts(wraps);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->base, wraps);
  EXPECT_EQ(parts->offsets, std::vector<int64_t>{0});
}

TEST(Liveness, AnIndexIsWideAndItsSumsAreNotComputedTwice) {
  const UOp r = loop(10), scaled = r * 4, at = scaled + 3;
  const UOp memory = param(DType::float32, 64, {.slot = 0}), element = index(memory, at);
  const UOp x = load(element);
  const UOp linear(Op::LINEAR, DType::void_, UOps{memory, number(4), number(3), r, scaled, at, element, x}, LinearArg{1});
  const Liveness live(linear);
  EXPECT_TRUE(live.is_wide(r) && live.is_wide(scaled));
  EXPECT_FALSE(live.is_live(r) || live.is_live(scaled));
  EXPECT_FALSE(live.is_wide(at) || live.is_live(at));
  EXPECT_TRUE(live.is_live(x));
}

TEST(Liveness, TheBoundOfALoopIsReadThoughTheLoopIsWide) {
  const UOp m(Op::VAR, DType::int32, {}, VarArg{.name = "m", .min = 1, .max = 4}), bound = m * 2;
  const UOp r(Op::RANGE, DType::int32, {bound}, RangeArg{});
  const UOp memory = param(DType::float32, 64, {.slot = 0}), element = index(memory, r);
  const UOp linear(Op::LINEAR, DType::void_, UOps{memory, m, number(2), bound, r, element}, LinearArg{1});
  const Liveness live(linear);
  EXPECT_TRUE(live.is_wide(r));
  EXPECT_TRUE(live.is_live(bound));
}

}  // namespace
}  // namespace tinygrad
