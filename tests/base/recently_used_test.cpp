#include "base/recently_used.h"

#include <gtest/gtest.h>

#include <memory>

namespace tinygrad {
namespace {

TEST(RecentlyUsed, DropsTheQuarterThatWasNotAskedForForTheLongestTime) {
  RecentlyUsed<int, int> cache(8);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(cache.add(i, 10 * i).empty());
  ASSERT_NE(cache.find(0), nullptr);
  EXPECT_EQ(*cache.find(0), 0);
  auto dropped = cache.add(8, 80);
  ASSERT_EQ(dropped.size(), 2U);
  EXPECT_EQ(dropped[0].key() + dropped[1].key(), 1 + 2);
  EXPECT_EQ(cache.size(), 7U);
  for (const int kept : {0, 3, 4, 5, 6, 7, 8}) ASSERT_NE(cache.find(kept), nullptr) << kept;
  EXPECT_EQ(cache.find(1), nullptr);
}

TEST(RecentlyUsed, AddingAgainReplacesAndDropsNothing) {
  RecentlyUsed<int, int> cache(1);
  cache.add(1, 10);
  EXPECT_TRUE(cache.add(1, 11).empty());
  EXPECT_EQ(*cache.find(1), 11);
  EXPECT_EQ(cache.add(2, 20).size(), 1U);
  EXPECT_EQ(cache.find(1), nullptr);
  EXPECT_EQ(*cache.find(2), 20);
}

TEST(RecentlyUsed, WhatIsDroppedLivesUntilTheCallerLetsGoOfIt) {
  RecentlyUsed<int, std::shared_ptr<int>> cache(2);
  const auto first = std::make_shared<int>(1);
  cache.add(1, first);
  cache.add(2, nullptr);
  {
    const auto dropped = cache.add(3, nullptr);
    EXPECT_EQ(first.use_count(), 2);
  }
  EXPECT_EQ(first.use_count(), 1);
  cache.erase(2);
  cache.erase_if([](const std::shared_ptr<int>& value) { return value == nullptr; });
  EXPECT_EQ(cache.size(), 0U);
}

}  // namespace
}  // namespace tinygrad
