#include "codegen/choose/cache_sets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace tinygrad::codegen {
namespace {

constexpr CacheShape l1{.bytes = 32 << 10, .ways = 8}, l2{.bytes = 512 << 10, .ways = 8};

double factor(const CacheShape& cache, std::vector<AlongAxis> axes) { return crowding(cache, axes); }

TEST(CacheSets, WhatIsContiguousTakesItsBytes) {
  EXPECT_EQ(factor(l1, {}), 1);
  EXPECT_EQ(factor(l1, {{4, 1000}}), 1);
  EXPECT_EQ(factor(l1, {{4, 1 << 20}}), 1);
  EXPECT_EQ(factor(l1, {{4, 64}, {256, 128}}), 1);
}

TEST(CacheSets, RowsThatAreAPowerOfTwoApartFallIntoFewSets) {
  // 256 bytes of each row, 16 KiB apart: in the first cache all rows fall to the same four sets, in the second one to four times as many.
  EXPECT_EQ(factor(l1, {{4, 64}, {16384, 4096}}), 16);
  EXPECT_EQ(factor(l2, {{4, 64}, {16384, 4096}}), 64);
  // As few rows as there are ways do not evict each other.
  EXPECT_EQ(factor(l1, {{4, 64}, {16384, 4}}), 1);
}

TEST(CacheSets, ALineMoreAndRowsSpreadOverAll) {
  EXPECT_EQ(factor(l1, {{4, 64}, {16384 + 64, 4096}}), 1);
  EXPECT_EQ(factor(l2, {{4, 64}, {16384 + 64, 4096}}), 1);
}

TEST(CacheSets, AColumnTakesALineForEachElement) {
  EXPECT_EQ(factor(l1, {{4096, 64}}), 64);
  EXPECT_EQ(factor(l1, {{4096, 4}}), 1);
}

/// Lines that a cache with the least recently used line as its victim loses, of those that are used twice in the same order.
double evicted(const CacheShape& cache, const std::vector<int64_t>& lines) {
  const int64_t sets = cache.bytes / cache.ways / cache.line_bytes;
  std::map<int64_t, std::vector<int64_t>> in;
  int64_t misses = 0;
  for (int round = 0; round < 2; ++round)
    for (const int64_t line : lines) {
      std::vector<int64_t>& set = in[line % sets];
      const auto at = std::ranges::find(set, line);
      if (at != set.end())
        set.erase(at);
      else
        misses += round;
      set.push_back(line);
      if (int(set.size()) > cache.ways) set.erase(set.begin());
    }
  return double(misses) / double(lines.size());
}

TEST(CacheSets, SaysWhatASimulatedCacheDoes) {
  std::mt19937 random(20261128);
  int agree = 0, checked = 0;
  for (int i = 0; i < 300; ++i) {
    const int64_t run = 16 << random() % 5, rows = 2 << random() % 10,
                  apart = run * 4 + (random() % 3 ? 4096 * (1 + int64_t(random() % 4)) : 64 * int64_t(random() % 40));
    const int64_t stride = apart - apart % 64;
    std::vector<int64_t> lines;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t b = 0; b < run * 4; b += 64) lines.push_back((r * stride + b) / 64);
    std::ranges::sort(lines);
    lines.erase(std::ranges::unique(lines).begin(), lines.end());
    const double bytes = double(lines.size()) * 64, lost = evicted(l1, lines);
    if (lost > 0.02 && lost < 0.98) continue;  // in between either is right
    const double effective = bytes * factor(l1, {{4, double(run)}, {double(stride), double(rows)}});
    ++checked;
    agree += (effective > double(l1.bytes)) == (lost > 0.5);
  }
  EXPECT_GT(checked, 150);
  EXPECT_GE(agree, checked * 95 / 100) << "of " << checked;
}

}  // namespace
}  // namespace tinygrad::codegen
