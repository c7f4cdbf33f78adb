// What ranks do together. CMake has mpirun start each of these tests with four; of one process alone they are skipped.
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include <tinygrad/comm.h>
#include <tinygrad/compile_report.h>
#include <tinygrad/context.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>
#include <tinygrad/mesh.h>
#include <tinygrad/tensor.h>

#include "support/message_of.h"

namespace tinygrad {

namespace {

class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    if (world_size() == 1) GTEST_SKIP() << "one rank";
    for (int r = 0; r < world_size(); ++r) all_.push_back("CPU@" + std::to_string(r));
  }
  std::vector<std::string> all_;
};

using Floats = std::vector<float>;
using test::message_of;

}  // namespace

TEST(Rank, OfAProcessAloneIsTheFirst) {
  if (world_size() > 1) GTEST_SKIP();
  EXPECT_EQ(rank(), 0);
  EXPECT_EQ(canonical_device("cpu:0@0"), "CPU@0");
  EXPECT_EQ((Tensor::ones({2}, {.device = "CPU@0"}) + 1).tolist<float>(), (Floats{2, 2}));
  EXPECT_EQ(Tensor::ones({2}).shard({"CPU@0", "CPU:1@0"}, 0).sum().item<float>(), 2);
  EXPECT_EQ(message_of<DeviceError>([] { Tensor::ones({2}, {.device = "CPU@1"}).realize(); }),
            "CPU@1: there is one rank here; `mpirun -n 2` or more starts it");
  for (const char* name : {"CPU@", "CPU@x", "CPU@-1", "CPU@1:2", "CPU:LLVM@1", "@1"})
    EXPECT_THROW(canonical_device(name), DeviceError) << name;
}

TEST_F(Ranks, ReadAndWriteWhatIsOnOneOfThem) {
  const Tensor there = Tensor({1.0f, 2.0f, 3.0f}, {.device = "CPU@2"}), more = (there * 2).realize();
  EXPECT_EQ(more.device(), "CPU@2");
  EXPECT_EQ(more.tolist<float>(), (Floats{2, 4, 6}));
  EXPECT_EQ(more.to("CPU@1").tolist<float>(), (Floats{2, 4, 6}));
  EXPECT_EQ((more.to("CPU:1") + 1).tolist<float>(), (Floats{3, 5, 7}));
  EXPECT_EQ(more.sum().item<float>(), 12);
  EXPECT_EQ(Tensor::arange(6).realize()[more.cast(DType::int32).to("CPU") - 1].tolist<float>(), (Floats{1, 3, 5}));
  // Each rank computes on its own device what is on no rank's.
  Tensor own = Tensor::full({3}, float(rank())).contiguous().realize();
  EXPECT_EQ(own.tolist<float>(), Floats(3, float(rank())));
  own.assign(more.to("CPU")).realize();
  EXPECT_EQ(own.tolist<float>(), (Floats{2, 4, 6}));
}

TEST_F(Ranks, SendAndReceiveInMemoryThatIsUsedAgain) {
  // What comes to rank 0 may lie where what it has just sent was, and large messages are under way for long.
  constexpr int64_t n = 1 << 22;
  for (int i = 0; i < 6; ++i) {
    const Tensor x = Tensor::arange(n, {.dtype = DType::int32}).realize(), first = (x + i).to("CPU@0").realize(),
                 second = (x * 3 - i).to("CPU@1").realize();
    const Tensor sent = (first + 1).to("CPU@1"), received = second.to("CPU@0") * 2;
    Tensor::realize(std::vector<Tensor>{sent, received});
    EXPECT_EQ((sent.to("CPU") != x + i + 1).to_int().sum().item<int32_t>(), 0);
    EXPECT_EQ((received.to("CPU") != (x * 3 - i) * 2).to_int().sum().item<int32_t>(), 0);
  }
}

TEST_F(Ranks, CompileAndRenderWhatRunsOnOthers) {
  const Tensor x = Tensor::arange(8).cast(DType::float32).shard(all_, 0).realize();
  const std::vector<Tensor> made{(x + 2).exp(), (x + 2).to("CPU@1").cumsum(0)};
  EXPECT_EQ(made[1].device(), "CPU@1");
  EXPECT_GE(compile_report(made, {.sources = true}).kernels, 3u);
}

TEST_F(Ranks, HaveGradientsOfWhatIsOnOneOfThem) {
  const Tensor x = Tensor({1.0f, 2.0f, -3.0f}).to("CPU@1"), c = Tensor({1.0f, 2.0f, 3.0f}).shard({"CPU@0", "CPU@1"});
  EXPECT_EQ(((x * x).sum() + (x * c).sum()).gradient({x})[0].tolist<float>(), (Floats{3, 6, -3}));
  EXPECT_EQ(((x * c).sum() + (x * x).sum()).gradient({x})[0].tolist<float>(), (Floats{3, 6, -3}));
}

TEST_F(Ranks, RefuseDifferentPrograms) {
  const Tensor x = Tensor::arange(8).cast(DType::float32).shard(all_, 0).realize();
  const Tensor sum = rank() == 3 ? (x * 2).sum() : (x + 1).sum();
  const std::string said = message_of<CommError>([&] { (void)sum.item<float>(); });
  EXPECT_NE(said.find("ranks run different programs: call "), said.npos) << said;
  EXPECT_NE(said.find(" on rank 0, and "), said.npos) << said;
  EXPECT_EQ(x.sum().item<float>(), 28) << "what is the same goes on";
}

TEST_F(Ranks, DrawTheSameNumbersWithoutASeed) {
  const Tensor w = Tensor::rand({4}).shard(all_), own = Tensor::rand({4}).realize();
  const std::vector<float> drawn = own.tolist<float>();
  const std::vector<float> of_zero = own.to("CPU@0").tolist<float>();
  EXPECT_NE(drawn[0], drawn[1]);
  EXPECT_EQ(w.sum().item<float>(), w.to("CPU").sum().item<float>());
  EXPECT_EQ(Tensor(drawn).to("CPU@3").tolist<float>(), drawn);
  EXPECT_EQ(of_zero, drawn);
}

TEST_F(Ranks, NoteDifferentNumbers) {
  const Tensor x = Tensor::arange(8).cast(DType::float32).shard({"CPU@0", "CPU@1"}, 0).realize();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW((void)(x * (rank() == 1 ? 3 : 2)).sum().item<float>(), CommError);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(Ranks, NameOneThatIsLate) {
  const Tensor x = Tensor::arange(8).cast(DType::float32).shard(all_, 0).realize();
  EXPECT_EQ(x.sum().item<float>(), 28);
  const Context guard{{.comm_timeout = 1}};
  if (rank() == 1) {
    std::this_thread::sleep_for(std::chrono::seconds(4));
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const std::string said = message_of<CommError>([&] { (void)(x * 3).max().item<float>(); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  EXPECT_NE(said.find("nothing from rank 1 on "), said.npos) << said;
  EXPECT_NE(said.find("within 1 s (COMM_TIMEOUT)"), said.npos) << said;
  EXPECT_THROW((void)x.max().item<float>(), CommError) << "from then on";
}

}  // namespace tinygrad
