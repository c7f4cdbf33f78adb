#include <tinygrad/symbol.h>

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tinygrad {
namespace {

TEST(Symbol, EqualTextIsOneObject) {
  std::string a = "axis";
  EXPECT_EQ(Symbol(a), Symbol("axis"));
  EXPECT_EQ(Symbol(a).str().data(), Symbol("axis").str().data());
  EXPECT_NE(Symbol("axis"), Symbol("axes"));
  EXPECT_EQ(sizeof(Symbol), 8u);
}

TEST(Symbol, EmptyIsTheDefault) {
  EXPECT_EQ(Symbol(), Symbol(""));
  EXPECT_TRUE(Symbol().empty());
  EXPECT_EQ(Symbol().str(), "");
  EXPECT_FALSE(Symbol("x").empty());
}

TEST(Symbol, OrderAndHashAreThoseOfTheText) {
  Symbol z("zebra"), a("ant");
  EXPECT_LT(a, z);
  EXPECT_LT(Symbol(), a);
  EXPECT_EQ((a <=> Symbol("ant")), std::strong_ordering::equal);
  EXPECT_EQ((std::set<Symbol>{z, a, Symbol("ant")}.size()), 2u);
  EXPECT_EQ(a.hash(), Symbol(std::string("ant")).hash());
}

TEST(Symbol, KeepsAnyBytes) {
  std::string text("nul\0inside", 10);
  EXPECT_EQ(Symbol(text).str(), text);
  EXPECT_NE(Symbol(text), Symbol("nul"));
}

TEST(Symbol, ThreadsInternTheSameTexts) {
  constexpr int kTexts = 500;
  std::array<std::vector<Symbol>, 8> seen;
  std::vector<std::thread> threads;
  for (auto& mine : seen)
    threads.emplace_back([&mine] {
      for (int i = 0; i < kTexts; i++) mine.push_back(Symbol("shared symbol " + std::to_string(i)));
    });
  for (auto& t : threads) t.join();
  for (auto& mine : seen) EXPECT_EQ(mine, seen[0]);
}

}  // namespace
}  // namespace tinygrad
