#include "kernel/group_layout.h"

#include <gtest/gtest.h>

#include <vector>

#include "uop/build.h"

namespace tinygrad {
namespace {

UOp array(uint64_t id, int64_t size) { return buffer(DType::uint8, {.id = id, .size = size, .scope = Scope::group}); }
UOp program(const std::vector<UOp>& list) { return UOp(Op::LINEAR, DType::void_, list, LinearArg{1}); }

TEST(GroupLayout, ArraysLieOneBehindTheOther) {
  const UOp a = array(0, 20), own = buffer(DType::uint8, {.id = 1, .size = 64, .scope = Scope::reg}), b = array(2, 16);
  const GroupLayout layout(program({a, own, b}));
  EXPECT_EQ(layout.place(a), 0);
  EXPECT_EQ(layout.place(b), 32) << "each takes a multiple of 16 bytes";
  EXPECT_EQ(layout.bytes(), 48);
  EXPECT_EQ(layout.alignment(), 16);
}

TEST(GroupLayout, WhatMayBeSwizzledBeginsWhereAPatternDoes) {
  const UOp narrow = array(0, 16), whole = array(1, 2048), zero = constant(DType::int32, 0), place = index(whole, zero);
  const UOp sums = constant(DType::float32, 0), product(Op::WMMA, DType::float32, {place, place, sums}, WmmaArg{});
  const GroupLayout layout(program({zero, sums, narrow, whole, place, product}));
  EXPECT_EQ(layout.place(whole), 0);
  EXPECT_EQ(layout.place(narrow), 2048);
  EXPECT_EQ(layout.alignment(whole), 1024);
  EXPECT_EQ(layout.alignment(narrow), 16);
  EXPECT_EQ(layout.alignment(), 1024);
  EXPECT_EQ(GroupLayout(program({narrow, whole})).alignment(whole), 16) << "no core reads it";
}

}  // namespace
}  // namespace tinygrad
