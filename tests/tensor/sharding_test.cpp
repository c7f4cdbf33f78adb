// Tensors on several devices: each program beside the same one on one device.
#include <algorithm>
#include <chrono>
#include <random>
#include <stop_token>
#include <thread>

#include <gtest/gtest.h>

#include <tinygrad/comm.h>
#include <tinygrad/context.h>
#include <tinygrad/counters.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>
#include <tinygrad/jit.h>
#include <tinygrad/mesh.h>
#include <tinygrad/nn.h>
#include <tinygrad/optim.h>
#include <tinygrad/tensor.h>

#include "support/message_of.h"
#include "support/test_scale.h"

namespace tinygrad {

namespace {

using Names = std::vector<std::string>;
/// Devices of this process, or one of each rank where there are several: the tests are run by mpirun, too (cmake/TgTests.cmake).
Names on(const std::vector<int>& numbers) {
  Names out;
  for (const int n : numbers) out.push_back(canonical_device(world_size() > 1 ? "CPU@" + std::to_string(n) : "CPU:" + std::to_string(n)));
  return out;
}
const Names two = on({0, 1}), three = on({1, 0, 2}), four = on({0, 1, 2, 3}), doubled = on({0, 0, 1, 1});

/// 0, 1, 2, ... of small integers that sums of are exact.
Tensor numbers(const Sizes& shape, int64_t modulus = 11) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return ((Tensor::arange(n, {.dtype = DType::int32}) * 7 + 3) % modulus - modulus / 2)
      .reshape(Extents(shape))
      .cast(DType::float32)
      .realize();
}

std::vector<float> values(const Tensor& t) { return t.cast(DType::float32).flatten().tolist<float>(); }

void expect_same(const Tensor& sharded, const Tensor& plain) {
  ASSERT_EQ(sharded.shape(), plain.shape());
  EXPECT_EQ(values(sharded), values(plain)) << sharded.placement();
}

}  // namespace

TEST(Sharding, ShowsWhoHasWhat) {
  const Tensor x = numbers({6, 4});
  EXPECT_EQ(x.shard(two, 0).placement(), "(6, 4) dtypes.float32 on 2 shards, axis 0 over 2\n  CPU    [0:3, :]\n  CPU:1  [3:6, :]\n");
  EXPECT_EQ(x.shard(two).device(), "CPU,CPU:1");
  EXPECT_EQ(x.shard(two).devices(), two);
  EXPECT_EQ(x.device(), "CPU");
  EXPECT_EQ(x.shard({"CPU:1"}, 0).device(), "CPU:1");
  const Mesh mesh(four, {{"data", 2}, {"model", 2}});
  EXPECT_EQ(
      x.shard(mesh, {{"data", 0}, {"model", 1}}).placement(),
      "(6, 4) dtypes.float32 on 4 shards, axis 0 over 2, axis 1 over 2\n  CPU    [0:3, 0:2]\n  CPU:1  [0:3, 2:4]\n  CPU:2  [3:6, 0:2]\n"
      "  CPU:3  [3:6, 2:4]\n");
}

TEST(Sharding, KeepsValues) {
  for (const Names& devices : {two, three, four, doubled})
    for (const Sizes& shape : {Sizes{6, 4}, Sizes{7, 5}, Sizes{1, 3}, Sizes{8}}) {
      const Tensor x = numbers(shape);
      for (int axis = -1; axis < int(shape.size()); ++axis) {
        const std::optional<int> cut = axis < 0 ? std::nullopt : std::optional(axis);
        expect_same(x.shard(devices, cut), x);
        expect_same(x.shard(devices, cut).realize(), x);
        expect_same(x.shard(devices, cut).to("CPU:1"), x);
        expect_same(x.shard(devices, cut).contiguous().realize() + 1, x + 1);
      }
    }
}

TEST(Sharding, ReducesOverShardedAxes) {
  for (const Names& devices : {two, three, four, doubled})
    for (int cut : {0, 1})
      for (int axis : {0, 1}) {
        const Tensor x = numbers({7, 6}), s = x.shard(devices, cut);
        expect_same(s.sum({axis}), x.sum({axis}));
        expect_same(s.max({axis}), x.max({axis}));
        expect_same((s - 20).max({axis}), (x - 20).max({axis}));
        expect_same(s.sum(), x.sum());
        expect_same(s.mean({axis}), x.mean({axis}));
        expect_same((s > 0).all({axis}), (x > 0).all({axis}));
        expect_same(s.argmax(axis), x.argmax(axis));
      }
}

TEST(Sharding, MultipliesMatrices) {
  const Tensor x = numbers({6, 9}), w = numbers({9, 5}, 7), expected = x.matmul(w);
  for (const Names& devices : {two, three, doubled})
    for (int a = -1; a < 2; ++a)
      for (int b = -1; b < 2; ++b) {
        const auto cut = [](int axis) { return axis < 0 ? std::nullopt : std::optional(axis); };
        expect_same(x.shard(devices, cut(a)).matmul(w.shard(devices, cut(b))), expected);
        expect_same(x.shard(devices, cut(a)).matmul(w), expected);  // a plain tensor is copied to all
      }
}

TEST(Sharding, HasGradients) {
  const Tensor x = numbers({6, 5}), w = numbers({5, 4}, 7), y = numbers({6, 4}, 5);
  const auto gradients = [&](const Tensor& a, const Tensor& b) {
    const Tensor loss = ((a.matmul(b) - y).relu() * 2).sum();
    return loss.gradient({a, b});
  };
  const auto expected = gradients(x, w);
  for (const Names& devices : {two, three, doubled})
    for (int a = -1; a < 2; ++a)
      for (int b = -1; b < 2; ++b) {
        const auto cut = [](int axis) { return axis < 0 ? std::nullopt : std::optional(axis); };
        const Tensor sx = x.shard(devices, cut(a)), sw = w.shard(devices, cut(b));
        const auto got = gradients(sx, sw);
        expect_same(got[0], expected[0]);
        expect_same(got[1], expected[1]);
        const auto direct = ((sx.matmul(sw) - y).relu() * 2).sum().gradient({x, w});
        expect_same(direct[0], expected[0]);
        expect_same(direct[1], expected[1]);
      }
}

TEST(Sharding, AssignsToParts) {
  for (const Names& devices : {two, three, doubled})
    for (int cut : {0, 1}) {
      Tensor x = numbers({7, 6}).clone(), s = numbers({7, 6}).shard(devices, cut).clone();
      s.realize();
      for (Tensor* t : {&x, &s}) {
        (*t)[Slice{1, 3}].assign(numbers({2, 6}, 5));
        (*t)[{Slice{}, Slice{2, 6, 3}}].assign(numbers({7, 2}, 13));
        (*t)[2].assign((*t)[3] + 1);
        *t += 1;
        (*t).flip({0})[0].assign(numbers({6}, 3));
      }
      expect_same(s, x);
      expect_same(s.realize(), x);
    }
}

TEST(Sharding, ConstantsAndWhatHasNoElements) {
  for (const Names& devices : {two, three, doubled})
    for (int axis = -1; axis < 2; ++axis) {
      const std::optional<int> cut = axis < 0 ? std::nullopt : std::optional(axis);
      const Tensor ones = Tensor::ones({6, 4}).shard(devices, cut);
      expect_same(ones.sum(), Tensor::ones({6, 4}).sum());
      expect_same((ones * 0 + 2).sum({0}), Tensor::full({4}, 12.0f));
      expect_same(ones.shard(devices, 1).flip({0}).max({1}), Tensor::ones({6}));
      expect_same(ones.to("CPU:1").sum({1}), Tensor::full({6}, 4.0f));
      for (const Sizes& shape : {Sizes{0, 3}, Sizes{3, 0}}) {
        const Tensor none = Tensor::zeros(Extents(shape)).contiguous().realize(), sharded = none.shard(devices, cut);
        expect_same(sharded + 1, none + 1);
        expect_same(sharded.sum(), none.sum());
        expect_same(sharded.sum({0}), none.sum({0}));
        expect_same(sharded.realize().reshape({0}), none.reshape({0}));
      }
    }
}

TEST(Sharding, MovesWhatABroadcastShowsOnce) {
  const Tensor x = numbers({64, 32}).shard(two, 0).realize(), w = numbers({32, 16}, 7).shard(two, 0).realize();
  const uint64_t before = GlobalCounters::global_mem;
  const Tensor product = x.matmul(w).realize();
  // Factors and product once each, and w on each device; not a copy of it for each row.
  EXPECT_LT(GlobalCounters::global_mem - before, 4u * 4 * (64 * 32 + 4 * 32 * 16 + 64 * 16));
  expect_same(product, numbers({64, 32}).matmul(numbers({32, 16}, 7)));
}

TEST(Sharding, RefusesWhatCannotBe) {
  const Tensor x = numbers({4, 4});
  EXPECT_THROW(x.shard({}, 0), ValueError);
  EXPECT_THROW(x.shard(two, 2), ShapeError);
  EXPECT_THROW(x.shard({"CPU", "DISK:/tmp/none"}, 0), DeviceError);
  EXPECT_THROW(Mesh(four, {{"a", 2}, {"b", 3}}), ValueError);
  EXPECT_THROW(x.shard(Mesh(four, {{"a", 2}, {"b", 2}}), {{"c", 0}}), ValueError);
  EXPECT_THROW((x.shard(two, 0) + x.shard(three, 0)), DeviceError);
  EXPECT_THROW((x.shard({"CPU:1", "CPU:2"}, 0) + x), DeviceError);
}

TEST(Sharding, DrawsTheSameNumbers) {
  for (const Names& devices : {on({0}), two, on({0, 0, 1})}) {
    std::string device;
    for (const std::string& d : devices) device += (device.empty() ? "" : ",") + d;
    Tensor::manual_seed(5);
    const Tensor a = Tensor::rand({7, 3}, {.device = device}), b = Tensor::randn({4}, {.device = device}), c = a.dropout(0.5);
    Tensor::manual_seed(5);
    const Tensor pa = Tensor::rand({7, 3}), pb = Tensor::randn({4}), pc = pa.dropout(0.5);
    expect_same(a, pa);
    expect_same(b, pb);
    expect_same(c, pc);
  }
}

TEST(Sharding, JittedCallsWithMemoryThatMoves) {
  // Which step waits for which depends on where memory is, and the arguments are other memory in each call.
  const auto step = [](Tensor a, Tensor b) {
    const Tensor c = (a.matmul(b) + b.sum(0, {.keepdim = true})).realize();
    a.assign((a + c) % 17).realize();
    return Tensor(b.T().matmul(c) % 19 + a);
  };
  for (const Names& devices : {two, three, doubled}) {
    auto jitted = jit(step);
    std::mt19937 dice(7);
    std::vector<Tensor> plain, sharded;
    for (int64_t i = 0; i < 4; ++i) {
      plain.push_back(numbers({12, 12}, 3 + 2 * i).clone().realize());
      sharded.push_back(plain.back().shard(devices, 0).realize());
    }
    for (int call = 0; call < 40; ++call) {
      SCOPED_TRACE(call);
      const size_t a = dice() % 4, b = (a + 1 + dice() % 3) % 4;
      const Tensor expected = step(plain[a], plain[b]).realize(), got = jitted(sharded[a], sharded[b]);
      expect_same(got, expected);
      for (size_t i = 0; i < 4; ++i) expect_same(sharded[i], plain[i]);
      if (call % 5 == 0) {
        plain[b] = expected;
        sharded[b] = got;
      }
      if (HasFailure()) return;
    }
  }
}

TEST(Sharding, AssignedValuesAreDividedAsTheTensorWas) {
  Tensor lazy = numbers({4}).shard(two, 0), computed = numbers({4}).shard(two, 0).realize();
  for (Tensor* t : {&lazy, &computed}) {
    t->assign(numbers({4}, 5)).realize();
    EXPECT_NE(t->placement().find("axis 0 over 2"), std::string::npos) << t->placement();
    EXPECT_EQ(values(*t), values(numbers({4}, 5)));
  }
}

TEST(Sharding, GradientsOfWhatIsWrittenIntoParts) {
  struct Written {
    Slice rows, columns;
  };
  for (const auto& [rows, columns] : {Written{{.start = 0, .stop = 2}, {}}, {{.start = 1, .stop = 5}, {.start = 1}}, {{}, {.stop = 2}}}) {
    std::vector<std::vector<float>> got;
    for (const bool is_divided : {false, true}) {
      const auto put = [&](const Tensor& t) { return is_divided ? t.shard(two, 0) : t; };
      Tensor x = put(Tensor::arange(18).reshape({6, 3}).cast(DType::float32) / 8).clone().realize();
      const Tensor part = x[{rows, columns}],
                   y = put((Tensor::arange(part.numel()).reshape(part.shape()) + 1).cast(DType::float32) / 4).realize();
      x[{rows, columns}].assign(y * y);
      x.realize();
      const Tensor once = (x.tanh() * x).sum();
      got.push_back(values(once.gradient({y})[0]));
      x[{rows, columns}].assign(x[{rows, columns}] + y);  // once more, of what was written
      x.realize();
      got.push_back(values((x.tanh() * x).sum().gradient({y})[0]));
    }
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < got[i].size(); ++j) EXPECT_NEAR(got[i][j], got[i + 2][j], 1e-5f) << i << " " << j;
  }
}

TEST(Sharding, CanBeCancelled) {
  const Tensor w = numbers({256, 256}, 3).shard(two, 0).realize(), kept = (w + 1).realize();
  const auto chain = [&](int links) {
    Tensor x = w;
    for (int i = 0; i < links; ++i) x = x.matmul(w) % 5;
    return x;
  };
  std::stop_source source;
  const Tensor long_one = chain(150);
  {
    const Context guard{{.cancel = source.get_token()}};
    const std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      source.request_stop();
    });
    EXPECT_THROW(long_one.realize(), Cancelled);
  }
  expect_same(kept, numbers({256, 256}, 3) + 1);
  EXPECT_EQ(chain(2).shape(), w.shape());
  chain(2).realize();
}

namespace {

/// A program that is drawn step by step, on one device and on several.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {
    static const Names choices[] = {two, three, four, doubled, on({0, 0, 0}), on({1, 1, 0, 2, 2, 0})};
    devices_ = choices[below(6)];
  }

  void run() {
    plain_ = numbers(shape());
    sharded_ = divided(plain_);
    const int steps = 2 + below(7);
    for (int i = 0; i < steps; ++i) step();
    expect_same(sharded_, plain_);
  }
  const std::string& text() const { return text_; }

 private:
  int below(int n) { return int(random_() % uint64_t(n)); }
  bool once_in(int n) { return below(n) == 0; }
  Sizes shape() {
    Sizes out;
    const int rank = 1 + below(3);
    for (int i = 0; i < rank; ++i) out.push_back(1 + below(7));
    return out;
  }
  /// Divided in a way that is drawn.
  Tensor divided(const Tensor& x) {
    const int rank = x.ndim();
    if (devices_.size() % 2 == 0 && devices_.size() > 2 && once_in(2)) {
      const Mesh mesh(devices_, {{"a", int(devices_.size()) / 2}, {"b", 2}});
      std::vector<MeshCut> cuts;
      if (rank > 0 && !once_in(4)) cuts.push_back({"a", below(rank), once_in(3)});
      if (rank > 0 && !once_in(4)) cuts.push_back({"b", below(rank), once_in(3)});
      text_ += " shard(mesh";
      for (const MeshCut& c : cuts) text_ += " " + c.direction + std::to_string(c.axis) + (c.is_gathered ? "g" : "");
      text_ += ")";
      return x.shard(mesh, cuts);
    }
    const std::optional<int> axis = rank == 0 || once_in(5) ? std::nullopt : std::optional(below(rank));
    text_ += " shard(" + std::to_string(devices_.size()) + " axis " + (axis ? std::to_string(*axis) : "none") + ")";
    if (axis && once_in(3)) {
      text_ += "g";
      return x.shard(Mesh(devices_), {{"shards", *axis, true}});
    }
    return x.shard(devices_, axis);
  }

  /// x[..., slice, ...]
  static Tensor part(const Tensor& x, int axis, const Slice& slice) {
    return axis == 0 ? x[slice] : axis == 1 ? x[{Slice{}, slice}] : x[{Slice{}, Slice{}, slice}];
  }

  template <class F>
  void apply(const char* name, F&& f) {
    text_ += std::string(" ") + name;
    sharded_ = f(sharded_);
    plain_ = f(plain_);
  }

  void step() {
    const int rank = plain_.ndim();
    const Sizes shape = plain_.shape();
    const auto n = plain_.numel();
    const int axis = rank ? below(rank) : 0;
    switch (below(22)) {
      case 0: return apply("+1", [](const Tensor& x) { return x + 1; });
      case 1: return apply("relu", [](const Tensor& x) { return x.relu() - 1; });
      case 2:
      case 3: {
        const Tensor other = numbers(shape, 5), placed = once_in(3) ? other : divided(other);
        text_ += " *other";
        sharded_ = (sharded_ * placed).clamp(-9, 9);
        plain_ = (plain_ * other).clamp(-9, 9);
        return;
      }
      case 4:
        if (rank) apply("sum", [&](const Tensor& x) { return x.sum({axis}, {.keepdim = n % 2 == 0}) % 7; });
        return;
      case 5:
        if (rank) apply("max", [&](const Tensor& x) { return x.max({axis}, {.keepdim = true}) + x; });
        return;
      case 6:
      case 7: {
        Sizes to;
        int64_t left = n;
        for (int i = 0; i < 3 && left > 1; ++i) {
          std::vector<int64_t> factors;
          for (int64_t f = 1; f <= left; ++f)
            if (left % f == 0) factors.push_back(f);
          to.push_back(factors[size_t(below(int(factors.size())))]);
          left /= to.back();
        }
        to.push_back(left);
        return apply("reshape", [&](const Tensor& x) { return x.reshape(Extents(to)); });
      }
      case 8: {
        std::vector<int> order(static_cast<size_t>(rank));
        for (int i = 0; i < rank; ++i) order[size_t(i)] = i;
        std::shuffle(order.begin(), order.end(), random_);
        return apply("permute", [&](const Tensor& x) { return x.permute(order); });
      }
      case 9:
        if (rank) apply("flip", [&](const Tensor& x) { return x.flip({axis}); });
        return;
      case 10:
        if (rank && shape[size_t(axis)] > 1) {
          const int64_t begin = below(int(shape[size_t(axis)]) - 1);
          apply("slice", [&](const Tensor& x) { return part(x, axis, Slice{begin, shape[size_t(axis)], 1 + n % 2}); });
        }
        return;
      case 11:
        if (rank && n < 500) {
          ExtentPairs pads(size_t(rank), {0, 0});
          pads[size_t(axis)] = {below(3), below(3)};
          apply("pad", [&](const Tensor& x) { return x.pad(pads, 2); });
        }
        return;
      case 12:
        if (n < 300) apply("stack", [&](const Tensor& x) { return Tensor::stack({x, x + 1}, axis); });
        return;
      case 13:
        if (rank && n < 300) apply("cat", [&](const Tensor& x) { return Tensor::cat({x, x * 2}, axis); });
        return;
      case 14:
        if (rank) apply("cumsum", [&](const Tensor& x) { return x.cumsum(axis) % 9; });
        return;
      case 15:
        if (rank == 2) {
          const Tensor other = numbers({shape[1], 3}, 5), placed = once_in(3) ? other : divided(other);
          text_ += " matmul";
          sharded_ = sharded_.matmul(placed) % 13;
          plain_ = plain_.matmul(other) % 13;
        }
        return;
      case 16: return apply("contiguous", [](const Tensor& x) { return x.contiguous(); });
      case 17:
        text_ += " realize";
        sharded_.realize();
        plain_.realize();
        return;
      case 18: sharded_ = divided(sharded_); return;
      case 19:
        if (rank && shape[size_t(axis)] > 1) {
          text_ += " assign";
          const int64_t begin = below(int(shape[size_t(axis)]) - 1);
          sharded_ = sharded_.clone();
          plain_ = plain_.clone();
          if (once_in(2)) sharded_.realize();
          for (Tensor* t : {&sharded_, &plain_}) {
            Tensor view = part(*t, axis, Slice{begin, begin + 1});
            view.assign(view * 2 + 1);
          }
        }
        return;
      case 20: return apply("argmax", [&](const Tensor& x) { return rank ? x + x.argmax(axis, {.keepdim = true}) : x; });
      default: return apply("where", [](const Tensor& x) { return (x > 0).where(x - 1, x + 3); });
    }
  }

  std::mt19937_64 random_;
  Names devices_;
  Tensor plain_, sharded_;
  std::string text_;
};

}  // namespace

TEST(Sharding, RandomPrograms) {
  const int count = 150 * test::test_scale();
  for (int i = 0; i < count; ++i) {
    RandomProgram p(test::seed() + uint64_t(i));
    try {
      p.run();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    if (HasFailure()) FAIL() << "seed " << test::seed() + uint64_t(i) << ":" << p.text();
  }
}

}  // namespace tinygrad
