#include "shape/listing.h"

#include <gtest/gtest.h>

#include "shape/shape.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

UOp arg(int slot, int64_t size) { return param(DType::float32, size, {.slot = slot}); }
UOp read(const UOp& memory, const UOp& i) { return load(index(memory, i)); }

TEST(Listing, InfixBindsAsItDoesOnPaper) {
  const UOp a = variable("a", 0, 9), b = variable("b", 0, 9);
  EXPECT_EQ(print_listing((a + b) * b + a), "(a + b)*b + a\n");
  EXPECT_EQ(print_listing(a - (b - 1)), "a - (b - 1)\n");
  EXPECT_EQ(print_listing(a - b - 1), "a - b - 1\n");
  EXPECT_EQ(print_listing(floor_mod(a * b, 3) < a), "a*b % 3 < a\n");
}

TEST(Listing, Kernel) {
  const UOp i = range(4, 0), k = range(8, 1, AxisKind::reduce);
  const UOp product = read(arg(1, 32), i * 8 + k) * read(arg(2, 8), k);
  const UOp sum(Op::REDUCE, DType::float32, {product, k}, ReduceArg{Op::ADD});
  const UOp store(Op::STORE, DType::void_, {index(arg(0, 4), i), sum});
  const UOp end(Op::END, DType::void_, {store, i});
  EXPECT_EQ(print_listing(UOp(Op::SINK, DType::void_, {end}, KernelArg{.name = "product"})),
            "p0 float (4,) = PARAM(slot 0)\n"
            "r0 = RANGE(4; loop)\n"
            "p1 float (32,) = PARAM(slot 1)\n"
            "r1 = RANGE(8; reduce)\n"
            "p2 float (8,) = PARAM(slot 2)\n"
            "%0 float = REDUCE(LOAD(p1[r0*8 + r1])*LOAD(p2[r1]), r1; ADD)\n"
            "SINK(END(STORE(p0[r0], %0), r0); product)\n");
}

TEST(Listing, WhatHasSeveralUsersIsNamed) {
  const UOp a = variable("a", 0, 9), sum = a * 3 + 100000;
  EXPECT_EQ(print_listing(sum * sum), "%0 index = a*3 + 100000\n%0*%0\n");
}

TEST(Listing, LongLinesAreCut) {
  UOp sum = variable("a", 0, 9);
  for (int n = 0; n < 100; ++n) sum = sum * 2 + variable(("v" + std::to_string(n)).c_str(), 0, 9);
  const std::string text = print_listing(sum);
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) EXPECT_LT(end - begin, 140u);
}

TEST(Listing, TensorsAndTheBodiesOfCalls) {
  const UOp x = arg(0, 6);
  const UOp function(Op::FUNCTION, DType::float32, {reshape(x, make_shape({2, 3}))}, FunctionArg{"f"});
  const UOp call(Op::CALL, DType::float32, {function, arg(1, 6)});
  EXPECT_EQ(print_listing(call),
            "p1 float (6,) = PARAM(slot 1)\n"
            "%0 float (2, 3) = CALL(function0, p1)\n"
            "%0\n\n"
            "function0 f:\n"
            "  p0 float (6,) = PARAM(slot 0)\n"
            "  RESHAPE(p0, 2, 3)\n");
}

TEST(Listing, LinearProgramsIndentLoops) {
  const UOp n = index_const(4), i = range(4, 0), from = arg(1, 4), to = arg(0, 4);
  const UOp place = index(from, i), value = load(place), one = constant(DType::float32, 1), sum = value + one;
  const UOp stored = index(to, i), store(Op::STORE, DType::void_, {stored, sum}), end(Op::END, DType::void_, {store, i});
  EXPECT_EQ(print_listing(UOp(Op::LINEAR, DType::void_, {n, to, from, one, i, place, value, sum, stored, store, end}, LinearArg{1})),
            "p0 float (4,) = PARAM(slot 0)\n"
            "p1 float (4,) = PARAM(slot 1)\n"
            "r0 = RANGE(4; loop)\n"
            "  %0 float = LOAD(p1[r0])\n"
            "  %1 float = %0 + 1\n"
            "  STORE(p0[r0], %1)\n");
}

}  // namespace
}  // namespace tinygrad
