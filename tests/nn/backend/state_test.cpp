// Loading state dicts into modules.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using namespace nn::state;
using Floats = std::vector<float>;

struct Net : nn::Module {
  nn::Linear l1{4, 3}, l2{3, 2, {.bias = false}};
  TG_FIELDS(l1, l2)
  std::vector<Floats> values() const {
    std::vector<Floats> out;
    for (const Tensor& t : get_parameters(*this)) out.push_back(t.tolist());
    return out;
  }
};

const LoadOptions quiet{.verbose = false}, loose{.strict = false, .verbose = false};

TEST(State, LoadingCopiesValues) {
  const Net from, to;
  EXPECT_NE(from.values(), to.values());
  const LoadReport report = load_state_dict(to, get_state_dict(from), quiet);
  EXPECT_EQ(from.values(), to.values());
  EXPECT_EQ(report.loaded.size(), 3U);
  EXPECT_EQ(report.to_string(), "loaded 3 tensors");
  Tensor(to.l1.weight).assign(Tensor::zeros({3, 4})).realize();
  EXPECT_NE(from.l1.weight.tolist(), to.l1.weight.tolist());
}

TEST(State, StrictLoadingIsAllOrNothing) {
  const Net from, to;
  const std::vector<Floats> before = to.values();
  StateDict bad = get_state_dict(from);
  bad["l1.weight"] = Tensor::zeros({4, 4});
  EXPECT_THROW(load_state_dict(to, bad, quiet), ShapeError);
  bad.erase("l1.weight");
  EXPECT_THROW(load_state_dict(to, bad, quiet), ValueError);
  EXPECT_THROW(load_state_dict(to, bad, {.verbose = false, .consume = true}), ValueError);
  EXPECT_EQ(bad.size(), 2U);
  EXPECT_EQ(to.values(), before);
}

TEST(State, LooseLoadingReports) {
  const Net from, to;
  StateDict some = get_state_dict(from);
  some["l1.weight"] = Tensor::zeros({4, 4});
  some.erase("l2.weight");
  some["other"] = Tensor({1.0});
  const Floats weight = to.l1.weight.tolist();
  const LoadReport report = load_state_dict(to, some, loose);
  EXPECT_EQ(to.l1.bias.tolist(), from.l1.bias.tolist());
  EXPECT_EQ(to.l1.weight.tolist(), weight);
  EXPECT_EQ(report.missing, std::vector<std::string>{"l2.weight"});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"other"});
  ASSERT_EQ(report.mismatched.size(), 1U);
  EXPECT_EQ(report.to_string(),
            "loaded 1 tensors; missing: l2.weight; unexpected: other; of another shape: l1.weight is (3, 4), (4, 4) in the state");
}

TEST(State, TensorsTakeTheDtypeOfTheDict) {
  const Net to;
  StateDict halves = get_state_dict(Net());
  for (auto& [name, t] : halves) t = t.half();
  load_state_dict(to, halves, quiet);
  EXPECT_EQ(to.l1.weight.dtype(), DType::float16);
  EXPECT_EQ(to.l1.weight.tolist(), halves.at("l1.weight").tolist());
}

TEST(State, OneNumberFitsOneNumber) {
  const nn::BatchNorm norm(2);
  StateDict state = get_state_dict(norm);
  state["num_batches_tracked"] = Tensor({int64_t{7}}, {.dtype = DType::int64});
  load_state_dict(norm, state, quiet);
  EXPECT_EQ(norm.num_batches_tracked.shape(), Sizes{});
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 7);
  EXPECT_FALSE(norm.running_mean.is_param());
}

TEST(State, ConsumingEmptiesTheDictAndSharesItsMemory) {
  const Net to;
  StateDict state = get_state_dict(Net());
  for (auto& [name, t] : state) t.realize();
  state["other"] = Tensor({1.0});
  Tensor kept = state.at("l1.bias");
  load_state_dict(to, state, {.verbose = false, .consume = true});
  EXPECT_EQ(state.size(), 1U);
  kept.assign(Tensor({1.0, 2.0, 3.0})).realize();
  EXPECT_EQ(to.l1.bias.tolist(), (Floats{1, 2, 3}));
}

TEST(State, LoadingMovesToTheModulesDevice) {
  const Net from;
  const Context interpreted{{.dev = std::string("INTERP")}};
  const Net to;
  StateDict state = get_state_dict(from);
  load_state_dict(to, state, {.verbose = false, .consume = true});
  EXPECT_EQ(to.l1.weight.device(), "INTERP");
  EXPECT_EQ(to.values(), from.values());
  EXPECT_TRUE(state.empty());
}

TEST(State, LoadingMayStayLazy) {
  const Net from, to;
  load_state_dict(to, get_state_dict(from), {.verbose = false, .realize = false});
  EXPECT_EQ(from.values(), to.values());
}

}  // namespace
}  // namespace tinygrad
