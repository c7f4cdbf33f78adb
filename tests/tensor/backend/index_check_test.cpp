// CHECK_OOB in jitted functions: in the first call, in the one that is captured, and in replays.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

Tensor ints(std::vector<int> values) { return Tensor(values).realize(); }

/// What IndexError says; "" if there is none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const IndexError& e) {
    return e.what();
  }
  return "";
}

/// The number of a call, from 1, that gets an index out of range: not captured yet, the one that is captured, the first replay, a later
/// one.
class IndexCheckOn : public test::EveryDevice {
 protected:
  Context check_{{.check_oob = true, .dev = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(All, IndexCheckOn, testing::ValuesIn(test::tensor_devices()), test::device_test_name);

/// An index that is out of range in the first call, before the one that is captured, and in replays, each followed by right calls.
template <class F>
void expect_in_each_call(F&& f, const Tensor& good, const Tensor& bad, const std::string& message) {
  const Context unchecked{{.check_oob = false}};
  const Floats right = f(good).tolist();
  const Context checked{{.check_oob = true}};
  for (int at = 0; at < 5; ++at) {
    const auto jitted = jit(f);
    for (int call = 0; call < 5; ++call) {
      if (call == at) {
        const std::string error = error_of([&] { jitted(bad); });
        EXPECT_NE(error.find(message), std::string::npos) << "before call " << call << ": " << error;
      }
      EXPECT_EQ(jitted(good).tolist(), right) << call;
    }
    EXPECT_TRUE(jitted.captured());
  }
}

TEST_P(IndexCheckOn, EveryOperation) {
  const Tensor x = Tensor::arange(12).reshape({4, 3}).to_float().realize();
  const Tensor good = ints({1, 2}), bad = ints({1, 7}), negative = ints({-5, 1});
  const auto axis = [](const char* op, int index, int at, int size) {
    return std::string(op) + ": the index " + std::to_string(index) + " is out of range for axis " + std::to_string(at) + " of size " +
           std::to_string(size) + " of <Tensor (4, 3) dtypes.float32 on ";
  };
  expect_in_each_call([&](const Tensor& i) { return x[i]; }, good, bad, axis("indexing", 7, 0, 4));
  expect_in_each_call([&](const Tensor& i) { return x[i]; }, ints({-4, 3}), negative, axis("indexing", -5, 0, 4));
  expect_in_each_call([&](const Tensor& i) { return x[{Slice(), i}]; }, good, bad, axis("indexing", 7, 1, 3));
  expect_in_each_call([&](const Tensor& i) { return x.gather(0, i.reshape({2, 1}).expand({2, 3})); }, good, bad, axis("gather", 7, 0, 4));
  expect_in_each_call([&](const Tensor& i) { return x.scatter(1, i.reshape({2, 1}), 9.0); }, good, bad, axis("scatter", 7, 1, 3));
  const auto reduced = [&](const Tensor& i) { return x.scatter_reduce(0, i.reshape({1, 2}), Tensor::ones({1, 2}), ScatterMode::sum); };
  expect_in_each_call(reduced, good, bad, axis("scatter_reduce", 7, 0, 4));
  const Tensor logits = x.shrink({{0, 2}, {0, 3}}).contiguous().realize();
  const auto classes = [](const char* op, int index) {
    return std::string(op) + ": the index " + std::to_string(index) + " is out of range for axis 1 of size 3 of <Tensor (2, 3)";
  };
  const Tensor ignored = ints({2, -100});
  expect_in_each_call([&](const Tensor& y) { return logits.cross_entropy(y); }, ignored, bad, classes("cross_entropy", 7));
  expect_in_each_call([&](const Tensor& y) { return logits.nll_loss(y); }, ignored, ints({-1, 0}), classes("nll_loss", -1));
  expect_in_each_call([&](const Tensor& y) { return logits.sparse_categorical_crossentropy(y); }, good, bad,
                      classes("sparse_categorical_crossentropy", 7));
}

TEST_P(IndexCheckOn, EveryDtype) {
  const Tensor x = Tensor::arange(12).reshape({4, 3}).to_float().realize();
  for (const DType d : {DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64, DType::uint64}) {
    if (!is_dtype_supported(d, device().name().str())) continue;
    const auto look = [&](const Tensor& i) { return x[i]; };
    const Tensor good = ints({3, 0}).cast(d).realize();
    expect_in_each_call(look, good, ints({100, 0}).cast(d).realize(), "indexing: the index 100 is out of range");
    if (is_unsigned(d)) continue;
    expect_in_each_call(look, good, ints({0, -100}).cast(d).realize(), "indexing: the index -100 is out of range");
    const double least = d == DType::int64 ? -9223372036854775808.0 : d == DType::int32 ? -2147483648.0 : d == DType::int16 ? -32768 : -128;
    const Tensor far = Tensor::full({1}, least, {.dtype = d}).contiguous().realize();
    EXPECT_NE(error_of([&] { look(far); }), "");
    EXPECT_NE(error_of([&] { look(far + 0); }), "");
  }
}

/// What is computed in the call, out of what was computed in the call.
TEST_P(IndexCheckOn, SeveralChecksInOneCall) {
  const Tensor words = Tensor::arange(20).reshape({10, 2}).to_float().realize(),
               places = Tensor::arange(8).reshape({4, 2}).to_float().realize();
  const auto f = jit([&](const Tensor& word, const Tensor& place) {
    const Tensor h = words[word] + places[place];
    return words[h.sum(1).cast(DType::int32)] * 2;
  });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(ints({0}), ints({1})).tolist(), (Floats{24, 26}));  // of word 0 + 2 + 1 + 3
  ASSERT_TRUE(f.captured());
  EXPECT_NE(error_of([&] { f(ints({10}), ints({1})); }).find("index 10 is out of range for axis 0 of size 10"), std::string::npos);
  EXPECT_NE(error_of([&] { f(ints({0}), ints({4})); }).find("index 4 is out of range for axis 0 of size 4"), std::string::npos);
  EXPECT_NE(error_of([&] { f(ints({2}), ints({0})); }).find("index 10 is out of range"), std::string::npos);
  EXPECT_EQ(f(ints({0}), ints({0})).tolist(), (Floats{8, 10}));
}

/// Nothing is half done after an error.
TEST_P(IndexCheckOn, AReplayThatFailsWritesNothingThatLasts) {
  Tensor weight = Tensor::arange(6).reshape({3, 2}).to_float().realize(), steps = Tensor::zeros({1}).contiguous().realize();
  const auto train = jit([&](const Tensor& i) {
    const Tensor row = weight[i];
    weight.assign(weight.detach() - row.sum());
    steps.assign(steps.detach() + 1);
    Tensor::realize(std::vector{weight, steps});
    return row;
  });
  for (int k = 0; k < 4; ++k) train(ints({1}));
  ASSERT_TRUE(train.captured());
  const Floats before = weight.tolist();
  EXPECT_NE(error_of([&] { train(ints({3})); }), "");
  EXPECT_EQ(weight.tolist(), before);
  EXPECT_EQ(steps.item(), 4);
  train(ints({0}));
  EXPECT_EQ(steps.item(), 5);
  EXPECT_NE(weight.tolist(), before);
}

TEST_P(IndexCheckOn, SymbolicSizes) {
  const Tensor x = Tensor::arange(24).reshape({8, 3}).to_float().realize();
  const auto f = jit([&](const Tensor& i, const Variable& n) { return x.shrink({{0, n}, {0, 3}})[i] * 1; });
  const auto call = [&](int index, int n) { return f(ints({index}), Variable("n", 1, 8).bind(n)).tolist(); };
  for (int n = 3; n < 7; ++n) {
    EXPECT_EQ(call(n - 1, n), (Floats{float(3 * n - 3), float(3 * n - 2), float(3 * n - 1)}));
    EXPECT_EQ(call(-n, n), (Floats{0, 1, 2}));
    EXPECT_NE(error_of([&] { call(n, n); }).find("of size " + std::to_string(n)), std::string::npos);
    EXPECT_NE(error_of([&] { call(-n - 1, n); }).find("index " + std::to_string(-n - 1)), std::string::npos);
  }
  EXPECT_TRUE(f.captured());
  // As many indices as the variable says.
  const auto g = jit([&](const Tensor& i, const Variable& n) { return x[i.shrink({{0, n}})].sum(); });
  const Tensor indices = ints({0, 1, 2, 9});
  for (int n = 1; n < 4; ++n) g(indices, Variable("n", 1, 8).bind(n)).realize();
  EXPECT_TRUE(g.captured());
  EXPECT_NE(error_of([&] { g(indices, Variable("n", 1, 8).bind(4)).realize(); }).find("index 9"), std::string::npos);
}

TEST_P(IndexCheckOn, CallsWithAndWithoutTheOptionAreApart) {
  const Tensor x = Tensor::arange(4).to_float().realize();
  const auto f = jit([&](const Tensor& i) { return x[i] + 1; });
  for (int k = 0; k < 3; ++k) {
    const Context off{{.check_oob = false}};
    EXPECT_EQ(f(ints({4})).item(), 1);
  }
  EXPECT_TRUE(f.captured());
  for (int k = 0; k < 3; ++k) {
    EXPECT_NE(error_of([&] { f(ints({4})); }), "") << k;
    EXPECT_EQ(f(ints({2})).item(), 3);
  }
}

TEST_P(IndexCheckOn, NothingToCheckLaunchesNothingMore) {
  const auto f = jit([](const Tensor& x) { return (x * 2).sum(); });
  for (int k = 0; k < 3; ++k) f(Tensor({1.0, 2.0}).realize());
  const Tensor x = Tensor({3.0, 4.0}).realize();
  GlobalCounters::reset();
  const Tensor y = f(x);
  EXPECT_EQ(GlobalCounters::kernel_count, 1u);
  EXPECT_EQ(y.item(), 14);
}

TEST_P(IndexCheckOn, SavedCallsLookToo) {
  const Tensor x = Tensor::arange(4).to_float().realize();
  const auto f = jit([&](const Tensor& i) { return x[i] + 1; });
  for (int k = 0; k < 3; ++k) f(ints({k}));
  const std::string path = testing::TempDir() + "index_check_" + test::device_test_name(testing::TestParamInfo(GetParam(), 0));
  f.save(path);
  const LoadedJit loaded(path);
  std::filesystem::remove(path);
  const Context off{{.check_oob = false}};
  const auto call = [&](int index) { return loaded(std::vector{ints({index})}, {}).at(0).item(); };
  EXPECT_EQ(call(-1), 4);
  EXPECT_NE(error_of([&] { call(-5); }).find("indexing: the index -5 is out of range for axis 0 of size 4"), std::string::npos);
  EXPECT_EQ(call(2), 3);
}

/// Each replay has what it looks at to itself.
TEST_P(IndexCheckOn, ThreadsLookForThemselves) {
  const Tensor x = Tensor::arange(8).to_float().realize();
  const auto f = jit([&](const Tensor& i) { return x[i] * 2; });
  for (int k = 0; k < 3; ++k) f(ints({k}));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Context here{{.check_oob = true, .dev = GetParam()}};
      for (int k = 0; k < 50; ++k) {
        const int index = (t * 5 + k) % 12;
        const Tensor i = ints({index});
        try {
          wrong += f(i).item() != 2 * index || index > 7;
        } catch (const IndexError& e) {
          wrong += std::string(e.what()).find("the index " + std::to_string(index) + " is") == std::string::npos || index < 8;
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

/// A computed index is not computed twice, and one that the host reaches is looked at there.
TEST_P(IndexCheckOn, Eagerly) {
  const Tensor x = Tensor::arange(12).reshape({4, 3}).to_float().realize(), i = ints({3, -4}), y = Tensor({{0.0, 3.0, 1.0}}).realize();
  const bool reaches = !device().is_async();
  const Tensor plain = x[i];
  GlobalCounters::reset();
  const Tensor rows = x[i];
  EXPECT_EQ(GlobalCounters::kernel_count, reaches ? 0u : 1u);
  EXPECT_EQ(rows.tolist(), plain.tolist());
  EXPECT_EQ(x.gather(0, y.argmax(-1, {.keepdim = true})).tolist(), Floats{3});
  EXPECT_EQ(x[Tensor({true, false, true, false})].tolist(), (Floats{0, 1, 2, 6, 7, 8}));
  EXPECT_NE(error_of([&] { x[y.sum(1).cast(DType::int32)]; }).find("the index 4"), std::string::npos);
}

}  // namespace
}  // namespace tinygrad
