// Arguments that are images: which ones become them, how they are accessed, and what the interpreted device computes with them.
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/decomp/emulate_dtypes.h"
#include "kernel/describe_kernel.h"
#include "program/run_kernel.h"
#include "renderer/cstyle/cstyle.h"
#include "target/target.h"

namespace tinygrad::codegen {
namespace {

using test::apart;

UOp lowered(const UOp& kernel, const char* opts, const Target& target = interp_target()) {
  return full_rewrite(test::with_opts(kernel, parse_opts(opts)), target, {.noopt = true, .images = true, .spec = 3});
}

/// The widths of the arguments by slot, 0 for what is no image.
std::vector<int32_t> widths(const UOp& kernel, const char* opts, const Target& target = interp_target()) {
  std::vector<int32_t> out;
  for (const KernelParam& p : describe_kernel(lowered(kernel, opts, target), "k").params) out.push_back(p.image_width);
  return out;
}
using Widths = std::vector<int32_t>;

Target opencl_with_images() { return opencl_target({.max_image_width = 16384, .max_image_height = 16384}); }

std::string opencl(const UOp& kernel, const char* opts) {
  const UOp linear = lowered(kernel, opts, opencl_with_images());
  return renderer::render_opencl(opencl_with_images(), linear, describe_kernel(linear, "k"));
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Images, AreArgumentsOfWholeTexels) {
  EXPECT_EQ(widths(apart(test::elementwise(64)), "LANE(0,4)"), (Widths{16, 16, 16}));
  EXPECT_EQ(widths(apart(test::elementwise(64, {}, DType::float16)), "LANE(0,4)"), (Widths{16, 16, 16}));
  EXPECT_EQ(widths(apart(test::matmul(8, 16, 12)), "LANE(1,4)"), (Widths{4, 0, 4})) << "a row is a row; a is read one by one";
  EXPECT_EQ(widths(apart(test::elementwise(64)), ""), (Widths{0, 0, 0})) << "without vectors";
  EXPECT_EQ(widths(apart(test::elementwise(64)), "LANE(0,8)"), (Widths{0, 0, 0})) << "of another width";
  EXPECT_EQ(widths(apart(test::elementwise(64, {}, DType::int32)), "LANE(0,4)"), (Widths{0, 0, 0}));
  EXPECT_EQ(widths(test::elementwise(64), "LANE(0,4)"), (Widths{0, 0, 0})) << "the arguments may overlap";
  EXPECT_EQ(widths(apart(test::transpose(16, 8)), "LANE(0,4)"), (Widths{4, 0})) << "what is read is not along the vectors";
  EXPECT_EQ(widths(apart(test::padded(13, 1, 2)), "LANE(0,4)"), (Widths{4, 0})) << "13 elements are no texels";
  Target small = interp_target();
  small.max_image_width = small.max_image_height = 3;
  EXPECT_EQ(widths(apart(test::elementwise(64)), "LANE(0,4)", small), (Widths{0, 0, 0})) << "too large";
  EXPECT_EQ(widths(apart(test::elementwise(36)), "LANE(0,4)", small), (Widths{3, 3, 3}));
  Target aligned = interp_target();
  aligned.image_pitch = 8;
  EXPECT_EQ(widths(apart(test::elementwise(64)), "LANE(0,4)", aligned), (Widths{16, 16, 16}));
  EXPECT_EQ(widths(apart(test::elementwise(48)), "LANE(0,4)", aligned), (Widths{0, 0, 0}));
}

TEST(Images, OnlyWhereTheOptionAsksForThem) {
  const UOp linear = full_rewrite(test::with_opts(apart(test::elementwise(64)), parse_opts("LANE(0,4)")), interp_target(), {.noopt = true});
  for (const KernelParam& p : describe_kernel(linear, "k").params) EXPECT_EQ(p.image_width, 0);
}

TEST(Images, WhatOpenClReads) {
  const std::string text = opencl(apart(test::shifted_rows(6, 16, 1)), "LANE(1,4)");
  EXPECT_TRUE(has(text, "read_only image2d_t in1") && has(text, "write_only image2d_t out0")) << text;
  EXPECT_TRUE(has(text, "read_imagef(in1, whole_texels, (int2)(group0, group1 - 1))") || has(text, "group1 + -1")) << text;
  EXPECT_FALSE(has(text, "?") || has(text, "if (")) << "reading outside gives 0\n" << text;
  const std::string wide = opencl(apart(test::matmul(8, 16, 12)), "LANE(1,4)");
  EXPECT_TRUE(has(wide, "write_imagef(out0")) << wide;
  EXPECT_TRUE(has(wide, "__global const float* restrict in1_buffer")) << wide;
}

TEST(Images, ConditionsThatDoNotLeaveTheImageStay) {
  // Every second row is there, and must not be read.
  const UOp i = test::loop(6, 0), j = test::loop(16, 1);
  const UOp x = load(index_valid(test::arg(1, 96), i * 16 + j, eq(floor_mod(i, 2), index_const(0))));
  const std::string text = opencl(apart(test::kernel({test::ended(test::write(test::arg(0, 96), i * 16 + j, x), {i, j})})), "LANE(1,4)");
  EXPECT_TRUE(has(text, "read_imagef(in1") && has(text, "?")) << text;
}

TEST(Images, GiveTheSame) {
  struct Case {
    const char* name;
    UOp kernel;
    const char* opts;
  };
  const Case cases[] = {
      {"elementwise", test::elementwise(64), "LANE(0,4)"},
      {"elementwise", test::elementwise(96), "LANE(0,4) LOCAL(0,8)"},
      {"halves", test::elementwise(64, {}, DType::float16), "LANE(0,4)"},
      {"matmul", test::matmul(8, 16, 12), "LANE(1,4)"},
      {"matmul", test::matmul(16, 32, 12), "LANE(1,4) LOCAL(0,4) LOCAL(1,2) UPCAST(0,2) UNROLL(2,4)"},
      {"half matmul", test::half_matmul(16, 16, 16), "LANE(1,4) UPCAST(0,4)"},
      {"row sums", test::row_sums(5, 64), "LANE(1,4)"},
      {"softmax", test::softmax(4, 32), "LANE(2,4)"},
      {"transpose", test::transpose(16, 8), "LANE(0,4)"},
      {"shifted down", test::shifted_rows(6, 16, 1), "LANE(1,4)"},
      {"shifted up", test::shifted_rows(6, 16, -2), "LANE(1,4) LOCAL(0,2)"},
      {"shifted halves", test::shifted_rows(6, 16, 2, DType::float16), "LANE(1,4)"},
      {"padded", test::padded(16, 4, 4), "LANE(0,4)"},
      {"convolution", test::convolution(3, 16, 4, 3), "LANE(1,4)"},
  };
  for (const Case& c : cases) {
    for (const char* emulated : {"", "float16"}) {
      SCOPED_TRACE(std::string(c.name) + ": " + c.opts + " " + emulated);
      const Target target = without_dtypes(interp_target(), emulated);
      EXPECT_EQ(test::difference_on(apart(c.kernel), parse_opts(c.opts), target, test::run_on_interp, 1e-5, true), "");
    }
  }
}

TEST(Images, HeuristicsMakeVectorsOfTheirWidth) {
  const CodegenOptions images{.images = true, .spec = 3};
  const auto count = [&](const UOp& kernel) {
    const KernelInfo info = describe_kernel(full_rewrite(apart(kernel), interp_target(), images), "k");
    return std::ranges::count_if(info.params, [](const KernelParam& p) { return p.image_width != 0; });
  };
  EXPECT_EQ(count(test::elementwise(4096)), 3);
  EXPECT_GE(count(test::matmul(64, 64, 65)), 2);
  EXPECT_EQ(count(test::shifted_rows(64, 64, 1)), 2);
}

}  // namespace
}  // namespace tinygrad::codegen
