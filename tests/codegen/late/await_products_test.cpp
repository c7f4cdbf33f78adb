#include "codegen/late/await_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "spec/verify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {
namespace {

/// Instructions in the order in which they are made, with products of tiles in memory of the group.
class Program {
 public:
  UOp add(const UOp& u) {
    if (std::ranges::find(list_, u) == list_.end()) list_.push_back(u);
    return u;
  }
  UOp number(int64_t n) { return add(constant(DType::int32, n)); }
  UOp zeros() { return add(UOp(Op::EXPAND, DType::float32, {add(constant(DType::float32, 0)), number(4)})); }
  /// Of the tiles with these numbers.
  UOp product(int a, int b, const UOp& sums) {
    return add(UOp(Op::WMMA, DType::float32, {tile(a), tile(b), sums}, WmmaArg{.name = "wgmma_m64n64k16_kn_f16_f32"}));
  }
  UOp lane(const UOp& v, int64_t n) { return add(index(v, number(n))); }
  UOp use(const UOp& x) { return add(UOp(Op::NEG, DType::float32, {x})); }
  UOp loop() { return add(UOp(Op::RANGE, DType::int32, {number(4)}, RangeArg{.id = loops_++})); }
  UOp end(const UOp& range) { return add(UOp(Op::END, DType::void_, {list_.back(), range})); }

  UOp linear() const { return UOp(Op::LINEAR, DType::void_, list_, LinearArg{1}); }

 private:
  UOp tile(int n) {
    const UOp memory = add(buffer(DType::float16, {.id = uint64_t(n), .size = 1024, .scope = Scope::group}));
    return add(index(memory, number(0)));
  }

  std::vector<UOp> list_;
  int32_t loops_ = 0;
};

/// The program with its waits, which the verifier agrees with; it does not without any.
UOp awaited(const Program& p) {
  EXPECT_ANY_THROW(spec::verify_linear(p.linear()));
  const UOp linear = await_products(p.linear());
  spec::verify_linear(linear);
  return linear;
}

/// What stands behind each WMMA_WAIT.
std::vector<UOp> behind_waits(const UOp& linear) {
  std::vector<UOp> out;
  for (size_t i = 0; i + 1 < linear.src_count(); ++i)
    if (linear.src(i).is(Op::WMMA_WAIT)) out.push_back(linear.src(i + 1));
  return out;
}

TEST(AwaitProducts, ProductsOfStraightLineCodeAreOneGroup) {
  Program p;
  const UOp zeros = p.zeros(), x = p.product(0, 1, zeros), y = p.product(2, 3, zeros);
  const UOp lane = p.lane(x, 1), use = p.use(lane);
  p.use(p.lane(y, 0));
  const UOp linear = awaited(p);
  EXPECT_EQ(behind_waits(linear), std::vector{use}) << "a name of a lane needs no wait, and one is for both";
  const auto wait = std::ranges::find_if(linear.src(), [](const UOp& u) { return u.is(Op::WMMA_WAIT); });
  EXPECT_EQ(UOps(wait->src()), (UOps{x, y}));
}

TEST(AwaitProducts, AProductGoesOnWithSumsThatNothingElseTakes) {
  Program p;
  const UOp x = p.product(0, 1, p.zeros()), y = p.product(2, 3, x), use = p.use(p.lane(y, 0));
  const UOp linear = awaited(p);
  EXPECT_EQ(behind_waits(linear), std::vector{use});
  const auto wait = std::ranges::find_if(linear.src(), [](const UOp& u) { return u.is(Op::WMMA_WAIT); });
  EXPECT_EQ(UOps(wait->src()), UOps{y});
}

TEST(AwaitProducts, AProductWaitsForSumsThatAreTakenTwice) {
  Program p;
  const UOp x = p.product(0, 1, p.zeros()), y = p.product(2, 3, x);
  p.use(p.lane(x, 0));
  const UOp use = p.use(p.lane(y, 0));
  EXPECT_EQ(behind_waits(awaited(p)), (std::vector{y, use}));
}

TEST(AwaitProducts, NothingIsUnderWayWhereOtherCodeMayRun) {
  Program p;
  const UOp zeros = p.zeros(), x = p.product(0, 1, zeros), range = p.loop(), y = p.product(2, 3, zeros), end = p.end(range);
  p.use(p.lane(x, 0));
  const UOp z = p.product(4, 5, zeros), barrier = p.add(UOp(Op::BARRIER, DType::void_, {z}));
  EXPECT_EQ(behind_waits(awaited(p)), (std::vector{range, end, barrier}));
}

TEST(AwaitProducts, OtherProgramsStayAsTheyAre) {
  Program p;
  p.use(p.add(constant(DType::float32, 1)));
  EXPECT_EQ(await_products(p.linear()), p.linear());
}

}  // namespace
}  // namespace tinygrad::codegen
