// Which parts of values are on which devices, and what collectives leave.
#include "shape/sharding.h"

#include <gtest/gtest.h>
#include <tinygrad/errors.h>

#include "shape/device.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

std::vector<size_t> parts(const Devices& d) {
  std::vector<size_t> out;
  for (size_t s = 0; s < d.size(); ++s) out.push_back(d.part_of(s));
  return out;
}

using Parts = std::vector<size_t>;

TEST(Devices, PartsOfShards) {
  const Devices four = Devices::parse("CPU,CPU,CPU:1,CPU:1");
  EXPECT_EQ(parts(four), (Parts{0, 1, 2, 3}));
  const Devices copies = four.with_values([](size_t) { return 7; });
  EXPECT_EQ(parts(copies), (Parts{0, 0, 1, 1}));
  EXPECT_EQ(copies.first_shard(1), 2u);
  EXPECT_EQ(copies.value_of(3), 0u);
  EXPECT_EQ(copies.apart(), four);
  const Devices odd = four.with_values([](size_t s) { return s % 2; });
  EXPECT_EQ(parts(odd), (Parts{0, 1, 2, 3}));
  EXPECT_EQ(odd.value_of(3), 1u);
  EXPECT_EQ(Devices::common_values(copies, odd), odd);
  EXPECT_NE(odd, four) << "although they have the same parts";
  EXPECT_TRUE(odd.has_same_shards(four));
  EXPECT_EQ(Devices::parse("CPU"), Devices("CPU"));
  EXPECT_EQ(to_string(Devices::parse(" CPU , CPU:1")), "CPU, CPU:1");
  EXPECT_THROW(Devices::parse("CPU,,CPU:1"), ValueError);
}

TEST(Devices, LinesOfCollectives) {
  const CollectiveArg rows{.kind = Collective::allreduce, .along = {{2, 3}}}, columns{.kind = Collective::allreduce, .along = {{3, 1}}},
      all{.kind = Collective::allreduce, .along = {{3, 1}, {2, 3}}};
  EXPECT_EQ(rows.line(4), (Parts{1, 4}));
  EXPECT_EQ(columns.line(4), (Parts{3, 4, 5}));
  EXPECT_EQ(columns.at(4), 1);
  EXPECT_EQ(all.count(), 6);
  EXPECT_EQ(all.line(2), (Parts{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(all.at(4), 3);
}

TEST(Devices, OfCollectives) {
  const Devices four = Devices::parse("CPU,CPU,CPU:1,CPU:1");
  const UOp x = param(DType::float32, 8, {.device = four});
  const auto after = [&](Collective kind, MeshAxis along) {
    return parts(devices_of(UOp(Op::COLLECTIVE, DType::float32, {x}, CollectiveArg{.kind = kind, .along = {along}})));
  };
  EXPECT_EQ(after(Collective::allreduce, {4, 1}), (Parts{0, 0, 1, 1}));
  EXPECT_EQ(after(Collective::allreduce, {2, 2}), (Parts{0, 1, 2, 3}));
  EXPECT_EQ(after(Collective::allgather, {2, 1}), (Parts{0, 0, 1, 1}));
  EXPECT_EQ(after(Collective::reducescatter, {4, 1}), (Parts{0, 1, 2, 3}));
}

ShardedAxes axes(std::initializer_list<ShardedAxis> all) { return ShardedAxes(all.begin(), all.end()); }

UOp value(std::initializer_list<int64_t> shape) {
  UOps sizes;
  for (int64_t n : shape) sizes.push_back(index_const(n));
  return UOp(Op::PARAM, DType::float32, sizes, ParamArg{.device = Devices::parse("CPU,CPU:1,CPU:2,CPU:3")});
}

ShardedAxes result(const UOp& u, const ShardedAxes& x) {
  std::vector<ShardedAxes> sources(u.src_count());
  sources[0] = x;
  return spread(u, sources).result;
}

TEST(Spread, Reshapes) {
  const ShardedAxis first{0, {2, 1}}, second{1, {2, 1}};
  EXPECT_EQ(result(reshape(value({4, 6}), {24}), axes({first})), axes({first}));
  EXPECT_EQ(result(reshape(value({4, 6}), {24}), axes({second})), axes({}));
  EXPECT_EQ(result(reshape(value({24}), {4, 6}), axes({first})), axes({first}));
  EXPECT_EQ(result(reshape(value({24}), {3, 8}), axes({first})), axes({}));
  EXPECT_EQ(result(reshape(value({1, 4, 6}), {1, 2, 2, 6}), axes({second})), axes({second}));
  EXPECT_EQ(result(reshape(value({5, 6}), {5, 2, 3}), axes({first})), axes({first})) << "uneven, but the same axis";
  EXPECT_EQ(result(reshape(value({5, 6}), {30}), axes({first})), axes({}));
  EXPECT_EQ(result(reshape(value({4, 6}), {4, 6, 1}), axes({second})), axes({second}));
}

TEST(Spread, Reductions) {
  const ShardedAxis first{0, {2, 1}}, third{2, {2, 2}};
  const UOp sum = reduce(Op::ADD, value({4, 5, 6}), {0, 1});
  std::vector<ShardedAxes> sources{axes({first, third})};
  const Spread how = spread(sum, sources);
  EXPECT_EQ(how.result, axes({{0, {2, 2}}}));
  ASSERT_EQ(how.reduced.size(), 1u);
  EXPECT_EQ(how.reduced[0], (MeshAxis{2, 1}));
}

TEST(Spread, WhatHasMostElementsStays) {
  const UOp large = value({4, 4}), small = expand(value({1, 4}), {4, 4});
  const ShardedAxis rows{0, {2, 1}}, columns{1, {2, 1}}, other{1, {2, 2}};
  std::vector<ShardedAxes> sources{axes({columns}), axes({rows})};
  EXPECT_EQ(spread(small + large, sources).result, axes({rows}));
  EXPECT_EQ(spread(large + small, sources).result, axes({columns}));
  sources = {axes({rows}), axes({other})};
  EXPECT_EQ(spread(large + small, sources).result, axes({rows, other})) << "other directions of the mesh do not meet";
}

TEST(Spread, PaddedShards) {
  const Shape shape{7, 3};
  EXPECT_EQ(to_string(shard_shape(shape, axes({{0, {2, 1}}, {0, {2, 2}}}))), "(2, 3)");
  EXPECT_EQ(size_before_cut(shape, axes({{0, {2, 1}}, {0, {2, 2}}}), 1), 4);
}

}  // namespace
}  // namespace tinygrad
