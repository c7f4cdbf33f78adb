#include "engine/lanes.h"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "support/test_scale.h"

namespace tinygrad::engine {

namespace {

using Waits = std::vector<Lanes::Wait>;

Waits waits(const Lanes& lanes, size_t step) {
  const auto w = lanes.waits_of(step);
  return {w.begin(), w.end()};
}

MemoryUse reads(uintptr_t begin, uintptr_t end) { return {begin, end, false}; }
MemoryUse writes(uintptr_t begin, uintptr_t end) { return {begin, end, true}; }

/// Steps over cells of memory: each piece of a step writes its share of some cells, from all that the step reads.
struct Program {
  struct Step {
    size_t lane = 0, pieces = 1;
    uint64_t salt = 0;
    std::vector<MemoryUse> uses;  // what it writes is the first
  };
  std::vector<Step> steps;
  size_t lanes = 1, cells = 1;

  Program(uint64_t seed, size_t count) {
    std::mt19937_64 dice(seed);
    const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(dice); };
    lanes = 1 + below(6);
    cells = 1 + below(40);
    const auto range = [&](bool written) {
      const size_t begin = below(cells);
      return MemoryUse{begin, begin + below(cells - begin + 1), written};
    };
    for (size_t i = 0; i < count; ++i) {
      Step s{.lane = below(lanes), .pieces = 1 + below(5), .salt = dice(), .uses = {range(true)}};
      // A step does not read what it writes: its pieces run in any order.
      for (size_t k = below(4); k > 0; --k)
        if (const MemoryUse r = range(false); r.end <= s.uses[0].begin || r.begin >= s.uses[0].end) s.uses.push_back(r);
      steps.push_back(std::move(s));
    }
  }

  void run_piece(size_t step, size_t begin, size_t end, std::vector<uint64_t>& memory) const {
    const Step& s = steps[step];
    uint64_t sum = s.salt;
    for (const MemoryUse& u : s.uses)
      for (uintptr_t c = u.begin; c < u.end && !u.writes; ++c) sum = sum * 0x9e3779b97f4a7c15 + memory[c];
    const size_t n = s.uses[0].end - s.uses[0].begin;
    for (size_t c = n * begin / s.pieces; c < n * end / s.pieces; ++c) memory[s.uses[0].begin + c] = sum + c;
  }
};

}  // namespace

TEST(Lanes, StepsWaitForWhatTheirMemoryNeeds) {
  Lanes lanes(3);
  const auto add = [&](size_t lane, std::vector<MemoryUse> uses) {
    lanes.add(lane, uses);
    return waits(lanes, lanes.size() - 1);
  };
  EXPECT_EQ(add(0, {writes(0, 8)}), Waits());
  EXPECT_EQ(add(0, {reads(0, 8), writes(8, 16)}), Waits()) << "of its own lane";
  EXPECT_EQ(add(1, {reads(4, 6), writes(20, 24)}), Waits({{0, 1}})) << "what another wrote";
  EXPECT_EQ(add(2, {reads(16, 20)}), Waits()) << "beside all";
  EXPECT_EQ(add(2, {reads(22, 30)}), Waits({{1, 1}}));
  EXPECT_EQ(add(2, {reads(0, 4)}), Waits()) << "lane 1 had waited for it";
  EXPECT_EQ(add(1, {reads(0, 1)}), Waits());
  EXPECT_EQ(add(0, {writes(0, 1)}), Waits({{1, 2}, {2, 3}})) << "what others read";
  EXPECT_EQ(add(1, {reads(1, 2)}), Waits());
  EXPECT_EQ(add(1, {writes(5, 5)}), Waits()) << "nothing";
  EXPECT_EQ(add(2, {writes(0, 2)}), Waits({{0, 3}, {1, 3}}));
}

TEST(Lanes, RunsAsIfOneAfterAnother) {
  ComputePool one(1), two(2), four(4);
  const int programs = 300 * test::test_scale();
  for (uint64_t seed = 0; seed < uint64_t(programs); ++seed) {
    SCOPED_TRACE(seed);
    const Program p(seed, 1 + seed % 60);
    std::vector<uint64_t> expected(p.cells, 1);
    for (size_t i = 0; i < p.steps.size(); ++i) p.run_piece(i, 0, p.steps[i].pieces, expected);
    Lanes lanes(p.lanes);
    for (const auto& s : p.steps) lanes.add(s.lane, s.uses);
    for (ComputePool* pool : {&one, &two, &four}) {
      std::vector<uint64_t> memory(p.cells, 1);
      const auto run = [&](size_t first, size_t end) {
        lanes.run(
            first, end, *pool, [&](size_t step) { return p.steps[step].pieces; },
            [&](size_t step, size_t begin, size_t until) { p.run_piece(step, begin, until, memory); });
      };
      const size_t middle = p.steps.size() / 3;
      run(0, middle);
      run(middle, p.steps.size());
      ASSERT_EQ(memory, expected) << pool->threads() << " threads";
    }
  }
}

TEST(Lanes, NothingBeginsBehindAStepThatThrows) {
  ComputePool pool(3);
  Lanes lanes(2);
  for (size_t i = 0; i < 40; ++i) lanes.add(i % 2, std::vector<MemoryUse>{writes(0, 4)});
  std::vector<size_t> begun;
  const auto run = [&] {
    lanes.run(
        0, lanes.size(), pool, [](size_t) { return 1; },
        [&](size_t step, size_t, size_t) {
          begun.push_back(step);
          if (step == 17) throw std::runtime_error("seventeen");
        });
  };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_EQ(begun.size(), 18u);
  EXPECT_TRUE(std::ranges::is_sorted(begun));
}

}  // namespace tinygrad::engine
