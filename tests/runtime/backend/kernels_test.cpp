// Kernels of every form, on every device: work-groups with barriers and memory of their own, vectors, sizes known at launch. Beside what
// the evaluator says of the same kernel.
#include <gtest/gtest.h>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "kernel/describe_kernel.h"
#include "program/run_kernel.h"
#include "runtime/every_device.h"

namespace tinygrad {
namespace {

using codegen::heuristic_opts;
using codegen::parse_opts;
using codegen::to_string;

struct Case {
  const char* name;
  UOp kernel;
  const char* opts;
};

class Kernels : public test::EveryDevice {
 protected:
  void expect_right(const Case& c) {
    const auto run = [&](const UOp& linear, const spec::EvalInputs& inputs) { return test::run_on_device(device(), linear, inputs); };
    EXPECT_EQ(codegen::test::difference_on(c.kernel, parse_opts(c.opts), device().target(), run), "") << c.name << " " << c.opts;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Kernels, testing::ValuesIn(test::every_device()), test::device_test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Kernels);

using codegen::test::argmax;
using codegen::test::attention;
using codegen::test::convolution;
using codegen::test::elementwise;
using codegen::test::gather;
using codegen::test::half_matmul;
using codegen::test::matmul;
using codegen::test::nested_sums;
using codegen::test::padded;
using codegen::test::row_sums;
using codegen::test::softmax;
using codegen::test::symbolic_row_sums;
using codegen::test::transpose;

TEST_P(Kernels, WithoutOpts) {
  const Case cases[] = {
      {"elementwise", elementwise(70), ""},
      {"halves", elementwise(70, {}, DType::float16), ""},
      {"bfloat16", elementwise(70, {}, DType::bfloat16), ""},
      {"bools", elementwise(70, {}, DType::bool_), ""},
      {"row sums", row_sums(5, 70), ""},
      {"largest halves", row_sums(5, 70, {}, Op::MAX, DType::float16), ""},
      {"matmul", matmul(9, 11, 13), ""},
      {"softmax", softmax(4, 30), ""},
      {"argmax", argmax(4, 70), ""},
      {"attention", attention(8, 12, 6), ""},
      {"nested sums", nested_sums(4, 6), ""},
      {"transpose", transpose(30, 17), ""},
      {"convolution", convolution(3, 9, 4, 3), ""},
      {"padded", padded(8, 1, 2), ""},
      {"gather", gather(16, 5), ""},
      {"symbolic row sums", symbolic_row_sums(9, 40), ""},
  };
  for (const Case& c : cases) expect_right(c);
}

TEST_P(Kernels, OfDoubles) {
  const Case c{"doubles", elementwise(70, {}, DType::float64), ""};
  if (takes(DType::float64)) return expect_right(c);
  const auto render = [&] {
    const UOp linear = codegen::full_rewrite(c.kernel, device().target(), {});
    device().render(linear, describe_kernel(linear, "k"));
  };
  EXPECT_THROW(render(), CompileError);
}

TEST_P(Kernels, InVectors) {
  const Case cases[] = {
      {"elementwise", elementwise(70), "LANE(0,4)"},
      {"elementwise", elementwise(64), "LANE(0,16)"},
      {"bytes", elementwise(64, {}, DType::uint8), "LANE(0,16)"},
      {"halves", elementwise(64, {}, DType::float16), "LANE(0,8)"},
      {"row sums", row_sums(5, 70), "LANE(1,8) UNROLL(1,2)"},
      {"row sums", row_sums(4, 64), "LANE(0,4)"},
      {"matmul", matmul(8, 32, 12), "LANE(1,16) UPCAST(0,2)"},
      {"softmax", softmax(4, 32), "LANE(2,8)"},
      {"argmax", argmax(4, 70), "LANE(1,8)"},
      {"transpose", transpose(30, 17), "LANE(0,2)"},
      {"padded", padded(8, 1, 2), "LANE(0,4)"},
      {"gather", gather(16, 5), "LANE(0,8)"},
      {"symbolic row sums", symbolic_row_sums(9, 40), "LANE(1,4)"},
      {"symbolic row sums", symbolic_row_sums(9, 40), "LANE(0,4)"},
  };
  for (const Case& c : cases) expect_right(c);
}

TEST_P(Kernels, InGroupsOfItems) {
  if (!has_groups()) GTEST_SKIP() << "it has no work-groups";
  const Case cases[] = {
      {"elementwise", elementwise(64), "LOCAL(0,32)"},
      {"elementwise", elementwise(96), "LOCAL(0,8) UPCAST(0,4)"},
      {"row sums", row_sums(5, 70), "LOCAL(0,5) GROUP(1,7)"},
      {"row sums", row_sums(4, 256), "GROUPTOP(1,64)"},
      {"row sums", row_sums(4, 256), "GROUP(1,8) UNROLL(1,4)"},
      {"matmul", matmul(16, 32, 12), "LOCAL(0,4) LOCAL(1,8) UPCAST(0,2) UPCAST(1,2) UNROLL(2,4)"},
      {"matmul", matmul(6, 10, 8), "LOCAL(0,3) LOCAL(1,5) GROUP(2,4)"},
      {"softmax", softmax(4, 32), "GROUP(2,8)"},
      {"softmax", softmax(4, 32), "LOCAL(0,2) GROUPTOP(2,8) UNROLL(2,2)"},
      {"argmax", argmax(5, 70), "LOCAL(0,5) GROUPTOP(1,7) UNROLL(1,2)"},
      {"nested sums", nested_sums(6, 10), "GROUP(1,2) GROUP(2,2) LOCAL(0,2)"},
      {"attention", attention(8, 12, 12), "LOCAL(0,4) GROUP(2,4)"},
      {"transpose", transpose(30, 17), "LOCAL(0,8) LOCAL(1,8)"},
      {"convolution", convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) GROUP(2,2) UNROLL(3,0)"},
      {"symbolic row sums", symbolic_row_sums(9, 40), "LOCAL(0,4) GROUP(1,8)"},
      {"symbolic row sums", symbolic_row_sums(9, 40), "PADTO(1,16) PADTO(0,4) GROUPTOP(1,8) LOCAL(0,0)"},
  };
  for (const Case& c : cases) expect_right(c);
}

TEST_P(Kernels, WithTilesInGroupMemory) {
  if (!has_groups()) GTEST_SKIP() << "it has no work-groups";
  const UOp even = matmul(16, 16, 16), odd = matmul(9, 11, 13);
  const Case cases[] = {
      {"matmul", odd, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {"matmul", even, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {"matmul", odd, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {"matmul", even, "LOCAL(0,4) LOCAL(1,4) UPCAST(0,2) UPCAST(1,2) UNROLL(2,2) STAGE(2,1,group,3) STAGE(2,2,group,3)"},
      {"matmul", even, "LANE(1,4) LOCAL(0,4) UNROLL(2,4) STAGE(2,2,group,2)"},
      {"matmul", odd, "LOCAL(0,4) STAGE(0,1,reg,1)"},
      {"half matmul", half_matmul(32, 16, 32), "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {"softmax", softmax(4, 32), "GROUP(2,8) STAGE(0,1,group,1)"},
      {"transpose", transpose(30, 17), "LOCAL(0,8) LOCAL(1,8) STAGE(1,1,group,1)"},
      {"convolution", convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {"gather", gather(16, 5), "LOCAL(0,4) STAGE(0,2,group,1)"},
  };
  for (const Case& c : cases) expect_right(c);
}

TEST_P(Kernels, OnImages) {
  if (device().target().max_image_width == 0) GTEST_SKIP() << "it has no images";
  const auto run = [&](const UOp& linear, const spec::EvalInputs& inputs) {
    const KernelInfo info = describe_kernel(linear, "k");
    EXPECT_TRUE(std::ranges::any_of(info.params, [](const KernelParam& p) { return p.image_width != 0; }));
    return test::run_on_device(device(), linear, inputs);
  };
  const Case cases[] = {
      {"elementwise", elementwise(96), "LANE(0,4) LOCAL(0,8)"},
      {"halves", elementwise(64, {}, DType::float16), "LANE(0,4)"},
      {"matmul", matmul(16, 32, 12), "LANE(1,4) LOCAL(0,4) LOCAL(1,2) UPCAST(0,2) UNROLL(2,4)"},
      {"half matmul", half_matmul(16, 16, 16), "LANE(1,4) UPCAST(0,4)"},
      {"row sums", row_sums(4, 64), "LANE(1,4)"},
      {"transpose", transpose(16, 8), "LANE(0,4)"},
      {"shifted rows", codegen::test::shifted_rows(6, 16, 1), "LANE(1,4)"},
      {"shifted halves", codegen::test::shifted_rows(6, 16, -2, DType::float16), "LANE(1,4) LOCAL(0,2)"},
  };
  for (const Case& c : cases) {
    const UOp apart = codegen::test::apart(c.kernel);
    EXPECT_EQ(codegen::test::difference_on(apart, parse_opts(c.opts), device().target(), run, 1e-5, true), "") << c.name << " " << c.opts;
  }
}

TEST_P(Kernels, AsTheHeuristicsChoose) {
  for (const Case& c :
       {Case{"elementwise", elementwise(4096), ""}, Case{"matmul", matmul(64, 96, 32), ""}, Case{"row sums", row_sums(16, 2048), ""},
        Case{"softmax", softmax(64, 64), ""}, Case{"convolution", convolution(8, 16, 32, 3), ""}, Case{"argmax", argmax(8, 512), ""}}) {
    expect_right({c.name, c.kernel, to_string(heuristic_opts(c.kernel, codegen::choices(device().target(), {}))).c_str()});
  }
  // Of these copies a compiler for Hexagon lost a part of the first row's sum.
  expect_right({"softmax", softmax(8, 64), "UPCAST(0,2) UPCAST(1,8) UNROLL(2,8)"});
}

}  // namespace
}  // namespace tinygrad
