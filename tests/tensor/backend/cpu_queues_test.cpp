// CPU:1, CPU:2, ...: the processor as devices whose launches return early, copies between them, and replays of both.
#include <gtest/gtest.h>

#include <thread>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

/// Integers: what is fused rounds otherwise than what is copied in between.
Tensor digits() { return Tensor::randint({8, 8}, 0, 7).realize(); }

uint64_t waits() { return device_statistics("CPU:1").waits + device_statistics("CPU:2").waits; }

Floats expected(const Tensor& x, const Tensor& w, int steps) {
  Tensor y = x;
  for (int i = 0; i < steps; ++i) y = (y.matmul(w) % 7 + 1).matmul(w) % 7;
  return y.flatten().tolist();
}

TEST(CpuQueues, EagerTensorsGiveWhatTheCpuGives) {
  const Tensor x = digits(), w = digits();
  Tensor y = x.to("CPU:1");
  const Tensor w1 = w.to("CPU:1"), w2 = w.to("CPU:2");
  for (int i = 0; i < 5; ++i) y = ((y.matmul(w1) % 7 + 1).to("CPU:2").matmul(w2) % 7).to("CPU:1").realize();
  EXPECT_EQ(y.flatten().tolist(), expected(x, w, 5));
}

TEST(CpuQueues, ReplaysOverTwoDevicesDoNotWait) {
  const Tensor w = digits(), w1 = w.to("CPU:1").realize(), w2 = w.to("CPU:2").realize();
  const auto f = jit([&](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 3; ++i) y = ((y.matmul(w1) % 7 + 1).to("CPU:2").matmul(w2) % 7).to("CPU:1");
    return y.realize();
  });
  std::vector<Tensor> inputs, results;
  for (int i = 0; i < 40; ++i) inputs.push_back(digits());
  for (int i = 0; i < 3; ++i) f(inputs[size_t(i)].to("CPU:1").realize());
  std::vector<Tensor> there;
  for (const Tensor& x : inputs) there.push_back(x.to("CPU:1").realize());
  const uint64_t before = waits();
  for (const Tensor& x : there) results.push_back(f(x));
  EXPECT_EQ(waits(), before);
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_EQ(results[i].flatten().tolist(), expected(inputs[i], w, 3)) << i;
}

TEST(CpuQueues, StateOfReplaysAndSeveralThreads) {
  std::vector<std::thread> threads;
  std::vector<float> sums(4);
  for (size_t t = 0; t < sums.size(); ++t)
    threads.emplace_back([&, t] {
      const std::string here = t % 2 ? "CPU:1" : "CPU:2", there = t % 2 ? "CPU:2" : "CPU:1";
      Tensor state = Tensor::zeros({16}).to(here).contiguous().realize();
      const auto step = jit([&](const Tensor& x) {
        state += x.to(there).to(here);
        return state.sum().realize();
      });
      const Tensor one = Tensor::ones({16}).to(here).contiguous().realize();
      Tensor last;
      for (int i = 0; i < 50; ++i) last = step(one);
      sums[t] = float(last.item());
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(sums, (std::vector<float>{800, 800, 800, 800}));
}

TEST(CpuQueues, MemoryIsWaitedForWhereTheHostReadsIt) {
  const Tensor x = Tensor::rand({64, 64}).to("CPU:1").realize();
  for (int i = 0; i < 20; ++i) {
    Tensor y = x;
    for (int k = 0; k < 10; ++k) y = (y * 0.5 + 1.0).realize();
    const Tensor z = y.to("CPU");
    EXPECT_EQ(z.max().item(), y.max().item());
  }
}

}  // namespace
}  // namespace tinygrad
