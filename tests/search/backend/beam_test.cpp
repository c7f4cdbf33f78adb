#include "search/searched.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include <tinygrad/context.h>

#include "base/log.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "program/run_kernel.h"
#include "search/backend/broken_kernels.h"
#include "search/search_record.h"
#include "support/test_scale.h"

namespace tinygrad::search {
namespace {

using codegen::test::kernel;
using codegen::test::matmul;

/// A disk cache of the tests' own, before options are read.
class OwnCache : public testing::Environment {
 public:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / fmt::format("tg_beam_{}", getpid());
    std::filesystem::create_directories(folder_);
    setenv("CACHEDB", (folder_ / "cache.db").c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

 private:
  std::filesystem::path folder_;
};
[[maybe_unused]] const auto* own_cache = testing::AddGlobalTestEnvironment(new OwnCache);

UOp named(const UOp& kernel, const std::string& name) {
  KernelArg arg = kernel.arg_as<KernelArg>();
  arg.name = Symbol(name);
  return kernel.with_arg(arg);
}

/// A kernel of this test alone.
UOp fresh_matmul() { return named(matmul(192, 160, 128), testing::UnitTest::GetInstance()->current_test_info()->name()); }

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// However quick the machine is.
const BeamHooks any_length{.too_short_s = 0};

TEST(Beam, FindsOptsThatComputeTheSame) {
  const Context beam{{.beam = 2}};
  BeamStatistics statistics;
  const UOp kernel = named(matmul(96, 80, 64), "same");
  const UOp found = searched(kernel, test::cpu(), current_options(), any_length, &statistics);
  EXPECT_GT(statistics.timed, 0u);
  EXPECT_EQ(statistics.bad, 0u);
  const auto& opts = found.arg_as<KernelArg>();
  if (!opts.opts.empty()) {
    EXPECT_EQ(codegen::test::difference_on_cpu(kernel, opts.opts), "") << codegen::to_string(opts.opts);
  }
}

TEST(Beam, TimesCandidatesAndIsNotSlowerThanTheHeuristics) {
  const Context beam{{.beam = 2}};
  BeamStatistics s;
  const UOp found = searched(fresh_matmul(), test::cpu(), current_options(), any_length, &s);
  EXPECT_GT(s.timed, 5u);
  EXPECT_GE(s.prepared, s.timed);
  if (found != fresh_matmul()) {
    EXPECT_LT(s.winner_s, s.heuristic_s);
  }
}

TEST(Beam, ASecondSearchKnowsTheFirst) {
  const Context beam{{.beam = 1}};
  BeamStatistics first, second;
  const UOp found = searched(fresh_matmul(), test::cpu(), current_options(), any_length, &first);
  EXPECT_EQ(searched(fresh_matmul(), test::cpu(), current_options(), any_length, &second), found);
  EXPECT_EQ(known_best(fresh_matmul(), test::cpu(), current_options()), found);
  EXPECT_GT(first.timed, 0u);
  EXPECT_EQ(second.prepared, 0u);
  const auto on_disk = SearchRecord(fresh_matmul(), test::cpu(), current_options()).winner();
  ASSERT_TRUE(on_disk);
  EXPECT_EQ(on_disk->heuristic, found == fresh_matmul());
}

TEST(Beam, BadCandidatesAreRemembered) {
  const Context beam{{.beam = 1}};
  const SearchRecord record(fresh_matmul(), test::cpu(), current_options());
  const ContentKey code = content_key("source");
  EXPECT_FALSE(record.verdict(code));
  record.set_verdict(code, {.seconds = 0, .bad = "signal 11 ended it"});
  EXPECT_EQ(record.verdict(code)->bad, "signal 11 ended it");
  EXPECT_FALSE(record.verdict(content_key("other")));
  const Context again{{.ignore_beam_cache = true}};
  EXPECT_FALSE(SearchRecord(fresh_matmul(), test::cpu(), current_options()).verdict(code));
}

TEST(Beam, AShorterSearchIsNoAnswerToALongerOne) {
  const Context beam{{.beam = 1, .beam_budget_s = 2}};
  const SearchRecord record(fresh_matmul(), test::cpu(), current_options());
  record.set_winner({.heuristic = false, .opts = codegen::parse_opts("LANE(1,8)"), .budget_s = 2});
  EXPECT_EQ(codegen::to_string(record.winner()->opts), "LANE(1,8)");
  for (const double budget : {0.0, 3.0}) {
    const Context longer{{.beam_budget_s = budget}};
    EXPECT_FALSE(SearchRecord(fresh_matmul(), test::cpu(), current_options()).winner()) << budget;
  }
  const Context shorter{{.beam_budget_s = 1}};
  EXPECT_TRUE(SearchRecord(fresh_matmul(), test::cpu(), current_options()).winner());
}

TEST(Beam, SearchesOnlyWhereItIsAsked) {
  const UOp k = fresh_matmul();
  BeamStatistics s;
  EXPECT_EQ(searched(k, test::cpu(), current_options(), {}, &s), k);
  const Context beam{{.beam = 2}};
  EXPECT_EQ(searched(k, Device::get("INTERP"), current_options(), {}, &s), k);
  EXPECT_EQ(searched(k, Device::get("NULL"), current_options(), {}, &s), k);
  const UOp given = codegen::test::with_opts(k, codegen::parse_opts("LANE(1,8)"));
  EXPECT_EQ(searched(given, test::cpu(), current_options(), {}, &s), given);
  const Context plain{{.noopt = true}};
  EXPECT_EQ(searched(k, test::cpu(), current_options(), {}, &s), k);
  EXPECT_EQ(s.prepared, 0u);
}

TEST(Beam, WithoutAWorkerTheLogSaysSoOnce) {
  const Context beam{{.beam = 2, .worker_path = "/nonexistent/tg-worker"}};
  std::vector<std::string> lines;
  const ScopedLogSink sink([&](std::string_view line) { lines.emplace_back(line); });
  BeamStatistics s;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(searched(fresh_matmul(), test::cpu(), current_options(), {}, &s), fresh_matmul());
  EXPECT_EQ(s.prepared, 0u);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0],
            "BEAM: kernels are not searched for, heuristics choose their opts: WORKER_PATH: /nonexistent/tg-worker is no program");
}

TEST(Beam, TooShortKernelsAreLeftAlone) {
  const Context beam{{.beam = 1}};
  BeamStatistics s;
  EXPECT_EQ(searched(fresh_matmul(), test::cpu(), current_options(), {.too_short_s = 1e9}, &s), fresh_matmul());
  EXPECT_EQ(s.prepared, 0u);
}

TEST(Beam, EndsWithItsBudget) {
  const Context beam{{.beam = 4, .beam_budget_s = 0.5}};
  BeamStatistics s;
  const BeamHooks hooks{.object =
                            [](size_t, std::string object) {
                              std::this_thread::sleep_for(std::chrono::milliseconds(600));
                              return object;
                            },
                        .too_short_s = 0};
  const auto start = std::chrono::steady_clock::now();
  searched(fresh_matmul(), test::cpu(), current_options(), hooks, &s);
  EXPECT_LT(seconds_since(start), 5);  // 40 without a budget
  EXPECT_LE(s.timed, 1u);
  const auto known = SearchRecord(fresh_matmul(), test::cpu(), current_options()).winner();
  ASSERT_TRUE(known);
  EXPECT_EQ(known->budget_s, 0.5);
}

struct Interrupt {};

/// The search of fresh_matmul(), until `change` throws; the objects of the candidates that were timed.
std::vector<std::string> timed_objects(const std::function<std::string(size_t, const std::string&)>& change, BeamStatistics& statistics) {
  std::vector<std::string> objects;
  const auto object = [&](size_t n, std::string o) {
    std::string changed = change(n, o);
    objects.push_back(std::move(o));
    return changed;
  };
  try {
    searched(fresh_matmul(), test::cpu(), current_options(), {.object = object, .too_short_s = 0}, &statistics);
  } catch (const Interrupt&) {}
  return objects;
}

size_t in_both(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return size_t(std::ranges::count_if(a, [&](const std::string& o) { return std::ranges::find(b, o) != b.end(); }));
}

std::string unchanged(size_t, const std::string& object) { return object; }

// Other opts may make the same code, and other code the same object.
TEST(Beam, SameCodeIsTimedOnce) {
  const Context beam{{.beam = 2, .ignore_beam_cache = true}};
  BeamStatistics s;
  const std::vector<std::string> objects = timed_objects(unchanged, s);
  EXPECT_GT(s.duplicates, 0u);
  EXPECT_LE(s.timed + s.duplicates, s.prepared);
  EXPECT_EQ(std::set<std::string>(objects.begin(), objects.end()).size(), s.timed);
}

// What it had found out of candidates, one of which crashes, is not asked again.
TEST(Beam, ASearchThatWasInterruptedGoesOn) {
  const Context beam{{.beam = 1}};
  const std::string symbol = kernel_symbol(fresh_matmul().arg_as<KernelArg>().name.str());
  const auto interrupted = [&](size_t n, const std::string& object) {
    if (n == 5) throw Interrupt();
    return n == 2 ? test::crashing(symbol) : object;
  };
  BeamStatistics first, second;
  const std::vector<std::string> before = timed_objects(interrupted, first);
  EXPECT_EQ(before.size(), 5u);
  EXPECT_EQ(first.timed, 5u);
  EXPECT_EQ(first.bad, 1u);
  EXPECT_FALSE(SearchRecord(fresh_matmul(), test::cpu(), current_options()).winner());
  const std::vector<std::string> after = timed_objects(unchanged, second);
  EXPECT_GE(second.known, first.timed);
  EXPECT_GT(second.timed, 0u);
  EXPECT_EQ(in_both(before, after), 0u);
}

TEST(Beam, ASearchThatWasOutOfTimeGoesOn) {
  BeamStatistics first, second;
  std::vector<std::string> before;
  {
    const Context beam{{.beam = 1, .beam_budget_s = 2}};
    const auto slow = [](size_t n, const std::string& object) {
      if (n == 3) std::this_thread::sleep_for(std::chrono::seconds(2));
      return object;
    };
    before = timed_objects(slow, first);
  }
  EXPECT_GT(first.timed, 0u);
  EXPECT_LE(first.timed, 4u);
  const Context beam{{.beam = 1}};
  const std::vector<std::string> after = timed_objects(unchanged, second);
  EXPECT_GT(second.timed, 0u);
  EXPECT_LE(in_both(before, after), 1u);  // the last one may have had no time
}

TEST(Beam, SymbolicSizesAreSearchedForOneOfThem) {
  const UOp n = variable("n", 1, 4096), i = range(n, RangeArg{.id = 0}), j = codegen::test::loop(256, 1);
  const UOp in = codegen::test::arg(1, 4096 * 256), out = codegen::test::arg(0, 4096 * 256);
  const UOp k = kernel({end(codegen::test::write(out, i * 256 + j, codegen::test::read(in, i * 256 + j) * 3), UOps{i, j})}, {}, "symbolic");
  const Context beam{{.beam = 1}};
  BeamStatistics s;
  searched(k, test::cpu(), current_options(), any_length, &s);
  EXPECT_GT(s.timed, 0u);
  EXPECT_LT(s.bad, s.timed);
}

// Every third candidate crashes, every fifth computes nothing, every seventh does not end: the search ends with what is right, and soon. An
// endless candidate of such a short kernel takes a quarter of a second, and 2 more where its worker must be killed. 5 searches, 100 with
// TG_TEST_SCALE=20.
TEST(Beam, SearchesAmongBrokenCandidates) {
  constexpr double without_s = 10, endless_s = 2.5;
  const Context beam{{.beam = 1, .ignore_beam_cache = true}};
  for (size_t i = 0; i < 5 * size_t(tinygrad::test::test_scale()); ++i) {
    SCOPED_TRACE(i);
    const std::string name = fmt::format("broken_{}", i), symbol = kernel_symbol(name);
    const UOp k = named(matmul(64, 64, 64), name);
    size_t broken = 0, endless = 0;
    const BeamHooks hooks{.object =
                              [&](size_t n, std::string object) {
                                ++broken;
                                if ((n + i) % 3 == 0) return test::crashing(symbol);
                                if ((n + i) % 5 == 0) return test::idle(symbol);
                                if ((n + i) % 7 == 0) return ++endless, test::endless(symbol);
                                --broken;
                                return object;
                              },
                          .too_short_s = 0};
    BeamStatistics s;
    const auto start = std::chrono::steady_clock::now();
    alarm(120);  // ends the test if the search does not
    const UOp found = searched(k, test::cpu(), current_options(), hooks, &s);
    alarm(0);
    EXPECT_LT(seconds_since(start), without_s + endless_s * double(endless));
    EXPECT_GT(broken, 0u);
    EXPECT_GE(s.bad, broken);
    EXPECT_GT(s.timed, broken);
    EXPECT_TRUE(found == k || s.winner_s < s.heuristic_s);
  }
}

// A search of another thread holds its locks while the child is made.
TEST(Beam, AForkedChildSearchesToo) {
  const auto search = [](const std::string& name, const BeamHooks& hooks) {
    const Context beam{{.beam = 1}};
    BeamStatistics s;
    searched(named(matmul(64, 64, 64), name), test::cpu(), current_options(), hooks, &s);
    return s.timed > 0;
  };
  std::promise<void> searching, done;
  std::thread other([&] {
    const BeamHooks hooks{.object =
                              [&](size_t n, std::string object) {
                                if (n == 0) {
                                  searching.set_value();
                                  done.get_future().wait();
                                }
                                return object;
                              },
                          .too_short_s = 0};
    EXPECT_TRUE(search("parents", hooks));
  });
  const bool waits = searching.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  const pid_t child = waits ? fork() : -1;
  if (child == 0) {
    alarm(60);  // a deadlock would keep the test forever
    _exit(search("child", any_length) ? 0 : 1);
  }
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  done.set_value();
  other.join();
  EXPECT_TRUE(waits);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tinygrad::search
