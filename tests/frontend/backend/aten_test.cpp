// ATen's operators by their names: how arguments find their parameters, dtypes as PyTorch gives them, and a few of each family by hand.
// What all of them compute is compared with PyTorch by `make torch-programs` and `make oracle-full`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <tinygrad/tinygrad.h>

#include "frontend/aten/aten.h"

namespace tinygrad::aten {
namespace {

using Floats = std::vector<float>;

Value run(std::string_view op, const Arguments& arguments) { return call(op, arguments).at(0); }
Tensor tensor(std::string_view op, const Arguments& arguments) { return run(op, arguments).tensor(); }
Tensor zeros(DType dtype, const Sizes& shape = {2}) { return Tensor::zeros(shape, {.dtype = dtype}); }

template <class E>
void expect_error(std::string_view op, const Arguments& arguments, std::string_view part) {
  try {
    call(op, arguments);
    ADD_FAILURE() << op << ": no error";
  } catch (const E& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with(op)) << what;
    EXPECT_NE(what.find(part), std::string::npos) << what;
  }
}

TEST(Aten, EverySchemaIsRead) {
  const std::vector<std::string_view> names = operators();
  EXPECT_GT(names.size(), 700U);
  EXPECT_TRUE(std::ranges::is_sorted(names));
  for (std::string_view name : names) {
    EXPECT_TRUE(supports(name));
    EXPECT_FALSE(parameters(name).empty()) << name;
  }
}

TEST(Aten, ArgumentsAreThoseOfTheSchema) {
  const Tensor x = zeros(DType::float32);
  expect_error<ValueError>("aten.no_such.default", {}, "not supported");
  expect_error<ValueError>("aten.add.Tensor", {{"self", x}}, "other");
  expect_error<ValueError>("aten.add.Tensor", {{"self", x}, {"other", x}, {"beta", 1}}, "beta");
  expect_error<DTypeError>("aten.add.Tensor", {{"self", x}, {"other", std::string("text")}}, "other");
  expect_error<ShapeError>("aten.add.Tensor", {{"self", x}, {"other", zeros(DType::float32, {3})}}, "");
  expect_error<IndexError>("aten.sum.dim_IntList", {{"self", x}, {"dim", List{int64_t{1}}}}, "1");
}

TEST(Aten, DtypesArePyTorchs) {
  const auto sum = [](const Value& a, const Value& b) { return tensor("aten.add.Tensor", {{"self", a}, {"other", b}}).dtype(); };
  EXPECT_EQ(sum(zeros(DType::int32), 1.5), DType::float32);
  EXPECT_EQ(sum(zeros(DType::int8), zeros(DType::int64, {})), DType::int8) << "without axes only a higher kind counts";
  EXPECT_EQ(sum(zeros(DType::float16), zeros(DType::float64, {})), DType::float16);
  EXPECT_EQ(sum(zeros(DType::int32), zeros(DType::float64, {})), DType::float64);
  EXPECT_EQ(sum(zeros(DType::bool_), 1), DType::int64);
  EXPECT_EQ(sum(zeros(DType::uint8), zeros(DType::int8)), DType::int16);
  EXPECT_EQ(sum(zeros(DType::float16), zeros(DType::bfloat16)), DType::float32);
  EXPECT_EQ(tensor("aten.sum.default", {{"self", zeros(DType::int8)}}).dtype(), DType::int64);
  EXPECT_EQ(tensor("aten.div.Tensor", {{"self", zeros(DType::int8)}, {"other", 2}}).dtype(), DType::float32);
}

TEST(Aten, Numbers) {
  EXPECT_EQ(run("math.trunc", {{"x", -2.5}}).integer(), -2);
  EXPECT_EQ(run("math.floor", {{"x", -2.5}}).integer(), -3);
  EXPECT_EQ(run("torch.sym_ite", {{"b", false}, {"t", 1}, {"f", 2}}).integer(), 2);
  EXPECT_EQ(run("_operator.floordiv", {{"a", -7}, {"b", 2}}).integer(), -4);
  EXPECT_EQ(run("_operator.mod", {{"a", -7}, {"b", 2}}).integer(), 1);
  EXPECT_THROW(run("math.trunc", {{"x", 1e300}}), ValueError);
}

TEST(Aten, TensorsWithoutElements) {
  EXPECT_EQ(tensor("aten.sum.default", {{"self", zeros(DType::float32, {0})}}).item<float>(), 0.0f);
  EXPECT_TRUE(std::isnan(tensor("aten.mean.default", {{"self", zeros(DType::float32, {0})}}).item<float>()));
  EXPECT_EQ(tensor("aten.pixel_shuffle.default", {{"self", zeros(DType::float32, {0, 4, 3, 3})}, {"upscale_factor", 2}}).shape(),
            (Sizes{0, 1, 6, 6}));
  EXPECT_EQ(tensor("aten.nansum.default", {{"self", zeros(DType::float32, {0, 3})}, {"dim", List{int64_t{0}}}}).shape(), Sizes{3});
}

TEST(Aten, WhatIsTimesZeroIsNotLookedAt) {
  const Tensor nan = Tensor::full({2, 2}, NAN), a = Tensor(Floats{1, 2}), b = Tensor(Floats{3, 4});
  const Floats outer{3, 4, 6, 8};
  EXPECT_EQ(tensor("aten.addr.default", {{"self", nan}, {"vec1", a}, {"vec2", b}, {"beta", 0}}).tolist<float>(), outer);
  EXPECT_EQ(tensor("aten.addmm.default", {{"self", nan}, {"mat1", a.unsqueeze(1)}, {"mat2", b.unsqueeze(0)}, {"beta", 0}}).tolist<float>(),
            outer);
}

TEST(Aten, JoinedAndSplit) {
  const Tensor x = Tensor(Floats{1, 2}), y = Tensor(Floats{3});
  EXPECT_EQ(tensor("aten.block_diag.default", {{"tensors", List{x, y}}}).tolist<float>(), (Floats{1, 2, 0, 0, 0, 3}));
  EXPECT_EQ(tensor("aten.kron.default", {{"self", x}, {"other", x}}).tolist<float>(), (Floats{1, 2, 2, 4}));
  EXPECT_EQ(tensor("aten.atleast_3d.default", {{"self", x}}).shape(), (Sizes{1, 2, 1}));
  const Value parts = run("aten.hsplit.array", {{"self", Tensor(Floats{1, 2, 3})}, {"indices", List{int64_t{1}, int64_t{-1}, int64_t{9}}}});
  std::vector<Floats> got;
  for (const Value& part : parts.list()) got.push_back(part.tensor().tolist<float>());
  EXPECT_EQ(got, (std::vector<Floats>{{1}, {2}, {3}, {}}));
  expect_error<ValueError>("aten.vsplit.int", {{"self", zeros(DType::float32, {3, 2})}, {"sections", 2}}, "3 elements in 2 sections");
}

TEST(Aten, CornersAsInPyTorch) {
  constexpr float inf = INFINITY;
  const auto floats = [](std::string_view op, const Arguments& arguments) { return tensor(op, arguments).tolist<float>(); };
  const auto integers = [](std::string_view op, const Arguments& arguments) { return tensor(op, arguments).tolist<int64_t>(); };
  using Ints = std::vector<int64_t>;
  // What is not finite stays in its window.
  EXPECT_EQ(
      floats("aten.adaptive_avg_pool1d.default", {{"self", Tensor(Floats{inf, 1, 1, 1, 1}, {1, 1, 5})}, {"output_size", List{int64_t{3}}}}),
      (Floats{inf, 1, 1}));
  EXPECT_EQ(integers("aten.arange.start_step", {{"start", 0.5}, {"end", 4}, {"step", 1.5}, {"dtype", DType::int64}}), (Ints{0, 1, 2, 3}));
  EXPECT_EQ(integers("aten.arange.start_step", {{"start", 0.5}, {"end", 4}, {"step", 1.5}, {"dtype", DType::int32}}), (Ints{0, 1, 2}));
  EXPECT_EQ(integers("aten.linspace.default", {{"start", 0.5}, {"end", 10.5}, {"steps", 4}, {"dtype", DType::int64}}), (Ints{0, 3, 6, 10}));
  EXPECT_EQ(integers("aten.pad.default",
                     {{"self", Tensor(Ints{(int64_t{1} << 53) + 1}, {1})}, {"pad", List{int64_t{1}, int64_t{0}}}, {"value", 2.0}}),
            (Ints{2, (int64_t{1} << 53) + 1}));
  EXPECT_EQ(tensor("aten.diagonal.default", {{"self", zeros(DType::float32, {3, 3})}, {"offset", int64_t{1} << 32}}).numel(), 0);
  const Tensor index = Tensor::zeros({256}, {.dtype = DType::int64}), yes = Tensor::ones({256}, {.dtype = DType::bool_});
  EXPECT_EQ(integers("aten.scatter_add.default", {{"self", zeros(DType::bool_, {1})}, {"dim", 0}, {"index", index}, {"src", yes}}),
            Ints{1});
  EXPECT_EQ(
      floats("aten.upsample_nearest2d.vec", {{"input", Tensor::arange(8).cast(DType::float32).reshape({1, 1, 1, 8}).expand({1, 1, 8, 8})},
                                             {"output_size", {}},
                                             {"scale_factors", List{2.1, 2.1}}})[3],
      1.0f);
  EXPECT_NEAR(tensor("aten.erfc.default", {{"self", Tensor(std::vector<double>{9.0})}}).item<double>() / 4.1370317465138102e-37, 1, 1e-13);
  EXPECT_NEAR(tensor("aten.pairwise_distance.default",
                     {{"x1", Tensor::full({3}, 300, {.dtype = DType::float16})}, {"x2", zeros(DType::float16, {3})}})
                  .item<float>(),
              519.5f, 0.5f);
}

TEST(Aten, CountsOfHostileProgramsAreErrors) {
  constexpr int64_t huge = int64_t{1} << 62;
  const Tensor x = zeros(DType::float32, {1, 4, 1, 4});
  expect_error<ValueError>("aten.chunk.default", {{"self", zeros(DType::float32, {0})}, {"chunks", huge}}, "parts");
  expect_error<ValueError>("aten.tensor_split.sections", {{"self", x}, {"sections", huge}}, "parts");
  expect_error<ValueError>("aten.adaptive_avg_pool2d.default", {{"self", x}, {"output_size", List{huge, huge}}}, "parts");
  expect_error<ValueError>("aten.upsample_nearest2d.default", {{"self", x}, {"output_size", List{huge, huge}}}, "parts");
  expect_error<ValueError>("aten.pixel_shuffle.default", {{"self", x}, {"upscale_factor", int64_t{1} << 32}}, "multiple");
}

}  // namespace
}  // namespace tinygrad::aten
