// What `tg bench` takes, what it counts, and that its float64 results are those of the graph.
#include <gtest/gtest.h>

#include <tinygrad/errors.h>
#include <tinygrad/jit.h>

#include "bench/cases.h"
#include "bench/measure.h"
#include "bench/roofline.h"
#include "bench/works.h"

namespace tinygrad::test {
namespace {

using apps::BenchCase;
using apps::CaseOptions;
using apps::make_case;

void expect_refused(const CaseOptions& options, const std::vector<std::string>& parts) {
  try {
    make_case(options);
    ADD_FAILURE() << options.kernel << " was taken";
  } catch (const Error& e) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << part << " is not in: " << e.what();
  }
}

TEST(BenchCase, SizesHaveDefaults) {
  for (const std::string& kernel : apps::kernel_names()) {
    const BenchCase c = make_case({.kernel = kernel});
    EXPECT_GT(c.bytes, 0) << kernel;
    EXPECT_GE(c.size.size(), 1u) << kernel;
    EXPECT_NE(apps::kernel_help().find(kernel), std::string::npos);
  }
  EXPECT_EQ(make_case({.kernel = "matmul", .size = {7}}).size, (Sizes{7, 7, 7}));
  EXPECT_EQ(make_case({.kernel = "softmax", .size = {7}}).size, (Sizes{7, 7}));
  EXPECT_EQ(make_case({.kernel = "transpose", .size = {2, 3, 4}}).order, (std::vector<int>{2, 1, 0}));
  EXPECT_EQ(make_case({.kernel = "attention", .size = {4, 3, 5}}).title(), "attention 4x3x5 float32");
  EXPECT_EQ(make_case({.kernel = "attention", .size = {4, 1, 5}, .keys = 7, .kv_heads = 2}).title(),
            "attention 4x1x5 keys 7 kv heads 2 float32");
  EXPECT_EQ(make_case({.kernel = "matmul", .size = {2, 3, 4}, .dtype = "bfloat16", .batch = 5}).title(), "matmul 2x3x4 batch 5 bfloat16");
}

TEST(BenchCase, CountsOperationsAndBytes) {
  struct Expected {
    CaseOptions options;
    double flops, bytes;
  };
  const Expected all[] = {
      {{.kernel = "matmul", .size = {2, 3, 5}}, 2 * 2 * 3 * 5, 4 * (10 + 15 + 6)},
      {{.kernel = "matmul", .size = {2, 3, 5}, .dtype = "bfloat16", .batch = 7}, 7 * 60, 7 * 2 * 31},
      {{.kernel = "matmul", .size = {2, 3, 5}, .dtype = "int8"}, 60, 10 + 15 + 4 * 6},
      {{.kernel = "matvec", .size = {3, 5}}, 30, 4 * (15 + 5 + 3)},
      {{.kernel = "conv", .size = {4, 6, 5, 3}, .batch = 2}, 2 * 2 * 25 * 6 * 4 * 9, 4 * (2 * 4 * 25 + 6 * 4 * 9 + 2 * 6 * 25)},
      {{.kernel = "conv", .size = {4, 4, 5, 3}, .batch = 1, .stride = 2, .groups = 4}, 2 * 9 * 4 * 9, 4 * (4 * 25 + 4 * 9 + 4 * 9)},
      {{.kernel = "attention", .size = {2, 3, 5}}, 2 * (4 * 9 * 5), 4 * 4 * 30},
      {{.kernel = "attention", .size = {2, 3, 5}, .causal = true}, 2 * (4 * 6 * 5), 4 * 4 * 30},
      {{.kernel = "attention", .size = {2, 3, 5}, .backward = true}, 2 * (12 * 9 * 5), 4 * 8 * 30},
      {{.kernel = "conv", .size = {4, 6, 5, 3}, .batch = 2, .backward = true}, 3 * 21600, 2 * 4 * (2 * 4 * 25 + 6 * 4 * 9 + 2 * 6 * 25)},
      {{.kernel = "attention", .size = {4, 3, 5}, .keys = 7, .kv_heads = 2}, 4 * (4 * 21 * 5), 4 * 2 * (4 * 3 * 5 + 2 * 7 * 5)},
      {{.kernel = "attention", .size = {1, 3, 5}, .keys = 2, .causal = true}, 4 * 5 * 5, 4 * 2 * (3 * 5 + 2 * 5)},
      {{.kernel = "softmax", .size = {3, 5}}, 5 * 15, 2 * 4 * 15},
      {{.kernel = "layernorm", .size = {3, 5}}, 7 * 15, 2 * 4 * 15},
      {{.kernel = "elementwise", .size = {8}}, 3 * 8, 4 * 4 * 8},
      {{.kernel = "elementwise", .size = {8}, .op = "exp"}, 8, 2 * 4 * 8},
      {{.kernel = "sum", .size = {8}}, 8, 4 * 9},
      {{.kernel = "transpose", .size = {2, 3}}, 0, 2 * 4 * 6},
  };
  for (const Expected& e : all) {
    const BenchCase c = make_case(e.options);
    EXPECT_EQ(c.flops, e.flops) << c.title();
    EXPECT_EQ(c.bytes, e.bytes) << c.title();
  }
}

TEST(BenchCase, SaysWhatIsWrong) {
  expect_refused({.kernel = "matmull"}, {"matmull", "matmul", "transpose"});
  expect_refused({.kernel = "matmul", .size = {1, 2}}, {"bench matmul", "2 numbers", "expects 3", "M,N,K"});
  expect_refused({.kernel = "matmul", .size = {1, 0, 2}}, {"--size", "0", "at least 1"});
  expect_refused({.kernel = "conv", .size = {64}}, {"1 numbers", "expects 4", "IN,OUT"});
  expect_refused({.kernel = "matmul", .dtype = "float64"}, {"float64", "bfloat16", "int8"});
  expect_refused({.kernel = "matmul", .dtype = "nope"}, {"nope"});
  expect_refused({.kernel = "sum", .dtype = "int8"}, {"sum", "int8"});
  expect_refused({.kernel = "matmul", .causal = true}, {"--causal", "attention"});
  expect_refused({.kernel = "sum", .batch = 2}, {"--batch", "matmul, conv, attention"});
  expect_refused({.kernel = "matmul", .batch = 0}, {"--batch", "at least 1"});
  expect_refused({.kernel = "softmax", .axis = 2}, {"--axis", "2", "0 or 1"});
  expect_refused({.kernel = "elementwise", .op = "foo"}, {"--op", "foo", "relu_fma"});
  expect_refused({.kernel = "transpose", .order = {0, 0}}, {"--order", "0,0", "0 to 1"});
  expect_refused({.kernel = "sum", .keys = 2}, {"--keys", "attention"});
  expect_refused({.kernel = "attention", .size = {6, 3, 5}, .kv_heads = 4}, {"--kv-heads", "4", "divisor of 6"});
  expect_refused({.kernel = "matmul", .backward = true}, {"--backward", "conv, attention"});
  expect_refused({.kernel = "conv", .size = {4, 6, 5, 3}, .groups = 4}, {"4 groups", "6"});
  expect_refused({.kernel = "conv", .size = {4, 6, 5, 2}}, {"window is 2", "odd"});
}

// A wrong graph or a wrong definition would show: all results are compared at these sizes.
TEST(BenchWork, ResultsAreThoseOfTheDefinition) {
  std::vector<CaseOptions> all{
      {.kernel = "matmul", .size = {5, 7, 9}},
      {.kernel = "matmul", .size = {5, 7, 9}, .batch = 3},
      {.kernel = "matmul", .size = {5, 7, 9}, .dtype = "int8"},
      {.kernel = "matmul", .size = {5, 7, 9}, .dtype = "bfloat16"},
      {.kernel = "matmul", .size = {5, 7, 9}, .dtype = "float16"},
      {.kernel = "matvec", .size = {5, 9}},
      {.kernel = "conv", .size = {4, 6, 5, 3}, .batch = 2},
      {.kernel = "conv", .size = {4, 6, 8, 5}, .batch = 2, .stride = 2, .groups = 2},
      {.kernel = "attention", .size = {2, 6, 4}, .batch = 2},
      {.kernel = "attention", .size = {2, 6, 4}, .causal = true, .backward = true},
      {.kernel = "conv", .size = {4, 6, 5, 3}, .batch = 2, .backward = true},
      {.kernel = "conv", .size = {4, 6, 8, 5}, .batch = 2, .stride = 2, .groups = 2, .backward = true},
      {.kernel = "conv", .size = {3, 3, 7, 3}, .batch = 1, .stride = 3, .groups = 3, .backward = true},
      {.kernel = "attention", .size = {4, 6, 4}, .batch = 2, .kv_heads = 2, .backward = true},
      {.kernel = "attention", .size = {4, 1, 8}, .keys = 9, .kv_heads = 1},
      {.kernel = "attention", .size = {2, 5, 4}, .keys = 3, .causal = true, .backward = true},
      {.kernel = "softmax", .size = {5, 9}},
      {.kernel = "softmax", .size = {5, 9}, .axis = 0},
      {.kernel = "layernorm", .size = {5, 9}},
      {.kernel = "sum", .size = {1000}},
      {.kernel = "transpose", .size = {5, 9}},
      {.kernel = "transpose", .size = {2, 3, 4, 5}, .order = {0, 2, 1, 3}},
  };
  for (const std::string& op : apps::elementwise_names()) all.push_back({.kernel = "elementwise", .size = {100}, .op = op});
  for (const CaseOptions& options : all) {
    const BenchCase c = make_case(options);
    const apps::BenchWork work = apps::make_work(c);
    apps::Tensors results = work.step(work.inputs);
    Tensor::realize(results);
    const apps::Accuracy accuracy = apps::check_accuracy(c, work, results);
    EXPECT_LE(accuracy.error, accuracy.tolerance) << c.title();
    EXPECT_GT(accuracy.values, 0u) << c.title();
  }
}

TEST(BenchWork, WrongResultsAreSeen) {
  const BenchCase c = make_case({.kernel = "matmul", .size = {5, 7, 9}});
  const apps::BenchWork work = apps::make_work(c);
  const apps::Tensors results{(work.step(work.inputs)[0] * 1.01).realize()};
  const apps::Accuracy accuracy = apps::check_accuracy(c, work, results);
  EXPECT_GT(accuracy.error, accuracy.tolerance);
}

TEST(BenchMeasure, RooflineIsTheHigherBound) {
  const apps::Roofline limits{.gflops = 100, .gb_s = 10, .threads = 1};
  EXPECT_DOUBLE_EQ(limits.seconds(100e9, 1e9), 1);
  EXPECT_DOUBLE_EQ(limits.seconds(1e9, 20e9), 2);
  const apps::Roofline measured = apps::measure_roofline(DType::float32, 1e5, 1);
  EXPECT_GT(measured.gflops, 0.1);
  EXPECT_GT(measured.gb_s, 0.1);
}

}  // namespace
}  // namespace tinygrad::test
