// Every opt on kernels of every kind: SPEC=3 compares each step of code generation with the evaluator, the interpreted device runs the
// program with its checks of races and bounds.
#include <gtest/gtest.h>

#include "program/run_kernel.h"

namespace tinygrad::codegen {
namespace {

struct Case {
  const char* name;
  UOp kernel;
  const char* opts;
};

void expect_right(const Case& c, const Target& target) {
  SCOPED_TRACE(std::string(c.name) + ": " + c.opts);
  const std::string difference = test::difference_on_interp(c.kernel, parse_opts(c.opts), target);
  EXPECT_EQ(difference, "");
}

const UOp matmul = test::matmul(20, 24, 19), even_matmul = test::matmul(16, 32, 16), rows = test::row_sums(5, 70),
          softmax = test::softmax(6, 37), argmax = test::argmax(5, 50), nested = test::nested_sums(6, 10), one_sum = test::row_sums(1, 100);

TEST(Opts, OfWorkItemsGiveTheSame) {
  const Case cases[] = {
      {"matmul", matmul, ""},
      {"matmul", matmul, "LOCAL(0,4)"},
      {"matmul", matmul, "LOCAL(0,4) LOCAL(1,8)"},
      {"matmul", matmul, "LOCAL(0,3) LOCAL(1,7) UPCAST(0,2) UNROLL(2,4)"},
      {"matmul", matmul, "GROUP(2,4)"},
      {"matmul", matmul, "GROUP(2,0)"},
      {"matmul", matmul, "GROUPTOP(2,4)"},
      {"matmul", matmul, "LOCAL(0,4) LOCAL(1,2) GROUP(2,4) UNROLL(2,2) UPCAST(1,2)"},
      {"matmul", matmul, "GROUP(2,2) GROUPTOP(2,2) LOCAL(0,2) LOCAL(1,2)"},
      {"matmul", matmul, "LANE(1,4) GROUP(2,3) LOCAL(0,2)"},
      {"matmul", matmul, "LANE(2,4) GROUP(2,3)"},
      {"matmul", matmul, "PADTO(0,32) PADTO(1,32) PADTO(2,32) LOCAL(0,16) LOCAL(1,16)"},
      {"matmul", matmul, "SWAP(0,1) LOCAL(0,8)"},
      {"matmul", matmul, "NOLOCALS(0,0) UPCAST(0,4)"},
      {"row sums", rows, "LOCAL(0,2) GROUP(1,8)"},
      {"row sums", rows, "GROUPTOP(1,16) UNROLL(1,2)"},
      {"row sums", rows, "PADTO(1,64) GROUP(1,32) UPCAST(0,0)"},
      {"row sums", rows, "LANE(1,4) GROUP(1,4)"},
      {"one sum", one_sum, "GROUP(0,32)"},
      {"largest of rows", test::row_sums(5, 70, {}, Op::MAX), "GROUP(1,32)"},
      {"product of rows", test::row_sums(5, 6, {}, Op::MUL), "PADTO(1,8) GROUP(1,4)"},
      {"softmax", softmax, "LOCAL(0,4) LOCAL(1,8)"},
      {"softmax", softmax, "GROUP(2,8)"},
      {"softmax", softmax, "LOCAL(0,2) GROUPTOP(2,8) UNROLL(2,2)"},
      {"softmax", softmax, "LOCAL(1,4) GROUP(2,8)"},
      {"argmax", argmax, "GROUP(1,16)"},
      {"argmax", argmax, "LOCAL(0,5) GROUPTOP(1,7) UNROLL(1,2)"},
      {"argmax", argmax, "PADTO(1,32) GROUP(1,0)"},
      {"nested sums", nested, "GROUP(2,5)"},
      {"nested sums", nested, "GROUP(1,3)"},
      {"nested sums", nested, "GROUP(1,2) GROUP(2,2) LOCAL(0,2)"},
      {"nested sums", nested, "UNROLL(1,2) GROUP(2,2)"},
      {"nested sums", nested, "UNROLL(1,2) UNROLL(2,2)"},
      {"nested sums", nested, "UNROLL(1,3) UPCAST(0,2)"},
      {"transpose", test::transpose(30, 17), "LOCAL(0,8) LOCAL(1,8)"},
      {"convolution", test::convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) GROUP(2,2) UNROLL(3,0)"},
      {"padded", test::padded(8, 1, 2), "LOCAL(0,4)"},
      {"gather", test::gather(16, 5), "LOCAL(0,5)"},
  };
  for (const Case& c : cases) expect_right(c, interp_target());
}

TEST(Opts, OfSizesKnownAtLaunchGiveTheSame) {
  const Case cases[] = {
      {"symbolic row sums", test::symbolic_row_sums(9, 40), ""},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "UPCAST(0,2) UNROLL(1,4)"},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "LOCAL(0,4) GROUP(1,8)"},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "LANE(1,4)"},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "LANE(0,4)"},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "PADTO(1,16) PADTO(0,4) GROUPTOP(1,8) LOCAL(0,0)"},
  };
  for (const Case& c : cases) expect_right(c, interp_target());
}

TEST(Opts, StagesGiveTheSame) {
  const Case cases[] = {
      {"matmul", matmul, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1)"},
      {"matmul", matmul, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {"matmul", even_matmul, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {"matmul", matmul, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {"matmul", even_matmul, "LOCAL(0,4) LOCAL(1,4) UPCAST(0,2) UPCAST(1,2) UNROLL(2,2) STAGE(2,1,group,3) STAGE(2,2,group,3)"},
      {"matmul", even_matmul, "LANE(1,4) LOCAL(0,4) UNROLL(2,4) STAGE(2,2,group,2)"},
      {"matmul", matmul, "LOCAL(0,4) STAGE(0,1,group,1)"},
      {"matmul", matmul, "LOCAL(0,4) STAGE(0,1,reg,1)"},
      {"matmul", matmul, "LOCAL(1,4) UNROLL(2,2) STAGE(2,2,thread,2)"},
      {"matmul", matmul, "GROUP(2,4) STAGE(0,1,group,1)"},
      {"softmax", softmax, "STAGE(0,1,group,1) LOCAL(1,4)"},
      {"softmax", softmax, "GROUP(2,8) STAGE(0,1,group,1)"},
      {"transpose", test::transpose(30, 17), "LOCAL(0,8) LOCAL(1,8) STAGE(1,1,group,1)"},
      {"convolution", test::convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) STAGE(2,2,group,1)"},
      {"convolution", test::convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {"convolution", test::convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) STAGE(3,1,group,2)"},
      {"nested sums", nested, "LOCAL(0,2) STAGE(1,1,group,1)"},
      {"nested sums", nested, "LOCAL(0,2) STAGE(1,1,group,2)"},
      {"gather", test::gather(16, 5), "LOCAL(0,4) STAGE(0,2,group,1)"},
      {"gather", test::gather(16, 5), "LOCAL(0,4) STAGE(0,1,group,1)"},
  };
  for (const Case& c : cases) expect_right(c, interp_target());
}

TEST(Opts, TensorCoresGiveTheSame) {
  const UOp half = test::half_matmul(32, 16, 32), odd = test::half_matmul(21, 13, 35), single = test::matmul(16, 24, 32);
  const Case cases[] = {
      {"half matmul", half, "TC(0,0)"},
      {"half matmul", half, "TC(0,-1) UPCAST(0,2) UPCAST(1,2)"},
      {"half matmul", half, "TC(0,0) LOCAL(0,2) UNROLL(2,2)"},
      {"half matmul", half, "TC(0,0) GROUP(2,2)"},
      {"half matmul", half, "TC(0,0) LOCAL(0,2) LOCAL(1,2) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {"half matmul", half, "TC(0,0) LOCAL(0,2) LOCAL(1,2) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {"half matmul", half, "TC(0,4)"},
      {"odd half matmul", odd, "TC(0,0)"},
      {"odd half matmul", odd, "TC(0,4) UPCAST(0,2)"},
      {"matmul", single, "TC(0,3) LOCAL(0,2)"},
      {"symbolic half matmul", test::half_matmul(32, 16, 32, true), "TC(0,0)"},
  };
  for (const Case& c : cases) expect_right(c, interp_target());
}

}  // namespace
}  // namespace tinygrad::codegen
