#include "base/intrusive.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tinygrad {
namespace {

struct Counted {
  explicit Counted(bool* dead) : dead_(dead) {}
  virtual ~Counted() { *dead_ = true; }
  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  int count() const { return count_; }

 private:
  mutable std::atomic<int> count_{0};
  bool* dead_;
};
struct Derived : Counted {
  using Counted::Counted;
};

TEST(IntrusivePtr, CountsReferences) {
  bool dead = false;
  {
    IntrusivePtr<Counted> a = make_intrusive<Counted>(&dead);
    EXPECT_EQ(a->count(), 1);
    IntrusivePtr<Counted> b = a;
    EXPECT_EQ(a->count(), 2);
    EXPECT_EQ(a, b);
    IntrusivePtr<Counted> c = std::move(b);
    EXPECT_EQ(c->count(), 2);
    EXPECT_EQ(b, nullptr);
    c = c.get() == a.get() ? a : nullptr;
    EXPECT_EQ(a->count(), 2);
    c = nullptr;
    EXPECT_EQ(a->count(), 1);
    EXPECT_FALSE(dead);
  }
  EXPECT_TRUE(dead);
}

TEST(IntrusivePtr, AdoptAndDetachMoveAReference) {
  bool dead = false;
  Counted* raw = make_intrusive<Counted>(&dead).detach();
  EXPECT_EQ(raw->count(), 1);
  { auto owner = IntrusivePtr<Counted>::adopt(raw); }
  EXPECT_TRUE(dead);
}

TEST(IntrusivePtr, ConvertsToABase) {
  bool dead = false;
  {
    IntrusivePtr<Counted> base = make_intrusive<Derived>(&dead);
    EXPECT_EQ(base->count(), 1);
  }
  EXPECT_TRUE(dead);
}

TEST(IntrusivePtr, ThreadsShareOneObject) {
  bool dead = false;
  {
    auto shared = make_intrusive<Counted>(&dead);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
      threads.emplace_back([shared] {
        for (int i = 0; i < 5000; i++) IntrusivePtr<Counted> copy = shared;
      });
    for (auto& t : threads) t.join();
    EXPECT_EQ(shared->count(), 1);
  }
  EXPECT_TRUE(dead);
}

}  // namespace
}  // namespace tinygrad
