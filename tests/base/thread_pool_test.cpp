#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/cpu.h"
#include "base/options.h"

namespace tinygrad {
namespace {

/// Runs `chunks` and returns how often each was done.
std::vector<int> counts(ComputePool& pool, size_t chunks) {
  std::vector<std::atomic<int>> done(chunks);
  pool.run(chunks, [&](size_t begin, size_t end) {
    EXPECT_LT(begin, end);
    for (size_t i = begin; i < end; i++) done[i]++;
  });
  return {done.begin(), done.end()};
}

TEST(ComputePool, CoversTheRangeOnce) {
  for (size_t threads : {0, 1, 2, 3, 8}) {
    ComputePool pool(threads);
    for (size_t chunks : {0, 1, 2, 3, 7, 8, 9, 64, 1000}) EXPECT_EQ(counts(pool, chunks), std::vector<int>(chunks, 1));
  }
}

TEST(ComputePool, ResultsOfOneJobAreSeenByTheNext) {
  ComputePool pool(4);
  std::vector<long> values(256, 0);
  for (int round = 0; round < 2000; round++)
    pool.run(values.size(), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; i++) values[i] += static_cast<long>(i);
    });
  for (size_t i = 0; i < values.size(); i++) ASSERT_EQ(values[i], 2000 * static_cast<long>(i));
}

TEST(ComputePool, WorkersWakeUpAgainAfterTheySlept) {
  ComputePool pool(3);
  for (int round = 0; round < 20; round++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(counts(pool, 100), std::vector<int>(100, 1));
  }
}

TEST(ComputePool, WorkIsSharedWhenTheCallerIsBusy) {
  ComputePool pool(2);
  std::atomic<bool> other{false};
  std::thread::id caller = std::this_thread::get_id();
  // The caller's pieces end only when a worker has done one.
  pool.run(64, [&](size_t, size_t) {
    if (std::this_thread::get_id() != caller) other = true;
    while (!other) std::this_thread::yield();
  });
  EXPECT_TRUE(other);
}

TEST(ComputePool, NestedCallsRunInPlace) {
  ComputePool pool(4);
  std::atomic<int> inner{0};
  pool.run(16, [&](size_t begin, size_t end) {
    std::thread::id me = std::this_thread::get_id();
    for (size_t i = begin; i < end; i++)
      pool.run(10, [&](size_t b, size_t e) {
        EXPECT_EQ(std::this_thread::get_id(), me);
        inner += static_cast<int>(e - b);
      });
  });
  EXPECT_EQ(inner, 160);
}

TEST(ComputePool, ManyThreadsCallAtOnce) {
  ComputePool pool(3);
  std::vector<std::thread> users;
  std::atomic<long> sum{0};
  for (int u = 0; u < 6; u++)
    users.emplace_back([&] {
      for (int round = 0; round < 200; round++)
        pool.run(32, [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; i++) sum += static_cast<long>(i);
        });
    });
  for (auto& u : users) u.join();
  EXPECT_EQ(sum, 6 * 200 * (31 * 32 / 2));
}

TEST(ComputePool, TheFirstPiecesExceptionIsRethrownAndTheRestRuns) {
  ComputePool pool(4);
  for (int round = 0; round < 50; round++) {
    std::atomic<int> done{0};
    try {
      pool.run(8, [&](size_t begin, size_t) {
        done++;
        if (begin == 2 || begin == 7) throw ValueError("chunk " + std::to_string(begin));
      });
      FAIL() << "nothing was thrown";
    } catch (const ValueError& e) {
      EXPECT_STREQ(e.what(), "chunk 2");
    }
    EXPECT_EQ(done, 8);
    EXPECT_EQ(counts(pool, 20), std::vector<int>(20, 1));
  }
}

TEST(ComputePool, TheCallersAffinityStays) {
  std::vector<int> before = allowed_cpus();
  ComputePool pool(std::max<size_t>(2, before.size()));
  std::mutex mutex;
  std::set<std::vector<int>> masks;
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> other{false};
  pool.run(64, [&](size_t, size_t) {
    if (std::this_thread::get_id() != caller) {
      std::lock_guard lock(mutex);
      masks.insert(allowed_cpus());
      other = true;
    }
    while (!other) std::this_thread::yield();
  });
  EXPECT_EQ(allowed_cpus(), before);
  for (const auto& mask : masks) EXPECT_EQ(mask.size(), 1u);
}

TEST(ComputePool, TheProcessesPoolHasTheThreadsOfTheOptions) {
  EXPECT_EQ(compute_pool().threads(), cpu_thread_count(current_options()));
  EXPECT_EQ(&compute_pool(), &compute_pool());
}

TEST(TaskPool, GivesValuesReferencesAndNothing) {
  for (size_t threads : {0, 1, 4}) {
    TaskPool pool(threads);
    int target = 1;
    auto a = pool.submit([] { return std::make_unique<int>(5); });
    auto b = pool.submit([&]() -> int& { return target; });
    auto c = pool.submit([&] { target = 2; });
    EXPECT_EQ(*a.get(), 5);
    EXPECT_EQ(&b.get(), &target);
    c.get();
    EXPECT_EQ(target, 2);
    EXPECT_FALSE(c.valid());
  }
}

TEST(TaskPool, TakesMoveOnlyWork) {
  TaskPool pool(1);
  EXPECT_EQ(pool.submit([p = std::make_unique<int>(3)] { return *p; }).get(), 3);
}

TEST(TaskPool, AnExceptionArrivesAtGet) {
  for (size_t threads : {0, 2}) {
    TaskPool pool(threads);
    auto f = pool.submit([]() -> int { throw CompileError("no"); });
    EXPECT_THROW(f.get(), CompileError);
    EXPECT_EQ(pool.submit([] { return 1; }).get(), 1);
  }
}

// A tree of tasks in which every inner one waits for its children: with plain futures one thread would wait forever.
long tree(TaskPool& pool, int depth) {
  if (depth == 0) return 1;
  auto left = pool.submit([&, depth] { return tree(pool, depth - 1); });
  auto right = pool.submit([&, depth] { return tree(pool, depth - 1); });
  return left.get() + right.get();
}

TEST(TaskPool, TasksMayWaitForTasks) {
  for (size_t threads : {0, 1, 3}) {
    TaskPool pool(threads);
    EXPECT_EQ(tree(pool, 8), 256);
  }
}

TEST(TaskPool, ParallelForCoversTheRangeAndNests) {
  for (size_t threads : {0, 1, 4}) {
    TaskPool pool(threads);
    std::vector<std::atomic<int>> done(300);
    pool.parallel_for(30, [&](size_t i) { pool.parallel_for(10, [&, i](size_t j) { done[i * 10 + j]++; }); });
    EXPECT_TRUE(std::ranges::all_of(done, [](const auto& n) { return n == 1; }));
    pool.parallel_for(0, [](size_t) { FAIL(); });
  }
}

TEST(TaskPool, ParallelForThrowsTheLowestIndexsException) {
  TaskPool pool(3);
  for (int round = 0; round < 50; round++) {
    std::atomic<int> done{0};
    try {
      pool.parallel_for(20, [&](size_t i) {
        done++;
        if (i >= 5) throw ValueError(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const ValueError& e) {
      EXPECT_STREQ(e.what(), "5");
    }
    EXPECT_EQ(done, 20);
  }
}

TEST(TaskPool, TasksSeeTheSubmittersOptions) {
  TaskPool pool(2);
  Context guard{{.beam = 11}};
  auto f = pool.submit([] { return current_options().beam; });
  Context later{{.beam = 12}};
  EXPECT_EQ(f.get(), 11);
  EXPECT_EQ(current_options().beam, 12);
}

TEST(TaskPool, TheDestructorFinishesWhatWasSubmitted) {
  std::atomic<int> done{0};
  {
    TaskPool pool(2);
    for (int i = 0; i < 200; i++) pool.submit([&] { done++; });
  }
  EXPECT_EQ(done, 200);
}

}  // namespace
}  // namespace tinygrad
