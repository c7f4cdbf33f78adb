// Checkpoints: complete or not there, and the same for all who read them.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <tinygrad/checkpoint.h>
#include <tinygrad/comm.h>
#include <tinygrad/errors.h>
#include <tinygrad/formats.h>
#include <tinygrad/mesh.h>
#include <tinygrad/tensor.h>

#include "support/message_of.h"
#include "support/temp_folder.h"

namespace tinygrad {
namespace {

namespace fs = std::filesystem;
using nn::state::Checkpoint;
using nn::state::load_checkpoint;
using nn::state::save_checkpoint;
using nn::state::StateDict;
using Floats = std::vector<float>;

StateDict state(float from) {
  StateDict out;
  out.emplace("a.weight", Tensor::arange(12).reshape({3, 4}).cast(DType::float32) + from);
  out.emplace("count", Tensor({int64_t(from)}));
  out.emplace("empty", Tensor::zeros({0, 3}));
  out.emplace("half", (Tensor::arange(5) + from).cast(DType::float16));
  return out;
}

void expect_same(const StateDict& got, const StateDict& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, t] : expected) {
    EXPECT_EQ(got.at(name).dtype(), t.dtype());
    EXPECT_EQ(got.at(name).shape(), t.shape());
    EXPECT_EQ(got.at(name).cast(DType::float32).flatten().tolist<float>(), t.cast(DType::float32).flatten().tolist<float>()) << name;
  }
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path().filename().string());
  std::ranges::sort(out);
  return out;
}

}  // namespace

TEST(Checkpoint, IsWhatWasSaved) {
  const test::TempFolder folder;
  const std::string path = folder.path("run");
  EXPECT_FALSE(load_checkpoint(path));
  save_checkpoint(path, 7, state(3), {{"seed", "5"}, {"text", "\u00e4\n\""}});
  const auto found = load_checkpoint(path);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 7);
  EXPECT_EQ(found->metadata.at("seed"), "5");
  EXPECT_EQ(found->metadata.at("text"), "\u00e4\n\"");
  expect_same(found->tensors, state(3));
  // Readers of models open it by its index.
  expect_same(formats::load(found->path + "/model.safetensors.index.json"), state(3));
}

TEST(Checkpoint, TheLastOnesStay) {
  const test::TempFolder folder;
  const std::string path = folder.path("run");
  for (const int step : {1, 2, 10, 11}) save_checkpoint(path, step, state(float(step)));
  EXPECT_EQ(names_in(path), (std::vector<std::string>{"step-00000010", "step-00000011"}));
  save_checkpoint(path, 12, state(12), {}, {.keep = 3});
  EXPECT_EQ(names_in(path).size(), 3U);
  expect_same(load_checkpoint(path)->tensors, state(12));
  save_checkpoint(path, 12, state(13));  // once more
  expect_same(load_checkpoint(path)->tensors, state(13));
  EXPECT_EQ(names_in(path), (std::vector<std::string>{"step-00000011", "step-00000012"}));
}

TEST(Checkpoint, ThatIsNotCompleteIsNotThere) {
  const test::TempFolder folder;
  const std::string path = folder.path("run");
  save_checkpoint(path, 1, state(1));
  fs::create_directories(path + "/step-00000002.partial");
  fs::create_directories(path + "/step-00000003");  // no index
  std::ofstream(path + "/step-x") << "other";
  fs::create_directories(path + "/notes");
  EXPECT_EQ(load_checkpoint(path)->step, 1);
  save_checkpoint(path, 4, state(4));
  EXPECT_FALSE(fs::exists(path + "/step-00000002.partial"));
  EXPECT_TRUE(fs::exists(path + "/notes"));
  EXPECT_TRUE(fs::exists(path + "/step-x"));
}

TEST(Checkpoint, ThatFailsLeavesTheOneBefore) {
  const test::TempFolder folder;
  const std::string path = folder.path("run");
  save_checkpoint(path, 1, state(1));
  StateDict bad = state(2);
  bad.emplace("\xff", Tensor({1.0f}));
  EXPECT_THROW(save_checkpoint(path, 2, bad), ValueError);
  EXPECT_EQ(names_in(path), std::vector<std::string>{"step-00000001"});
  EXPECT_THROW(save_checkpoint(path, -1, state(1)), ValueError);
  EXPECT_THROW(save_checkpoint(path, 1, state(1), {}, {.keep = 0}), ValueError);
  EXPECT_THROW(save_checkpoint(path, 2, {{"__metadata__", Tensor({1.0f})}}), ValueError);
  std::ofstream(folder.path("file")) << "x";
  EXPECT_THROW(save_checkpoint(folder.path("file"), 1, state(1)), IoError);
  expect_same(load_checkpoint(path)->tensors, state(1));
}

TEST(Checkpoint, OfBytesThatAreNoneIsRefused) {
  const test::TempFolder folder;
  const std::string path = folder.path("run");
  save_checkpoint(path, 1, state(1));
  std::ofstream(path + "/step-00000001/model.safetensors.index.json") << R"({"weight_map": {"a": "../x"}})";
  EXPECT_THROW(load_checkpoint(path), FormatError);
  std::ofstream(path + "/step-00000001/model.safetensors.index.json") << R"({"weight_map": {"a": "x.safetensors"}})";
  EXPECT_THROW(load_checkpoint(path), IoError);
}

TEST(Checkpoint, OfTensorsOnSeveralDevices) {
  const test::TempFolder folder;
  const std::string path = folder.path("run");
  const std::vector<std::string> devices{"CPU", "CPU:1", "CPU:2"};
  StateDict there;
  for (auto& [name, t] : state(2)) there.emplace(name, t.shape().size() == 2 ? t.shard(devices, 0).realize() : t.shard(devices).realize());
  save_checkpoint(path, 1, there);
  expect_same(load_checkpoint(path)->tensors, state(2));
}

// CMake has mpirun start it with three.
TEST(Checkpoint, IsSavedByRanksTogether) {
  if (world_size() == 1) GTEST_SKIP() << "one rank";
  std::vector<std::string> all;
  for (int r = 0; r < world_size(); ++r) all.push_back("CPU@" + std::to_string(r));
  const std::string folder = testing::TempDir() + "tg_checkpoint_of_ranks";
  const auto whole = [](float from) { return Tensor::arange(40).reshape({8, 5}).cast(DType::float32) + from; };
  StateDict tensors;
  tensors.emplace("parts", whole(1).shard(all, 0).realize());
  tensors.emplace("copies", whole(2).shard(all).realize());
  tensors.emplace("plain", whole(3));
  tensors.emplace("there", Tensor({5.0f}, {.device = all.back()}));
  tensors.emplace("empty", Tensor::zeros({0, 2}));
  tensors.emplace("view", Tensor({1.0f, 2.0f, 3.0f, 4.0f}, {.device = all[0]}).realize()[Slice{.start = 1, .stop = 3}]);
  save_checkpoint(folder, 3, tensors, {{"by", "ranks"}});
  const auto found = load_checkpoint(folder);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 3);
  EXPECT_EQ(found->metadata.at("by"), "ranks");
  EXPECT_EQ(found->tensors.size(), tensors.size());
  for (const auto& [name, from] : {std::pair{"parts", 1.0f}, {"copies", 2.0f}, {"plain", 3.0f}})
    EXPECT_EQ(found->tensors.at(name).shard(all, 0).flatten().tolist<float>(), whole(from).flatten().tolist<float>()) << name;
  EXPECT_EQ(found->tensors.at("there").tolist<float>(), Floats{5});
  EXPECT_EQ(found->tensors.at("view").tolist<float>(), (Floats{2, 3}));
  // One cannot write: all are told who.
  const std::string file = testing::TempDir() + "tg_checkpoint_in_a_file";
  std::ofstream(file) << "x";
  EXPECT_NE(test::message_of<IoError>([&] { save_checkpoint(file, 1, state(1)); }).find(rank() == 0 ? "tg_checkpoint" : "rank 0 on"),
            std::string::npos);
  if (rank() == 0)
    for (const std::string& path : {folder, file}) fs::remove_all(path);
}

}  // namespace tinygrad
