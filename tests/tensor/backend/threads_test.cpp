// Tensors in many threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>
#include <vector>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

template <class Work>
void in_threads(int count, const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& t : threads) t.join();
}

TEST(TensorThreads, EachWithItsOwnGraph) {
  const Tensor shared = Tensor::arange(100).cast(DType::float32).realize();
  in_threads(8, [&](int i) {
    Tensor x = shared * i;
    for (int k = 0; k < 5; ++k) {
      x = (x + 1).realize();
      const Tensor loss = (x * x).sum();
      loss.backward();
      EXPECT_EQ(x.grad().tolist()[3], 2 * (3.0f * float(i) + float(k) + 1));
    }
  });
}

TEST(TensorThreads, OneLazyValueForAll) {
  const Tensor x = Tensor({1.0, 2.0, 3.0}), sum = (x + 1).sum();
  in_threads(8, [&](int) { EXPECT_EQ(sum.item(), 9); });
}

TEST(TensorThreads, AStoreRunsOnceWhoeverAsks) {
  Tensor x = Tensor({1.0, 2.0}).realize();
  x += 1;
  const Tensor views[] = {x[0], x[1], x * 2, x + 1};
  in_threads(4, [&](int i) { views[i].realize(); });
  EXPECT_EQ(x.tolist(), (Floats{2, 3}));
  EXPECT_EQ(views[2].tolist(), (Floats{4, 6}));
}

TEST(TensorThreads, ShapesWhileAnotherThreadRealizes) {
  for (int round = 0; round < 300; ++round) {
    const Tensor y = (Tensor::ones({1000}) * 3).sum(), w = (Tensor::ones({3}) * 2).clone();
    in_threads(4, [&](int i) {
      if (i == 0) y.realize();
      for (int k = 0; k < 5; ++k) EXPECT_TRUE(y.shape().empty());
      if (i < 2) {
        EXPECT_EQ(w.tolist(), (Floats{2, 2, 2}));
      }
    });
  }
}

// A clone is a store that waits, which one of the threads runs while others make graphs of what it leaves.
TEST(TensorThreads, WhatAStoreLeavesForAll) {
  for (int round = 0; round < 300; ++round) {
    const Tensor w = (Tensor::ones({3}) * 2).clone();
    Tensor set = Tensor::zeros({3}).contiguous();
    set.set_item({0}, 5);
    in_threads(3, [&](int) {
      EXPECT_EQ((w + 1).sum().item(), 9);
      EXPECT_EQ((set * 2).sum().item(), 10);
    });
  }
}

TEST(TensorThreads, OldValuesWhileAStoreRuns) {
  for (int round = 0; round < 300; ++round) {
    Tensor x = Tensor::ones({1000}).contiguous().realize();
    const Tensor old = x * 3;
    x += 1;
    std::atomic<int> ready{0};
    in_threads(4, [&](int i) {
      for (++ready; ready < 4;) std::this_thread::yield();
      if (i == 0) x.realize();
      EXPECT_EQ(i == 1 ? old.tolist<double>()[0] : double(old.tolist()[0]), 3);
    });
    EXPECT_EQ(x.tolist()[0], 2);
  }
}

TEST(TensorThreads, OneJittedFunction) {
  const Tensor w = Tensor({1.0, 2.0, 3.0}).realize();
  const auto f = jit([&](const Tensor& x) {
    const Tensor y = (x * w).realize();
    return std::pair(y.sum(), y + 1);
  });
  in_threads(8, [&](int i) {
    std::vector<std::pair<Tensor, Tensor>> kept;
    for (int k = 0; k < 20; ++k) kept.push_back(f(Tensor({1.0 * i, 1.0 * k, 0.0})));
    for (int k = 0; k < 20; ++k) {
      EXPECT_EQ(kept[size_t(k)].first.item(), i + 2 * k);
      EXPECT_EQ(kept[size_t(k)].second.tolist(), (Floats{float(i) + 1, 2 * float(k) + 1, 1}));
    }
  });
  EXPECT_TRUE(f.captured());
}

TEST(TensorThreads, OneJittedFunctionThatCounts) {
  Tensor count = Tensor({0}).realize();
  const auto f = jit([&](const Tensor& x) { count += x; });
  in_threads(8, [&](int) {
    for (int k = 0; k < 20; ++k) f(Tensor({k}));
  });
  EXPECT_EQ(count.item(), 8 * 190);
}

TEST(TensorThreads, JittedFunctionsOfTheirOwn) {
  const Tensor w = Tensor({1.0, 2.0}).realize();
  in_threads(6, [&](int i) {
    Tensor own = Tensor({0.0, 0.0}).realize();
    const auto f = jit([&](const Tensor& x) {
      own += x * w;
      return own.sum() + Tensor::rand({1}).sum() * 0;
    });
    for (int k = 1; k < 8; ++k) EXPECT_EQ(f(Tensor({1.0, 1.0 * i})).item(), k * (1 + 2 * i));
  });
}

// Weights change while other threads call: the recipes of jit.h. Every call must see all weights of one version: w + b is 0 in each.

constexpr int64_t weights = 4096;

Tensor version(int k) { return Tensor::full({weights}, double(k), {.dtype = DType::float32}); }

bool is_of_one_version(const Tensor& y) {
  const std::vector<float> values = y.tolist();
  return std::all_of(values.begin(), values.end(), [](float v) { return v == 0; });
}

TEST(TensorThreads, AssignUnderALockOfAllReaders) {
  Tensor w = version(1).clone().realize(), b = version(-1).clone().realize();
  const auto call = jit([&](const Tensor& x) { return x * w + b; });
  const Tensor x = Tensor::ones({weights}).realize();
  for (int i = 0; i < 3; ++i) call(x);
  std::shared_mutex mutex;
  std::atomic<int> wrong = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      while (!stop) {
        {
          const std::shared_lock lock(mutex);
          if (!is_of_one_version(call(x))) ++wrong;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));  // the writer's turn
      }
    });
  for (int k = 2; k < 40; ++k) {
    const std::unique_lock lock(mutex);
    w.assign(version(k));
    b.assign(version(-k));
    if (k % 2) Tensor::realize(std::vector{w, b});  // or whoever reads them first
  }
  stop = true;
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(call.captured());
}

TEST(TensorThreads, SwapAModelWithItsOwnJittedFunction) {
  struct Model {
    Tensor w, b;
    std::function<Tensor(const Tensor&)> call;
    explicit Model(int k) : w(version(k).clone().realize()), b(version(-k).clone().realize()) {
      call = jit([w = w, b = b](const Tensor& x) { return x * w + b; });
    }
  };
  std::mutex mutex;
  auto now = std::make_shared<const Model>(1);
  const Tensor x = Tensor::ones({weights}).realize();
  std::atomic<int> wrong = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      while (!stop) {
        std::unique_lock lock(mutex);
        const std::shared_ptr<const Model> model = now;
        lock.unlock();
        if (!is_of_one_version(model->call(x))) ++wrong;
      }
    });
  for (int k = 2; k < 20; ++k) {
    auto next = std::make_shared<const Model>(k);
    for (int i = 0; i < 3; ++i) next->call(x);  // captured before anybody waits for it
    const std::lock_guard lock(mutex);
    now = std::move(next);
  }
  stop = true;
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tinygrad
