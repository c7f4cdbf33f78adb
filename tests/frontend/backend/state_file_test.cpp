// State that is saved, loaded and resumed.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <limits>

#include <tinygrad/tinygrad.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace tinygrad {
namespace {

using namespace nn::state;

class StateFile : public TempDir {};

const LoadOptions quiet{.verbose = false};

TEST_F(StateFile, EveryDtypeComesBackBitByBit) {
  StateDict out;
  for (const DType d : dtypes::all) {
    std::vector<std::byte> bytes(6 * itemsize(d));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(is_bool(d) ? i % 2 : 37 * i + 200);
    out["t." + std::string(repr(d))] = Tensor(bytes, d, {2, 3});
  }
  out["scalar"] = Tensor(2.5);
  out["empty"] = Tensor::zeros({0, 4});
  out["lazy"] = Tensor({1.0, 2.0}) * 2;
  out["view"] = Tensor::arange(6).reshape({2, 3}).permute({1, 0});
  safe_save(out, path("f"), {{"epoch", "3"}});
  const StateDict in = safe_load(path("f"));
  ASSERT_EQ(in.size(), out.size());
  for (const auto& [name, t] : out) {
    EXPECT_EQ(in.at(name).dtype(), t.dtype()) << name;
    EXPECT_EQ(in.at(name).shape(), t.shape()) << name;
    EXPECT_EQ(in.at(name).data(), t.data()) << name;
  }
  const SafeMetadata header = safe_load_metadata(path("f"));
  EXPECT_EQ(header.metadata.at("epoch"), "3");
  EXPECT_EQ(header.tensors.at("view").shape, (Sizes{3, 2}));
  const std::string bytes = read_file(path("f"));
  const Tensor file(std::vector<uint8_t>(bytes.begin(), bytes.end()));
  EXPECT_EQ(safe_load(file).at("view").tolist(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(safe_load_metadata(file).data_start, header.data_start);
}

TEST_F(StateFile, AssigningToALoadedTensorLeavesTheFile) {
  safe_save({{"a", Tensor({1.0, 2.0})}}, path("f"));
  const std::string before = read_file(path("f"));
  Tensor a = safe_load(path("f")).at("a");
  a.assign(Tensor({3.0, 4.0})).realize();
  EXPECT_EQ(a.tolist(), (std::vector<float>{3, 4}));
  EXPECT_EQ(read_file(path("f")), before);
  // Over the file that it comes from.
  safe_save({{"a", a}, {"b", safe_load(path("f")).at("a")}}, path("f"));
  EXPECT_EQ(safe_load(path("f")).at("a").tolist(), (std::vector<float>{3, 4}));
  EXPECT_EQ(safe_load(path("f")).at("b").tolist(), (std::vector<float>{1, 2}));
}

TEST_F(StateFile, TensorsOfAnyAlignmentAreRead) {
  const std::string json =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F64","shape":[2],"data_offsets":[1,17]}} )";
  const uint64_t size = json.size();
  const double values[] = {1.5, -2.5};
  std::string file = std::string(reinterpret_cast<const char*>(&size), 8) + json + "x";
  file.append(reinterpret_cast<const char*>(values), 16);
  write_file_atomic(path("f"), file);
  EXPECT_EQ(safe_load(path("f")).at("b").tolist<double>(), (std::vector<double>{1.5, -2.5}));
}

TEST_F(StateFile, TensorsMayStayInTheFileUntilTheyAreCopied) {
  StateDict out;
  for (const DType d : dtypes::all) {
    std::vector<std::byte> bytes(6 * itemsize(d));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(is_bool(d) ? i % 2 : 37 * i + 200);
    out["t." + std::string(repr(d))] = Tensor(bytes, d, {2, 3});
  }
  out["scalar"] = Tensor(2.5);
  out["empty"] = Tensor::zeros({0, 4});
  safe_save(out, path("f"), {{"epoch", "3"}});
  const Tensor file = Tensor::from_file(path("f"));
  EXPECT_EQ(safe_load_metadata(file).metadata.at("epoch"), "3");
  const StateDict in = safe_load(file);
  ASSERT_EQ(in.size(), out.size());
  for (const auto& [name, t] : out) {
    EXPECT_EQ(in.at(name).device(), file.device()) << name;
    EXPECT_EQ(in.at(name).dtype(), t.dtype()) << name;
    EXPECT_EQ(in.at(name).shape(), t.shape()) << name;
    EXPECT_EQ(in.at(name).to("CPU").data(), t.data()) << name;
  }
}

TEST_F(StateFile, AModuleIsLoadedStraightFromTheFile) {
  const nn::Linear from{3, 2}, to{3, 2};
  safe_save(get_state_dict(from), path("f"));
  load_state_dict(to, safe_load(Tensor::from_file(path("f"))), quiet);
  for (const auto& [name, t] : get_state_dict(from)) EXPECT_EQ(get_state_dict(to).at(name).tolist(), t.tolist()) << name;
}

TEST_F(StateFile, AFileThatIsCutOffIsAnErrorWheneverThatHappens) {
  safe_save({{"a", Tensor::ones({1000})}}, path("f"));
  const std::string whole = read_file(path("f"));
  for (const size_t size : {size_t{0}, size_t{7}, size_t{20}, whole.size() - 1}) {
    write_file_atomic(path("g"), whole.substr(0, size));
    EXPECT_THROW(safe_load(Tensor::from_file(path("g"))), FormatError) << size;
  }
  const StateDict in = safe_load(Tensor::from_file(path("f")));
  std::filesystem::resize_file(path("f"), whole.size() / 2);
  EXPECT_THROW(in.at("a").to("CPU").realize(), IoError);
  write_file_atomic(path("f"), whole);
  EXPECT_EQ(safe_load(Tensor::from_file(path("f"))).at("a").to("CPU").sum().item(), 1000);
}

TEST_F(StateFile, WhatCannotBeSavedLeavesNoFile) {
  EXPECT_THROW(safe_save({{"__metadata__", Tensor({1.0})}}, path("f")), ValueError);
  EXPECT_THROW(safe_save({{"\xff", Tensor({1.0})}}, path("f")), ValueError);
  EXPECT_THROW(safe_save({{"a", Tensor()}}, path("f")), ValueError);
  EXPECT_THROW(safe_save({{"a", Tensor({1.0})}}, path("absent/f")), IoError);
  EXPECT_THROW(safe_load(path("f")), IoError);
  EXPECT_TRUE(std::filesystem::is_empty(path("")));
  EXPECT_THROW(safe_load(Tensor({1.0})), DTypeError);
  EXPECT_THROW(safe_load(Tensor(std::vector<uint8_t>{1}, {1, 1})), ShapeError);
}

struct Net : nn::Module {
  nn::Linear l1{4, 8}, l2{8, 3};
  nn::BatchNorm norm{8};
  Tensor operator()(const Tensor& x) const { return l2(norm(l1(x)).relu().dropout(0.2)); }
  TG_FIELDS(l1, norm, l2)
};

template <class O>
struct Run {
  Net net;
  O optimizer{get_parameters(net), {.lr = 0.05}};
  nn::optim::MultiStepLR scheduler{optimizer, {4, 9}, 0.5};

  void steps(int begin, int end, std::vector<uint32_t>& losses, bool jitted) {
    const auto function = [&](const Tensor& x, const Tensor& y) {
      const Context training{{.training = true}};
      optimizer.zero_grad();
      Tensor loss = net(x).sparse_categorical_crossentropy(y);
      loss.backward();
      optimizer.step();
      return loss;
    };
    const auto step = jit(function);
    for (int i = begin; i < end; ++i) {
      Tensor::manual_seed(static_cast<uint64_t>(100 + i));
      const Tensor x = Tensor::randn({6, 4}).realize(), y = Tensor::randint({6}, 0, 3).realize();
      losses.push_back(std::bit_cast<uint32_t>((jitted ? step(x, y) : function(x, y)).template item<float>()));
      scheduler.step();
    }
  }
  StateDict state() const {
    StateDict all = get_state_dict(net, "net.");
    all.merge(get_state_dict(optimizer, "optimizer."));
    all.merge(get_state_dict(scheduler, "scheduler."));
    return all;
  }
  void load(const StateDict& all) {
    const auto part = [&](std::string_view prefix) {
      StateDict out;
      for (const auto& [name, t] : all)
        if (name.starts_with(prefix)) out.emplace(name.substr(prefix.size()), t);
      return out;
    };
    load_state_dict(net, part("net."), quiet);
    load_state_dict(optimizer, part("optimizer."), quiet);
    load_state_dict(scheduler, part("scheduler."), quiet);
  }
};

template <class O>
void expect_resumes(const std::string& path, bool jitted) {
  std::vector<uint32_t> straight, resumed;
  Tensor::manual_seed(5);
  Run<O> one;
  one.steps(0, 12, straight, jitted);
  {
    Tensor::manual_seed(5);
    Run<O> first;
    first.steps(0, 6, resumed, jitted);
    safe_save(first.state(), path);
  }
  Tensor::manual_seed(77);
  Run<O> second;
  second.load(safe_load(path));
  second.steps(6, 12, resumed, jitted);
  EXPECT_EQ(straight, resumed);
  const StateDict a = one.state(), b = second.state();
  for (const auto& [name, t] : a) EXPECT_EQ(t.data(), b.at(name).data()) << name;
}

TEST_F(StateFile, TrainingResumesBitByBit) {
  expect_resumes<nn::optim::Adam>(path("adam"), false);
  expect_resumes<nn::optim::Adam>(path("adam"), true);
  expect_resumes<nn::optim::LAMB>(path("lamb"), true);
  expect_resumes<nn::optim::LARS>(path("lars"), true);
  expect_resumes<nn::optim::Muon>(path("muon"), false);
}

}  // namespace
}  // namespace tinygrad
