#include "base/small_vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinygrad {
namespace {

using Ints = SmallVector<int, 4>;
using Strings = SmallVector<std::string, 2>;

std::string long_text(int i) { return "a string that does not fit inside its object, number " + std::to_string(i); }

TEST(SmallVector, StartsInsideAndSpills) {
  Ints v;
  EXPECT_TRUE(v.empty());
  for (int i = 0; i < 100; i++) v.push_back(i);
  ASSERT_EQ(v.size(), 100u);
  for (int i = 0; i < 100; i++) EXPECT_EQ(v[static_cast<size_t>(i)], i);
  EXPECT_EQ(v.front(), 0);
  EXPECT_EQ(v.back(), 99);
  EXPECT_EQ(*v.rbegin(), 99);
}

TEST(SmallVector, ConvertsFromAndToRanges) {
  std::vector<int> source{1, 2, 3, 4, 5, 6};
  Ints a(source), b(source.begin(), source.end()), c{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(a, b);
  EXPECT_EQ(a, c);
  std::span<const int> view = a;
  EXPECT_TRUE(std::ranges::equal(view, source));
  std::istringstream text("7 8 9");
  EXPECT_EQ(Ints(std::istream_iterator<int>(text), std::istream_iterator<int>()), (Ints{7, 8, 9}));
  EXPECT_EQ(Ints(3, 7), (Ints{7, 7, 7}));
}

TEST(SmallVector, CopiesAndMovesBothKindsOfStorage) {
  for (int count : {1, 2, 3, 40}) {
    Strings a;
    for (int i = 0; i < count; i++) a.push_back(long_text(i));
    Strings copy = a, other{"x", "y", "z"};
    EXPECT_EQ(copy, a);
    other = a;
    EXPECT_EQ(other, a);
    Strings moved = std::move(copy);
    EXPECT_EQ(moved, a);
    EXPECT_TRUE(copy.empty());
    copy.push_back("usable again");
    other = std::move(moved);
    EXPECT_EQ(other, a);
    other = *&other;
    EXPECT_EQ(other, a);
  }
}

TEST(SmallVector, HoldsMoveOnlyTypes) {
  SmallVector<std::unique_ptr<int>, 1> v;
  for (int i = 0; i < 5; i++) v.push_back(std::make_unique<int>(i));
  auto moved = std::move(v);
  EXPECT_EQ(*moved[4], 4);
  moved.erase(moved.begin() + 1);
  EXPECT_EQ(*moved[1], 2);
}

TEST(SmallVector, AnArgumentMayBeAnElement) {
  Strings v{long_text(0), long_text(1)};
  ASSERT_EQ(v.size(), v.capacity());
  v.push_back(v[0]);
  EXPECT_EQ(v[2], long_text(0));
  v.resize(30, v[1]);
  EXPECT_EQ(v[29], long_text(1));
  v.insert(v.begin(), v[1]);
  EXPECT_EQ(v[0], long_text(1));
}

TEST(SmallVector, ComparesByValueAndSortsLikeAVector) {
  EXPECT_LT((Ints{1, 2}), (Ints{1, 2, 0}));
  EXPECT_LT((Ints{1, 2, 9}), (Ints{1, 3}));
  EXPECT_NE((Ints{1}), (Ints{1, 1}));
  EXPECT_EQ(std::hash<Ints>{}(Ints{1, 2}), std::hash<Ints>{}(Ints{1, 2}));
  EXPECT_NE(hash_value(Ints{1, 2}), hash_value(Ints{2, 1}));
  EXPECT_NE(hash_value(Strings{"ab", "c"}), hash_value(Strings{"a", "bc"}));
}

TEST(SmallVector, DoesWhatStdVectorDoes) {
  std::mt19937 random(1);
  Strings ours;
  std::vector<std::string> theirs;
  for (int step = 0; step < 3000; step++) {
    auto at = [&] { return static_cast<std::ptrdiff_t>(theirs.empty() ? 0 : random() % theirs.size()); };
    switch (random() % 7) {
      case 0:
      case 1: ours.push_back(long_text(step)), theirs.push_back(long_text(step)); break;
      case 2: {
        auto i = at();
        ours.insert(ours.begin() + i, "new"), theirs.insert(theirs.begin() + i, "new");
        break;
      }
      case 3:
        if (!theirs.empty()) {
          auto i = at();
          ours.erase(ours.begin() + i), theirs.erase(theirs.begin() + i);
        }
        break;
      case 4: {
        auto i = at(), j = at();
        if (i > j) std::swap(i, j);
        ours.erase(ours.begin() + i, ours.begin() + j), theirs.erase(theirs.begin() + i, theirs.begin() + j);
        break;
      }
      case 5: {
        size_t size = random() % 12;
        ours.resize(size, "fill"), theirs.resize(size, "fill");
        break;
      }
      case 6: ours = Strings(ours); break;
    }
    ASSERT_TRUE(std::ranges::equal(ours, theirs)) << "seed 1, step " << step;
  }
}

struct ThrowsOnCopy {
  explicit ThrowsOnCopy(int v) : value(std::make_unique<int>(v)) {}
  ThrowsOnCopy(const ThrowsOnCopy& o) : value(std::make_unique<int>(*o.value)) {
    if (*value == 3) throw std::runtime_error("copy");
  }
  ThrowsOnCopy(ThrowsOnCopy&&) noexcept = default;
  ThrowsOnCopy& operator=(ThrowsOnCopy&&) noexcept = default;
  std::unique_ptr<int> value;
};

TEST(SmallVector, AThrowingElementLeavesItIntact) {
  SmallVector<ThrowsOnCopy, 2> v;
  v.emplace_back(1), v.emplace_back(2);
  ThrowsOnCopy bad(3);
  EXPECT_THROW(v.push_back(bad), std::runtime_error);
  ASSERT_EQ(v.size(), 2u);
  EXPECT_EQ(*v[1].value, 2);
  v.emplace_back(3);
  EXPECT_THROW((SmallVector<ThrowsOnCopy, 2>(v)), std::runtime_error);
  SmallVector<ThrowsOnCopy, 2> other;
  other.emplace_back(9);
  EXPECT_THROW(other = v, std::runtime_error);
  EXPECT_EQ(*other[0].value, 9);
}

}  // namespace
}  // namespace tinygrad
