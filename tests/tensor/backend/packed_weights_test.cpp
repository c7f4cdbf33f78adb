// Weights that jitted functions read as packed copies: whatever changes them is seen by the next call.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include <tinygrad/counters.h>
#include <tinygrad/tinygrad.h>

#include "support/captured_calls.h"
#include "support/temp_folder.h"

namespace tinygrad {
namespace {

constexpr int64_t rows = 200, columns = 192, terms = 80;

class PackedWeights : public testing::Test {
 protected:
  static Tensor weight(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> values(size_t(columns * terms));
    for (float& v : values) v = float(int(random() % 17) - 8);
    return Tensor(std::span<const float>(values), {terms, columns}).realize();
  }
  static Tensor input() { return (Tensor::arange(rows * terms).reshape({rows, terms}) % 7).cast(DType::float32).realize(); }
  static std::vector<float> expected(const Tensor& w) { return input().matmul(w).tolist(); }
  auto layer() {
    return jit([this](const Tensor& x) { return x.matmul(w_); });
  }
  template <class F>
  static void capture(const F& f) {
    test::capture(f, input());
  }
  template <class F>
  static uint64_t kernels(const F& f) {
    return test::kernels_of_call(f, input());
  }

  Context on_cpu_{{.dev = "CPU"}};
  Tensor w_ = weight(1);
};

TEST_F(PackedWeights, AreCopiedOnce) {
  const auto f = layer();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(f(input()).tolist(), expected(w_));
  EXPECT_EQ(kernels(f), 1u);
}

// Layers of one shape whose weights lie in one tensor share a kernel, which is told where each begins.
TEST_F(PackedWeights, OfManyLayersInOneTensor) {
  std::vector<Tensor> layers;
  for (unsigned seed = 1; seed <= 6; ++seed) layers.push_back(weight(seed));
  const Tensor all = Tensor::stack(layers).realize();
  const auto each = [&](const Tensor& x) {
    Tensor sum = Tensor::zeros({rows, columns});
    for (int64_t i = 0; i < all.size(0); ++i) sum = (sum % 5 + x.matmul(all[i])).contiguous();
    return sum;
  };
  const auto f = jit(each);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(input()).tolist(), each(input()).tolist());
}

// As the steps of a recurrent layer: few such places have copies, and kernels of their own that read them.
TEST_F(PackedWeights, OfFewLayersInOneTensorAreCopied) {
  Tensor all = Tensor::stack({weight(1), weight(2)}).realize();
  const auto each = [&](const Tensor& x) {
    Tensor sum = Tensor::zeros({rows / 5, columns});
    for (int64_t i = 0; i < 5; ++i) sum = (sum % 5 + x.reshape({5, rows / 5, terms})[i].matmul(all[i % 2])).contiguous();
    return sum;
  };
  const auto f = jit(each);
  capture(f);
  EXPECT_EQ(f(input()).tolist(), each(input()).tolist());
  const uint64_t usual = kernels(f);
  all.assign(Tensor::stack({weight(3), weight(4)})).realize();
  EXPECT_EQ(kernels(f), usual + 2) << "two copies";
  EXPECT_EQ(f(input()).tolist(), each(input()).tolist());
}

// As the gates of a recurrent layer.
TEST_F(PackedWeights, OfSeveralProductsInAKernelAreCopied) {
  Tensor all = Tensor::stack({weight(1), weight(2)}).transpose(1, 2).contiguous().realize();
  const auto gates = [&](const Tensor& x) { return x.matmul(all[0].transpose()).maximum(x.matmul(all[1].transpose())); };
  const auto f = jit(gates);
  capture(f);
  EXPECT_EQ(kernels(f), 1u);
  EXPECT_EQ(f(input()).tolist(), gates(input()).tolist());
  all.assign(Tensor::stack({weight(3), weight(4)}).transpose(1, 2)).realize();
  EXPECT_EQ(kernels(f), 2u) << "a copy, and the gates";
  EXPECT_EQ(f(input()).tolist(), gates(input()).tolist());
}

TEST_F(PackedWeights, ThatAreAssignedToAreCopiedAgain) {
  const auto f = layer();
  capture(f);
  for (unsigned seed = 2; seed < 5; ++seed) {
    w_.assign(weight(seed)).realize();
    EXPECT_EQ(kernels(f), 2u) << "a copy, and the layer";
    EXPECT_EQ(kernels(f), 1u);
    EXPECT_EQ(f(input()).tolist(), expected(weight(seed)));
  }
  w_.shrink({{3, 5}, {0, columns}}).assign(Tensor::ones({2, columns})).realize();
  EXPECT_EQ(f(input()).tolist(), expected(w_));
}

TEST_F(PackedWeights, ThatAnotherJittedFunctionWritesAreCopiedAgain) {
  const auto f = layer();
  const auto step = jit([&](const Tensor& x) {
    w_.assign(w_ * 2 + x.mean());
    return w_.sum();
  });
  capture(f);
  for (int i = 0; i < 5; ++i) {
    step(Tensor({1.0 * i})).realize();
    EXPECT_EQ(f(input()).tolist(), expected(w_));
  }
}

TEST_F(PackedWeights, ThatTheCallWritesAreNotCopied) {
  const auto f = jit([this](const Tensor& x) {
    const Tensor y = x.matmul(w_).realize();
    w_.assign(w_ + 1).realize();
    return y;
  });
  Tensor other = weight(1);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(f(input()).tolist(), expected(other));
    other = (other + 1).realize();
  }
}

TEST_F(PackedWeights, ThatTheHostWritesToAreSeen) {
  const auto f = layer();
  capture(f);
  const auto memory = w_.host_memory();
  float* values = reinterpret_cast<float*>(memory.get());
  for (int i = 0; i < 3; ++i) {
    values[5] = float(100 + i);
    EXPECT_EQ(f(input()).tolist(), expected(w_));
  }
  const auto g = layer();  // captured when the host could write already
  capture(g);
  values[7] = 50;
  EXPECT_EQ(kernels(g), 1u);
  EXPECT_EQ(g(input()).tolist(), expected(w_));
}

TEST_F(PackedWeights, OfSomebodyElsesMemoryAreNotCopied) {
  std::vector<float> values = w_.tolist();
  w_ = Tensor::from_blob(values.data(), {terms, columns});
  const auto f = layer();
  capture(f);
  values[9] = 77;
  EXPECT_EQ(kernels(f), 1u);
  EXPECT_EQ(f(input()).tolist(), expected(w_));
}

TEST_F(PackedWeights, OfAFileAreCopied) {
  const test::TempFolder folder;
  const std::vector<float> values = w_.tolist();
  const std::string path = folder.write("w", {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  w_ = Tensor::from_file(path).bitcast(DType::float32).reshape({terms, columns}).to("CPU").realize();
  const int64_t before = GlobalCounters::mem_used;
  const auto f = layer();
  capture(f);
  EXPECT_GE(GlobalCounters::mem_used - before, terms * columns * int64_t(sizeof(float))) << "there is no copy";
  EXPECT_EQ(kernels(f), 1u);
  EXPECT_EQ(f(input()).tolist(), expected(weight(1)));
  w_.assign(weight(2)).realize();
  EXPECT_EQ(kernels(f), 2u) << "a copy, and the layer";
  EXPECT_EQ(f(input()).tolist(), expected(weight(2)));
}

TEST_F(PackedWeights, TakeNoMoreMemoryThanAllowed) {
  const int64_t bytes = columns * terms * int64_t(sizeof(float));
  const auto memory_of_capture = [&](int64_t limit) {
    const Context limited{{.pack_memory = limit}};
    const auto f = layer();
    capture(f);
    const int64_t with = GlobalCounters::mem_used;
    EXPECT_EQ(f(input()).tolist(), expected(w_));
    const auto g = layer();  // the limit is for both
    capture(g);
    return GlobalCounters::mem_used - with;
  };
  EXPECT_LT(memory_of_capture(0), bytes);
  EXPECT_LT(memory_of_capture(bytes), bytes) << "the first took all";
  EXPECT_GE(memory_of_capture(4 * bytes), bytes);
  EXPECT_LT(memory_of_capture(bytes), bytes) << "what was freed counts no more";
}

TEST_F(PackedWeights, WithoutMemoryForACopyTheKernelStays) {
  const int64_t results = rows * columns * int64_t(sizeof(float)), copy = terms * columns * int64_t(sizeof(float));
  const Tensor x = input();
  const std::vector<float> want = expected(w_);
  for (const bool limited : {true, false}) {
    const int64_t before = GlobalCounters::mem_used;
    const Context limit{{.memory_limit = limited ? before + results + copy / 2 : 0}};
    const auto f = layer();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(f(x).realize().shape(), (Sizes{rows, columns}));
    EXPECT_EQ(GlobalCounters::mem_used - before < copy, limited);
    EXPECT_EQ(f(x).tolist(), want);
  }
}

TEST_F(PackedWeights, InManyThreads) {
  const auto f = layer();
  capture(f);
  w_.assign(weight(3)).realize();
  const std::vector<float> want = expected(w_);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const Context on_cpu{{.dev = "CPU"}};
      for (int k = 0; k < 10; ++k) EXPECT_EQ(f(input()).tolist(), want);
    });
  for (std::thread& t : threads) t.join();
}

TEST_F(PackedWeights, AreSavedAsTheyWere) {
  const test::TempFolder folder;
  const std::string path = folder.path("layer.jit");
  const auto f = layer();
  capture(f);
  f.save(path);
  const LoadedJit loaded(path);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loaded({input()})[0].tolist(), expected(w_));
}

}  // namespace
}  // namespace tinygrad
