// The DataLoader: what comes, in which order, from how many threads, and what goes wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using Ints = std::vector<int32_t>;
using Doubles = std::vector<double>;

/// Example i is ({i, i / 2}, i).
Dataset pairs(int64_t size) {
  return {size, [](const ExampleRequest& r) -> Example {
            return {HostArray(std::vector<float>{static_cast<float>(r.index), static_cast<float>(r.index) / 2}),
                    static_cast<int32_t>(r.index)};
          }};
}

/// The labels of an epoch, batch by batch.
std::vector<Ints> labels(DataLoader& loader) {
  std::vector<Ints> out;
  for (const Batch& batch : loader) out.push_back(batch.at(1).tolist<int32_t>());
  return out;
}

TEST(DataLoader, BatchesInOrder) {
  for (const int threads : {0, 1, 3}) {
    DataLoader loader(pairs(5), {.batch_size = 2, .threads = threads});
    EXPECT_EQ(loader.size(), 3U);
    EXPECT_EQ(labels(loader), (std::vector<Ints>{{0, 1}, {2, 3}, {4}}));
    auto it = loader.begin();
    EXPECT_EQ((*it)[0].shape(), (Sizes{2, 2}));
    EXPECT_EQ((*it)[0].dtype(), DType::float32);
    EXPECT_EQ((*it)[0].tolist(), (std::vector<float>{0, 0, 1, 0.5}));
    EXPECT_EQ((*it)[1].shape(), (Sizes{2}));
    EXPECT_FALSE((*it)[0].is_param());
    DataLoader whole(pairs(5), {.batch_size = 2, .drop_last = true, .threads = threads});
    EXPECT_EQ(labels(whole), (std::vector<Ints>{{0, 1}, {2, 3}}));
    DataLoader none(pairs(0), {.threads = threads});
    EXPECT_TRUE(labels(none).empty());
    DataLoader too_few(pairs(3), {.batch_size = 4, .drop_last = true, .threads = threads});
    EXPECT_TRUE(labels(too_few).empty());
  }
}

TEST(DataLoader, TheOrderFollowsFromTheSeedAlone) {
  const auto epochs = [](int threads, uint64_t seed, int64_t first = 0) {
    DataLoader loader(pairs(101),
                      {.batch_size = 8, .shuffle = true, .seed = seed, .threads = threads, .prefetch = 2, .first_epoch = first});
    std::vector<std::vector<Ints>> out;
    for (int i = 0; i < 3; ++i) out.push_back(labels(loader));
    return out;
  };
  const auto want = epochs(0, 7);
  for (const int threads : {1, 2, 5, -1}) EXPECT_EQ(epochs(threads, 7), want);
  EXPECT_NE(epochs(2, 8)[0], want[0]);
  EXPECT_NE(want[0], want[1]);
  EXPECT_EQ(epochs(2, 7, 2)[0], want[2]);
  std::set<int32_t> seen;
  for (const Ints& batch : want[0]) seen.insert(batch.begin(), batch.end());
  EXPECT_EQ(seen.size(), 101U);
  DataLoader loader(pairs(101), {.batch_size = 101, .shuffle = true, .seed = 7});
  const std::vector<int64_t> order = loader.order(0);
  EXPECT_EQ(labels(loader)[0], Ints(order.begin(), order.end()));
  // As it was when it was written: the order is part of what a seed means.
  DataLoader small(pairs(8), {.shuffle = true, .seed = 1});
  EXPECT_EQ(small.order(0), (std::vector<int64_t>{5, 3, 7, 1, 6, 2, 0, 4}));
}

TEST(DataLoader, ChanceFollowsFromTheSeedToo) {
  const auto seeds = [](int threads) {
    DataLoader loader({40, [](const ExampleRequest& r) -> Example { return {r.seed, r.epoch}; }},
                      {.batch_size = 4, .shuffle = true, .seed = 3, .threads = threads});
    std::vector<uint64_t> out;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const Batch& b : loader) {
        for (uint64_t s : b[0].tolist<uint64_t>()) out.push_back(s);
        EXPECT_EQ(b[1].tolist<int64_t>()[0], epoch);
      }
    return out;
  };
  const auto one = seeds(0);
  EXPECT_EQ(one, seeds(3));
  EXPECT_EQ(std::set<uint64_t>(one.begin(), one.end()).size(), 80U);
}

TEST(DataLoader, ErrorsArriveWhereTheirBatchWouldHave) {
  for (const int threads : {0, 1, 4}) {
    const Dataset data{20, [](const ExampleRequest& r) -> Example {
                         if (r.index >= 9) throw FormatError("example " + std::to_string(r.index));
                         return {static_cast<int32_t>(r.index)};
                       }};
    DataLoader loader(data, {.batch_size = 2, .threads = threads});
    for (int epoch = 0; epoch < 3; ++epoch) {
      int batches = 0;
      try {
        for (const Batch& b : loader) batches += b[0].tolist<int32_t>()[0] == 2 * batches;
        FAIL() << "no error";
      } catch (const FormatError& e) {
        EXPECT_STREQ(e.what(), "example 9");
      }
      EXPECT_EQ(batches, 4);
    }
    DataLoader at_once({3, [](const ExampleRequest&) -> Example { throw 5; }}, {.threads = threads});
    EXPECT_THROW(at_once.begin(), int);
    EXPECT_EQ(at_once.next_epoch(), 1);
  }
}

TEST(DataLoader, ExamplesOfABatchMustBeAlike) {
  const auto run = [](const Decoder& decode) {
    DataLoader loader({2, decode}, {.batch_size = 2, .threads = 1});
    loader.begin();
  };
  EXPECT_THROW(run([](const ExampleRequest& r) -> Example { return Example(static_cast<size_t>(r.index), HostArray(1)); }), ShapeError);
  EXPECT_THROW(run([](const ExampleRequest& r) -> Example { return {r.index ? HostArray(1) : HostArray(1.0)}; }), DTypeError);
  EXPECT_THROW(run([](const ExampleRequest& r) -> Example { return {std::vector<int>(static_cast<size_t>(r.index))}; }), ShapeError);
  EXPECT_THROW(HostArray(std::vector<int>{1, 2}, {3}), ShapeError);
  EXPECT_THROW(HostArray(std::vector<int>{1, 2}, {-2}), ShapeError);
}

TEST(DataLoader, LeavingEarlyEndsTheThreads) {
  std::atomic<int> running = 0, decoded = 0;
  const Dataset data{100'000, [&](const ExampleRequest& r) -> Example {
                       ++running, ++decoded;
                       std::this_thread::sleep_for(std::chrono::microseconds(100));
                       --running;
                       return {static_cast<int32_t>(r.index)};
                     }};
  {
    DataLoader loader(data, {.batch_size = 10, .threads = 3, .prefetch = 2});
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const Batch& b : loader) {
        EXPECT_EQ(b[0].tolist<int32_t>()[0], 0);
        break;
      }
    DataLoader moved = std::move(loader);
    moved.begin();
  }
  EXPECT_EQ(running, 0);
  EXPECT_LT(decoded, 1000);
  const DataLoader unused(data);
}

TEST(DataLoader, DecodesAheadButNotTooFar) {
  std::atomic<int> decoded = 0;
  DataLoader loader({100,
                     [&](const ExampleRequest& r) -> Example {
                       ++decoded;
                       return {static_cast<int32_t>(r.index)};
                     }},
                    {.threads = 2, .prefetch = 5});
  auto it = loader.begin();
  const auto wait_for = [&](int count) {
    for (int i = 0; i < 2000 && decoded < count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return decoded.load();
  };
  EXPECT_EQ(wait_for(6), 6);  // the one that was asked for and five more
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(decoded, 6);
  ++it;
  EXPECT_EQ(wait_for(7), 7);
}

TEST(DataLoader, PrefetchMayBeAnyNumber) {
  DataLoader loader(pairs(9), {.batch_size = 2, .threads = 2, .prefetch = INT64_MAX});
  EXPECT_EQ(labels(loader).size(), 5U);
}

TEST(DataLoader, ArraysHaveTheBytesOfTheirShape) {
  EXPECT_THROW(HostArray(std::span<const float>(), {int64_t{1} << 62}), ShapeError);
  EXPECT_THROW(HostArray(std::span<const float>(), {-1}), ShapeError);
  EXPECT_THROW(HostArray(std::vector<float>{1, 2}, {3}), ShapeError);
}

TEST(DataLoader, TensorsAsADataSetOnADevice) {
  const Tensor x = Tensor::arange(12).reshape({4, 3}).permute({0, 1}), y = Tensor({true, false, true, true});
  DataLoader loader(tensor_dataset({x, y}), {.batch_size = 2, .threads = 2, .device = "interp"});
  auto it = loader.begin();
  EXPECT_EQ((*it)[0].device(), "INTERP");
  ++it;
  EXPECT_EQ((*it)[0].tolist<int32_t>(), (Ints{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ((*it)[1].tolist<uint8_t>(), (std::vector<uint8_t>{1, 1}));
  EXPECT_EQ((*it)[1].dtype(), DType::bool_);
  EXPECT_THROW(tensor_dataset({x, Tensor({1.0})}), ShapeError);
  EXPECT_THROW(tensor_dataset({Tensor(1.0)}), ShapeError);
}

TEST(DataLoader, DecodersMayComputeTensors) {
  const Context doubles{{.default_float = std::string("float64")}};
  DataLoader loader({6, [](const ExampleRequest& r) -> Example { return {Tensor({1.0, 2.0}) * static_cast<double>(r.index)}; }},
                    {.batch_size = 3, .threads = 2});
  std::vector<Doubles> got;
  for (const Batch& b : loader) got.push_back(b[0].tolist<double>());
  EXPECT_EQ(got, (std::vector<Doubles>{{0, 0, 1, 2, 2, 4}, {3, 6, 4, 8, 5, 10}}));
  EXPECT_EQ((*loader.begin())[0].dtype(), DType::float64);
}

TEST(DataLoader, TrainsUnderAProgressBar) {
  Tensor::manual_seed(1);
  const Tensor x = Tensor::randn({64, 3}).realize(), y = (x.sum(1) > 0).cast(DType::int32).realize();
  DataLoader loader(tensor_dataset({x, y}), {.batch_size = 16, .shuffle = true, .threads = 2});
  const nn::Linear net(3, 2);
  nn::optim::Adam optimizer(nn::state::get_parameters(net), {.lr = 0.1});
  const auto step = jit([&](const Tensor& a, const Tensor& b) {
    const Context training{{.training = true}};
    optimizer.zero_grad();
    const Tensor loss = net(a).sparse_categorical_crossentropy(b);
    loss.backward();
    optimizer.step();
    return loss;
  });
  double last = 0;
  int steps = 0;
  for (int epoch = 0; epoch < 8; ++epoch)
    for (const Batch& batch : tqdm(loader, {.disable = true})) last = step(batch[0], batch[1]).item(), ++steps;
  EXPECT_EQ(steps, 32);
  EXPECT_LT(last, 0.3);
  EXPECT_TRUE(step.captured());
}

TEST(DataLoader, WrongOptionsAreNamed) {
  EXPECT_THROW(DataLoader(pairs(3), {.batch_size = 0}), ValueError);
  EXPECT_THROW(DataLoader(pairs(3), {.threads = -2}), ValueError);
  EXPECT_THROW(DataLoader(pairs(3), {.prefetch = 0}), ValueError);
  EXPECT_THROW(DataLoader(pairs(3), {.first_epoch = -1}), ValueError);
  EXPECT_THROW(DataLoader(pairs(3), {.device = "NOWHERE"}), DeviceError);
  EXPECT_THROW(DataLoader(pairs(-1)), ValueError);
  EXPECT_THROW(DataLoader({3, nullptr}), ValueError);
}

}  // namespace
}  // namespace tinygrad
