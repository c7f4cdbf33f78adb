#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tinygrad/context.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/cpu.h"
#include "base/interrupt.h"
#include "base/options.h"

// The thread sanitizer by default ends processes that start threads after a fork of several.
extern "C" const char* __tsan_default_options();  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }  // NOLINT(readability-identifier-naming)

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

TEST(ComputePool, NoPieceBeginsWhenTheCallerIsCancelled) {
  ComputePool pool(4);
  for (int round = 0; round < 10; round++) {
    std::stop_source source;
    const Context guard{{.cancel = source.get_token()}};
    std::atomic<size_t> done{0};
    EXPECT_THROW(pool.run(3200,
                          [&](size_t begin, size_t end) {
                            done += end - begin;
                            source.request_stop();
                            std::this_thread::sleep_for(std::chrono::milliseconds(1));
                          }),
                 Cancelled);
    EXPECT_LT(done, 3200u);
    {
      const Uninterruptible to_the_end;
      EXPECT_EQ(counts(pool, 20), std::vector<int>(20, 1));
    }
    const Context later{{.cancel = std::stop_token()}};
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

/// The state letters of this process's threads of that name: 'S' sleeps.
std::string states_of_threads(const std::string& name) {
  std::string states;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string stat;
    std::getline(std::ifstream(task.path() / "stat"), stat);
    const size_t end = stat.rfind(") ");
    if (end != stat.npos && stat.find("(" + name + ")") != stat.npos) states += stat[end + 2];
  }
  return states;
}

TEST(ComputePool, WorkersSleepWhenThereIsNothingToDo) {
  ComputePool pool(2);
  EXPECT_EQ(counts(pool, 64), std::vector<int>(64, 1));
  const auto all_sleep = [] {
    const std::string states = states_of_threads("tg-compute");
    return states.size() >= 2 && states.find_first_not_of('S') == states.npos;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!all_sleep() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(all_sleep()) << states_of_threads("tg-compute");
}

TEST(ComputePool, MoreThreadsThanCpusAndOtherLoadAreFine) {
  ComputePool pool(4 * allowed_cpus().size() + 1);
  std::atomic<bool> stop{false};
  std::vector<std::thread> load;
  for (size_t i = 0; i < 2 * allowed_cpus().size(); i++)
    load.emplace_back([&] {
      while (!stop) {}
    });
  for (int round = 0; round < 50; round++) EXPECT_EQ(counts(pool, 100), std::vector<int>(100, 1));
  stop = true;
  for (auto& l : load) l.join();
}

/// What a forked child ends with: 0 if `works` says so there.
template <class F>
int status_of_child(F works) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a deadlock would keep the test forever
    _exit(works() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(ProcessPools, AForkedChildHasItsOwn) {
  const auto work = [] {
    TaskFuture<int> future = task_pool().submit([] { return 3; });
    std::atomic<int> sum{0};
    task_pool().parallel_for(10, [&](size_t i) { sum += static_cast<int>(i); });
    return counts(compute_pool(), 64) == std::vector<int>(64, 1) && future.get() == 3 && sum == 45;
  };
  EXPECT_TRUE(work());
  // Other threads use the pools, and hold their locks, while the child is made.
  std::atomic<bool> stop{false};
  std::vector<std::thread> users;
  for (int i = 0; i < 2; i++)
    users.emplace_back([&] {
      while (!stop) EXPECT_TRUE(work());
    });
  const ComputePool* parents = &compute_pool();
  for (int i = 0; i < 20; i++) EXPECT_EQ(status_of_child([&] { return work() && &compute_pool() != parents; }), 0);
  stop = true;
  for (auto& u : users) u.join();
  EXPECT_EQ(&compute_pool(), parents);
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

/// The process's check of interrupts is asked by every thread, but only one of them gets to know.
std::atomic<bool> one_is_told{false};

TEST(TaskPool, ParallelForEndsInAllThreadsWhenOneIsCancelled) {
  TaskPool pool(3);
  for (int round = 0; round < 20; round++) {
    one_is_told = false;
    set_interrupt_check([] {
      if (one_is_told.exchange(false)) throw Cancelled("told");
    });
    std::atomic<int> begun{0};
    const auto endless = [&](size_t) {
      if (++begun == 4) one_is_told = true;
      for (;;) {
        check_interrupt();
        std::this_thread::yield();
      }
    };
    EXPECT_THROW(pool.parallel_for(1000, endless), Cancelled);
    EXPECT_LE(begun, 4);
    begun = 0;
    EXPECT_THROW(pool.parallel_for(2, [&](size_t) { pool.parallel_for(2, endless); }), Cancelled) << "nested";
    set_interrupt_check(nullptr);
    std::atomic<int> done{0};
    pool.parallel_for(50, [&](size_t) { done++; });
    EXPECT_EQ(done, 50);
  }
}

TEST(TaskPool, ParallelForIsCancelledWhileItWaits) {
  TaskPool pool(1);
  std::stop_source source;
  const Context guard{{.cancel = source.get_token()}};
  const std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    source.request_stop();
  });
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> helps{false};
  EXPECT_THROW(pool.parallel_for(2,
                                 [&](size_t) {
                                   if (std::this_thread::get_id() == caller) return helps.wait(false);
                                   helps = true;
                                   helps.notify_all();
                                   for (;;) {
                                     std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                     check_interrupt();
                                   }
                                 }),
               Cancelled);
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
