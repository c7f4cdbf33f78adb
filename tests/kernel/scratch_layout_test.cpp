#include "kernel/scratch_layout.h"

#include <gtest/gtest.h>

#include "uop/build.h"

namespace tinygrad {
namespace {

UOp memory(uint64_t id, DType dtype, int64_t size, Scope scope = Scope::reg) {
  return buffer(dtype, {.id = id, .size = size, .scope = scope});
}
ScratchLayout layout_of(const UOps& buffers) { return ScratchLayout(UOp(Op::LINEAR, DType::void_, buffers, LinearArg{1})); }

TEST(ScratchLayout, LeavesWhatIsSmallOnTheStack) {
  const UOp a = memory(1, DType::float32, 2048), b = memory(2, DType::float64, 1024);
  const ScratchLayout layout = layout_of({a, b});
  EXPECT_EQ(layout.bytes(), 0);
  EXPECT_TRUE(layout.buffers().empty());
  EXPECT_EQ(layout.offset(a), std::nullopt);
}

TEST(ScratchLayout, TakesTheLargestAndAlignsPlaces) {
  const UOp panel = memory(1, DType::uint8, 20'001), acc = memory(2, DType::float32, 64), other = memory(3, DType::float32, 5000);
  const ScratchLayout layout = layout_of({panel, acc, other});
  EXPECT_EQ(layout.offset(acc), std::nullopt);
  EXPECT_EQ(layout.offset(other), 0);
  EXPECT_EQ(layout.offset(panel), 20'032);
  EXPECT_EQ(layout.bytes(), 20'032 + 20'032);
}

TEST(ScratchLayout, BoundsTheStackAlsoWhereManyAreSmall) {
  UOps many;
  for (uint64_t i = 0; i < 100; ++i) many.push_back(memory(i + 1, DType::float32, 256));
  const ScratchLayout layout = layout_of(many);
  EXPECT_EQ(layout.bytes(), 100 * 1024 - ScratchLayout::stack_bytes);
  EXPECT_EQ(layout.offset(many[0]), std::nullopt);
  EXPECT_EQ(layout.offset(many[16]), 0);
}

TEST(ScratchLayout, LeavesMemoryOfGroupsAlone) { EXPECT_EQ(layout_of({memory(1, DType::float32, 1 << 20, Scope::group)}).bytes(), 0); }

}  // namespace
}  // namespace tinygrad
