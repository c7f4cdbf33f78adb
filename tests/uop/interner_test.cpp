#include <cmath>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "support/test_scale.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad {
namespace {

UOp var(const char* name) { return variable(name, 0, 100); }

TEST(Interner, EqualStructureIsTheSameNode) {
  const UOp a = var("a"), b = var("b");
  EXPECT_EQ((a + b * 2).get(), (var("a") + var("b") * 2).get());
  EXPECT_NE(a + b, b + a);
  EXPECT_NE(a + b, a * b);
  EXPECT_NE(cast(a, DType::int32), cast(a, DType::int64));
  EXPECT_NE(range(4, 0), range(4, 1));
  EXPECT_NE(range(4, 0), range(5, 0));
  EXPECT_EQ(a.with_src({}), a);
  EXPECT_EQ((a + b).with_src(UOps{b, a}), b + a);
}

TEST(Interner, ConstantsByTypeAndBits) {
  EXPECT_NE(constant(DType::float32, 0.0), constant(DType::float32, -0.0));
  EXPECT_EQ(constant(DType::float32, std::nan("1")), constant(DType::float32, -std::nan("2")));
  EXPECT_NE(bool_const(true), constant(DType::int32, 1));
  EXPECT_NE(constant(DType::int32, 1), constant(DType::int64, 1));
  EXPECT_NE(constant(DType::int32, 1), constant(DType::float32, 1));
  EXPECT_EQ(constant(DType::uint8, 256 + 7), constant(DType::uint8, 7));
  EXPECT_NE(UOp(Op::CONST, DType::float32, {}, ConstArg{Scalar::of(1.0f), "CPU"}), constant(DType::float32, 1));
}

TEST(Interner, NodesDieWithTheirLastOwner) {
  const size_t before = live_node_count();
  {
    UOp u = var("only here") + 12345;
    const UOp v = u * u;
    EXPECT_EQ(live_node_count(), before + 4);
    u = UOp();
    EXPECT_EQ(live_node_count(), before + 4);
  }
  EXPECT_EQ(live_node_count(), before);
}

TEST(Interner, ABufferKeepsItsResourceAlive) {
  struct Counted : Resource {
    explicit Counted(int& c) : count(c) { ++count; }
    ~Counted() override { --count; }
    int& count;
  };
  int alive = 0;
  {
    const UOp b = buffer(DType::float32, {.id = next_buffer_id(), .size = 4, .resource = IntrusivePtr<Resource>(new Counted(alive))});
    EXPECT_EQ(alive, 1);
    // The id alone is the identity: the second resource is let go at once.
    const auto& arg = b.arg_as<BufferArg>();
    EXPECT_EQ(buffer(DType::float32, {.id = arg.id, .size = 4, .resource = IntrusivePtr<Resource>(new Counted(alive))}), b);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Interner, ScalarByStructure) {
  const UOp v = var("v"), r = range(4, 0);
  const UOp buf = param(DType::float32, 16, {.slot = 0});
  EXPECT_TRUE((v * r + 3)->scalar);
  EXPECT_FALSE(buf->scalar);
  EXPECT_TRUE(load(index(buf, r))->scalar);
  EXPECT_FALSE(load(index(buf, r, 4))->scalar);
  EXPECT_TRUE(where(v < r, load(index(buf, r)), constant(DType::float32, 0))->scalar);
  EXPECT_FALSE((load(index(buf, r, 4)) + load(index(buf, r)))->scalar);
  EXPECT_FALSE(stack(UOps{v, r})->scalar);
  EXPECT_FALSE(expand(v, {3})->scalar);
}

/// A chain of `length` additions and products.
UOp chain(int length) {
  UOp u = var("start");
  for (int i = 0; i < length; ++i) u = i % 2 ? u * var("factor") : u + i;
  return u;
}

TEST(Interner, AMillionNodesWithoutRecursion) {
  const size_t before = live_node_count();
  {
    const UOp u = chain(1'000'000);
    EXPECT_GE(live_node_count(), before + 1'000'000);
    EXPECT_EQ(toposort(u).size(), live_node_count() - before);
    EXPECT_TRUE(reaches(u, var("start")));
    EXPECT_TRUE(content_key(u));
    EXPECT_LT(print_expr(u).size(), 100'000u);
    NodeMap<UOp> map;
    const UOp factor = var("factor"), other = var("other");
    map[factor] = other;
    const UOp changed = substitute(u, map);
    EXPECT_FALSE(reaches(changed, factor));
    EXPECT_EQ(print_graph(changed).find("factor"), std::string::npos);
  }
  EXPECT_EQ(live_node_count(), before);
}

/// Random expressions: the same for the same seed.
std::vector<UOp> random_graphs(uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::vector<UOp> out{var("a"), var("b"), var("c")};
  for (int i = 0; i < count; ++i) {
    const UOp &a = out[random() % out.size()], &b = out[random() % out.size()];
    switch (random() % 4) {
      case 0: out.push_back(a + b); break;
      case 1: out.push_back(a * b); break;
      case 2: out.push_back(max(a, b)); break;
      default: out.push_back(a + int64_t(random() % 100));
    }
  }
  return out;
}

TEST(Interner, EightThreadsMakeTheSameAndDifferentGraphs) {
  const size_t before = live_node_count();
  {
    constexpr int thread_count = 8;
    const int rounds = 5 * test::test_scale();
    std::vector<std::vector<UOp>> shared(thread_count);
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t)
      threads.emplace_back([&, t] {
        for (int round = 0; round < rounds; ++round) {
          shared[size_t(t)] = random_graphs(test::seed() + uint64_t(round), 500);  // everyone's; the last round's are dropped here
          const auto own = random_graphs(test::seed() + 1000 + uint64_t(t * rounds + round), 500);
          content_key(own.back());
          content_key(shared[size_t(t)].back());
        }
      });
    for (auto& t : threads) t.join();
    for (int t = 1; t < thread_count; ++t) EXPECT_EQ(shared[size_t(t)], shared[0]);
  }
  EXPECT_EQ(live_node_count(), before);
}

}  // namespace
}  // namespace tinygrad
