#include "search/searched.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <tinygrad/context.h>

#include "base/log.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "program/run_kernel.h"
#include "search/backend/broken_kernels.h"
#include "search/search_record.h"

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

/// A kernel of this test alone, that takes some 100 us.
UOp fresh_matmul() { return named(matmul(192, 160, 128), testing::UnitTest::GetInstance()->current_test_info()->name()); }

TEST(Beam, FindsOptsThatComputeTheSame) {
  const Context beam{{.beam = 2}};
  BeamStatistics statistics;
  const UOp kernel = named(matmul(96, 80, 64), "same");
  const UOp found = searched(kernel, test::cpu(), current_options(), {}, &statistics);
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
  const UOp found = searched(fresh_matmul(), test::cpu(), current_options(), {}, &s);
  EXPECT_GT(s.timed, 5u);
  EXPECT_GE(s.prepared, s.timed);
  if (found != fresh_matmul()) {
    EXPECT_LT(s.winner_s, s.heuristic_s);
  }
}

TEST(Beam, ASecondSearchKnowsTheFirst) {
  const Context beam{{.beam = 1}};
  BeamStatistics first, second;
  const UOp found = searched(fresh_matmul(), test::cpu(), current_options(), {}, &first);
  EXPECT_EQ(searched(fresh_matmul(), test::cpu(), current_options(), {}, &second), found);
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
  EXPECT_EQ(searched(k, runtime::open_device("INTERP"), current_options(), {}, &s), k);
  EXPECT_EQ(searched(k, runtime::open_device("NULL"), current_options(), {}, &s), k);
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

TEST(Beam, EndsWithItsBudget) {
  const Context beam{{.beam = 4, .beam_budget_s = 0.3}};
  BeamStatistics s;
  searched(named(matmul(512, 512, 512), "budget"), test::cpu(), current_options(), {}, &s);
  EXPECT_LT(s.seconds, 20);  // what is begun is finished, on a busy machine
  const auto known = SearchRecord(named(matmul(512, 512, 512), "budget"), test::cpu(), current_options()).winner();
  ASSERT_TRUE(known);
  EXPECT_EQ(known->budget_s, 0.3);
}

TEST(Beam, SymbolicSizesAreSearchedForOneOfThem) {
  const UOp n = variable("n", 1, 4096), i = range(n, RangeArg{.id = 0}), j = codegen::test::loop(256, 1);
  const UOp in = codegen::test::arg(1, 4096 * 256), out = codegen::test::arg(0, 4096 * 256);
  const UOp k = kernel({end(codegen::test::write(out, i * 256 + j, codegen::test::read(in, i * 256 + j) * 3), UOps{i, j})}, {}, "symbolic");
  const Context beam{{.beam = 1}};
  BeamStatistics s;
  searched(k, test::cpu(), current_options(), {}, &s);
  EXPECT_GT(s.timed, 0u);
  EXPECT_LT(s.bad, s.timed);
}

// Every third candidate crashes, every fourth does not end, every fifth computes nothing: the search ends with what is right.
TEST(Beam, FiftySearchesAmongBrokenCandidates) {
  const Context beam{{.beam = 1, .beam_budget_s = 0.5, .ignore_beam_cache = true}};
  size_t bad = 0, timed = 0;
  for (int i = 0; i < 50; ++i) {
    const UOp k = named(matmul(64, 64, 64), fmt::format("broken_{}", i));
    const std::string symbol = kernel_symbol(fmt::format("broken_{}", i));
    BeamStatistics s;
    const BeamHooks hooks{.object = [&](size_t n, std::string object) {
      if ((n + size_t(i)) % 3 == 0) return test::crashing(symbol);
      if ((n + size_t(i)) % 4 == 0) return test::endless(symbol);
      if ((n + size_t(i)) % 5 == 0) return test::idle(symbol);
      return object;
    }};
    const UOp found = searched(k, test::cpu(), current_options(), hooks, &s);
    bad += s.bad;
    timed += s.timed;
    EXPECT_LT(s.seconds, 60);
    EXPECT_TRUE(found == k || s.winner_s < s.heuristic_s);
  }
  EXPECT_GT(bad, 10u);  // on a busy machine a search has time for few
  EXPECT_LT(bad, timed);
}

}  // namespace
}  // namespace tinygrad::search
