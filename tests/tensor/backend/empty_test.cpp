// Memory that nothing was written to, and axes of size 0.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

class Unwritten : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(On, Unwritten, testing::Values("CPU", "INTERP", "NULL"), [](const auto& p) { return std::string(p.param); });

TEST_P(Unwritten, IsReadAsAnyMemory) {
  const Context on_device{{.dev = GetParam()}};
  const bool computes = std::string_view(GetParam()) != "NULL";
  const Tensor x = Tensor::empty({3, 2}, {.dtype = DType::int32});
  EXPECT_EQ(x.tolist<int>(), x.tolist<int>()) << "anything, but always the same";
  EXPECT_EQ(x.data().size(), 24u);
  EXPECT_NE(x.host_memory(), nullptr);
  const Tensor first = Tensor::empty({1});
  EXPECT_NO_THROW(first.item());
  EXPECT_EQ(x.to("CPU").tolist<int>().size(), 6u);
  EXPECT_EQ(x.clone().realize().tolist<int>().size(), 6u);
  const auto f = jit([&](const Tensor& y) { return (y - y + (x ^ x)).realize(); });
  for (int i = 0; i < 4; ++i) {
    const Tensor y = f(Tensor::empty({3, 2}, {.dtype = DType::int32}));
    EXPECT_TRUE(!computes || y.tolist<int>() == std::vector<int>(6, 0)) << i;
  }
  Tensor part = x[{1}];
  part.assign(Tensor({4, 5}));
  EXPECT_TRUE(!computes || x[{1}].tolist<int>() == (std::vector<int>{4, 5}));
  EXPECT_EQ(x.tolist<int>().size(), 6u);
}

/// Gradients of these inputs have their shapes.
void expect_shapes(const Tensor& loss, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> gradients = loss.gradient(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(gradients[i].shape(), inputs[i].shape());
    EXPECT_EQ(gradients[i].tolist(), Floats(size_t(inputs[i].numel()), 0.0f));
  }
}

TEST(SizeZero, ProductsOverNothing) {
  const Tensor none = Tensor::ones({0}).contiguous(), rows = Tensor::ones({0, 3}).contiguous(), columns = Tensor::ones({2, 0}).contiguous();
  EXPECT_EQ(none.prod().item(), 1);
  expect_shapes(none.prod(), {none});
  EXPECT_EQ(rows.prod(0).tolist(), (Floats{1, 1, 1}));
  expect_shapes(rows.prod(0).sum(), {rows});
  EXPECT_EQ(rows.prod(1).shape(), (Sizes{0}));
  expect_shapes(rows.prod(1).sum(), {rows});
  EXPECT_EQ(columns.matmul(rows).tolist(), Floats(6, 0.0f));
  expect_shapes(columns.matmul(rows).sum(), {columns, rows});
  EXPECT_EQ(rows.matmul(columns.matmul(rows).T()).shape(), (Sizes{0, 2}));
}

TEST(SizeZero, WritesToWhatNothingIsReadOfAreDone) {
  const Floats start{0, 1, 2, 3}, written{1, 3, 5, 7};
  const auto add = [](Tensor& y) { y += Tensor({1.f, 2.f, 3.f, 4.f}); };
  Tensor y = Tensor(start).clone().realize();
  add(y);
  EXPECT_EQ((y[Slice{0, 0}].sum() + 1).item<float>(), 1);
  EXPECT_EQ(y.tolist<float>(), written);

  Tensor x({4.f, 5.f}), from_nothing = x[Slice{0, 0}].pad({{0, 4}}) * 1;
  add(from_nothing);
  EXPECT_EQ((from_nothing * from_nothing).sum().gradient({x})[0].tolist<float>(), (Floats{0, 0}));
  EXPECT_EQ(from_nothing.tolist<float>(), (Floats{1, 2, 3, 4}));

  Tensor state = Tensor(Floats(4, 0)).realize();
  const auto step = jit([&](const Tensor& a) {
    state += a;
    return (state[Slice{4, 4}].sum() + a).realize();
  });
  for (int i = 1; i < 5; ++i) {
    EXPECT_EQ(step(Tensor(start).realize()).tolist<float>(), start);
    EXPECT_EQ(state.tolist<float>(), (Floats{0, 1.f * float(i), 2.f * float(i), 3.f * float(i)})) << i;
  }
}

TEST(SizeZero, AttentionToNothingIsNothing) {
  const Tensor q = Tensor::ones({2, 2, 3, 4}).contiguous(), k = Tensor::ones({2, 2, 0, 4}).contiguous();
  const Tensor y = q.scaled_dot_product_attention(k, k);
  EXPECT_EQ(y.tolist(), Floats(48, 0.0f));
  expect_shapes(y.sum(), {q, k});
}

}  // namespace
}  // namespace tinygrad
