// Tensors made of what C++ has, and their values taken back.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <filesystem>
#include <fstream>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

template <class T>
using Rows = std::vector<std::vector<T>>;

TEST(FromLists, OfOneDepth) {
  const std::array<double, 3> array{1, 2, 3};
  EXPECT_EQ(Tensor(array).dtype(), dtypes::float64);
  EXPECT_EQ(Tensor(array).tolist<double>(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(Tensor(array, Sizes{3, 1}).shape(), (Sizes{3, 1}));
  const int16_t numbers[] = {4, 5};
  EXPECT_EQ(Tensor(numbers).dtype(), dtypes::int16);
  EXPECT_EQ(Tensor(std::span(numbers)).tolist<int16_t>(), (std::vector<int16_t>{4, 5}));
  EXPECT_EQ(Tensor(std::deque<int64_t>{7, 8}).tolist<int64_t>(), (std::vector<int64_t>{7, 8}));
  const Tensor bools(std::vector<bool>{true, false, true});
  EXPECT_EQ(bools.dtype(), dtypes::bool_);
  EXPECT_EQ(bools.tolist<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(Tensor(std::vector<bool>{true, false}, Sizes{2, 1}).shape(), (Sizes{2, 1}));
  EXPECT_EQ(Tensor(std::vector<float>()).shape(), Sizes{0});
  EXPECT_EQ(Tensor(std::vector<float>{1, 2}, {.dtype = dtypes::float16}).dtype(), dtypes::float16);
}

TEST(FromLists, OfLists) {
  const Tensor rows(Rows<float>{{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(rows.shape(), (Sizes{2, 3}));
  EXPECT_EQ(rows.tolist(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const std::array<std::array<int, 2>, 3> array{{{1, 2}, {3, 4}, {5, 6}}};
  EXPECT_EQ(Tensor(array).shape(), (Sizes{3, 2}));
  EXPECT_EQ(Tensor(array).tolist<int>(), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  const double matrix[2][2] = {{1, 2}, {3, 4}};
  EXPECT_EQ(Tensor(matrix).tolist<double>(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(Tensor(std::vector<Rows<uint8_t>>(2, Rows<uint8_t>(3, std::vector<uint8_t>(4, 1)))).shape(), (Sizes{2, 3, 4}));
  EXPECT_EQ(Tensor(std::vector<std::array<float, 2>>{{1, 2}, {3, 4}}).tolist(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(Tensor(std::vector<std::vector<bool>>{{true}, {false}}).tolist<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(Tensor(Rows<float>()).shape(), (Sizes{0, 0}));
  EXPECT_EQ(Tensor(Rows<float>(2)).shape(), (Sizes{2, 0}));
}

TEST(FromNumbers, IntegersBeyond32BitsAreKept) {
  constexpr int64_t large = int64_t{1} << 40;
  for (const Tensor& t : {Tensor{large}, Tensor(large), Tensor({int64_t{1}, large})[1], Tensor::full({1}, large), Tensor::arange(1) + large,
                          Tensor::zeros({1}, {.dtype = dtypes::int32}).where(0, large)}) {
    EXPECT_EQ(t.dtype(), dtypes::int64);
    EXPECT_EQ(t.reshape({1}).tolist<int64_t>(), std::vector<int64_t>{large});
  }
  EXPECT_EQ(Tensor(3000000000).item<int64_t>(), 3000000000);
  EXPECT_EQ(Tensor(~uint64_t{0}).item<uint64_t>(), ~uint64_t{0});
  EXPECT_EQ(Tensor{7}.dtype(), dtypes::int32);
  EXPECT_THROW(Tensor(large, {.dtype = dtypes::int32}), ValueError);
  EXPECT_THROW(Tensor::full({2}, 256, {.dtype = dtypes::uint8}), ValueError);
}

TEST(FromLists, ThatAreRaggedIsAnError) {
  EXPECT_THROW(Tensor(Rows<float>{{1, 2}, {3}}), ShapeError);
  EXPECT_THROW(Tensor(Rows<float>{{}, {3}}), ShapeError);
  EXPECT_THROW(Tensor(std::vector<Rows<int>>{{{1}}, {{1}, {2}}}), ShapeError);
}

TEST(FromLists, APathIsAFile) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("tg_values_" + std::to_string(::getpid()));
  std::ofstream(path) << "abc";
  EXPECT_EQ(Tensor(path).to("CPU").tolist<uint8_t>(), (std::vector<uint8_t>{'a', 'b', 'c'}));
  std::filesystem::remove(path);
}

TEST(FromBlob, HasTheDtypeOfThePointer) {
  std::vector<double> doubles{1, 2, 3, 4};
  Tensor t = Tensor::from_blob(doubles.data(), {2, 2});
  EXPECT_EQ(t.dtype(), dtypes::float64);
  EXPECT_EQ(t.tolist<double>(), doubles);
  t.assign(t * 2).realize();
  EXPECT_EQ(doubles, (std::vector<double>{2, 4, 6, 8}));
  int64_t longs[] = {5, 6};
  EXPECT_EQ(Tensor::from_blob(longs, {2}).tolist<int64_t>(), (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(Tensor::from_blob(static_cast<void*>(doubles.data()), {4}, {.dtype = dtypes::float64}).tolist<double>(), doubles);
}

TEST(FromBlob, AnotherDtypeIsForBitsOnly) {
  float floats[] = {1, 2};
  EXPECT_THROW(Tensor::from_blob(floats, {2}, {.dtype = dtypes::float64}), DTypeError);
  EXPECT_THROW(Tensor::from_blob(floats, {2}, {.dtype = dtypes::int32}), DTypeError);
  uint16_t halves[] = {0x3c00, 0x4000};
  EXPECT_EQ(Tensor::from_blob(halves, {2}, {.dtype = dtypes::float16}).tolist(), (std::vector<float>{1, 2}));
  auto* bytes = reinterpret_cast<unsigned char*>(floats);
  EXPECT_EQ(Tensor::from_blob(bytes, {2}, {.dtype = dtypes::float32}).tolist(), (std::vector<float>{1, 2}));
}

TEST(ToList, OfEveryDtypeAndView) {
  const Tensor x = Tensor::arange(24).reshape({2, 3, 4});
  for (const Tensor& t : {x, x.contiguous().realize()}) {
    const Tensor rows = t[1][{Slice{1, 3}}], none = t[{Slice{1, 1}}];
    EXPECT_EQ(rows.tolist<int>(), (std::vector<int>{16, 17, 18, 19, 20, 21, 22, 23}));
    EXPECT_EQ(t[0].T().tolist<int>(), (std::vector<int>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
    EXPECT_EQ((t[1][2] > 21).tolist<bool>(), (std::vector<bool>{false, false, true, true}));
    EXPECT_EQ(t[1][2].tolist<double>(), (std::vector<double>{20, 21, 22, 23}));
    EXPECT_TRUE(none.tolist().empty());
    EXPECT_EQ(t[1][2][3].item<int>(), 23);
    EXPECT_EQ(t[1][2].data().size(), 16u);
  }
}

TEST(HostMemory, OfASliceIsItsPlaceInTheWhole) {
  Tensor x = Tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}).reshape({3, 2});
  const auto whole = x.host_memory(), row = x[1].host_memory(), rows = x[{Slice{1, 3}}].host_memory();
  EXPECT_EQ(row.get(), whole.get() + 8);
  EXPECT_EQ(rows.get(), whole.get() + 8);
  reinterpret_cast<float*>(row.get())[1] = 40;
  EXPECT_EQ(x.tolist(), (std::vector<float>{1, 2, 3, 40, 5, 6}));
  x.assign(x * 10).realize();
  EXPECT_EQ(reinterpret_cast<const float*>(rows.get())[3], 60);
}

TEST(HostMemory, OfElementsThatAreNotTogetherIsACopy) {
  const Tensor x = Tensor({1.f, 2.f, 3.f, 4.f}).reshape({2, 2});
  const auto column = x[{Slice{}, 1}].host_memory();
  EXPECT_EQ(reinterpret_cast<const float*>(column.get())[0], 2);
  EXPECT_EQ(reinterpret_cast<const float*>(column.get())[1], 4);
  reinterpret_cast<float*>(column.get())[0] = 9;
  EXPECT_EQ(x.tolist(), (std::vector<float>{1, 2, 3, 4}));
}

TEST(RandomState, GoesOnWhereItWasTaken) {
  Tensor::manual_seed(7);
  Tensor::rand({5}).realize();
  const Tensor state = Tensor::get_rng_state();
  const auto first = Tensor::randn({8}).tolist(), second = Tensor::rand({3}).tolist();
  Tensor::manual_seed(1);
  Tensor::set_rng_state(state);
  EXPECT_EQ(Tensor::randn({8}).tolist(), first);
  EXPECT_EQ(Tensor::rand({3}).tolist(), second);
  Tensor::set_rng_state(state);
  EXPECT_EQ(Tensor::get_rng_state().tolist<uint64_t>(), state.tolist<uint64_t>());
}

TEST(RandomState, IsNothingElse) {
  EXPECT_THROW(Tensor::set_rng_state(Tensor({1, 2})), ValueError);
  EXPECT_THROW(Tensor::set_rng_state(Tensor(std::vector<uint64_t>{1, 2, 3})), ValueError);
  const auto f = jit([](const Tensor& x) {
    Tensor::get_rng_state();
    return x + 1;
  });
  f(Tensor({1, 2}));
  EXPECT_THROW(f(Tensor({1, 2})), JitError);
}

TEST(TrainingMode, IsOnInAScope) {
  const bool before = Tensor::training();
  {
    const auto on = Tensor::train();
    EXPECT_TRUE(Tensor::training());
    {
      const auto off = Tensor::train(false);
      EXPECT_FALSE(Tensor::training());
      EXPECT_EQ(Tensor::ones({64}).dropout(0.5).tolist(), std::vector<float>(64, 1));
    }
    EXPECT_NE(Tensor::ones({64}).dropout(0.5).tolist(), std::vector<float>(64, 1));
  }
  EXPECT_EQ(Tensor::training(), before);
}

}  // namespace
}  // namespace tinygrad
