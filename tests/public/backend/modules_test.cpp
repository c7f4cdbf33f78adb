// Networks as users write them: their fields, their errors, loading into them, losses and gradients.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using nn::state::get_parameters;
using nn::state::get_state_dict;
using nn::state::load_state_dict;
using nn::state::StateDict;

struct Block : nn::Module {
  nn::Linear up, down;
  explicit Block(int64_t size) : up(size, 4 * size), down(4 * size, size) {}
  Tensor operator()(const Tensor& x) const { return x + down(up(x).relu()); }
  TG_FIELDS(up, down)
};

struct Net : nn::Module {
  std::vector<Block> blocks;
  nn::LayerNorm norm{8};
  explicit Net(int count) {
    for (int i = 0; i < count; ++i) blocks.emplace_back(8);
  }
  Tensor operator()(Tensor x) const {
    for (const Block& b : blocks) x = b(x);
    return norm(x);
  }
  TG_FIELDS(blocks, norm)
};

std::vector<std::string> names_of(const nn::Module& m) {
  nn::Fields fields;
  m.add_fields(fields);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : fields.tensors()) names.push_back(name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Fields, OfEveryContainer) {
  struct : nn::Module {
    std::vector<std::unique_ptr<nn::Linear>> list;
    std::array<nn::RMSNorm, 2> array{nn::RMSNorm(2), nn::RMSNorm(2)};
    std::map<std::string, nn::RMSNorm> heads{{"b", nn::RMSNorm(2)}, {"a", nn::RMSNorm(3)}};
    std::map<int, Tensor> tables{{10, Tensor({1.0})}, {9, Tensor({2.0})}};
    std::unordered_map<std::string, std::vector<Tensor>> groups{{"y", {Tensor({1.0})}}, {"x", {Tensor({1.0}), Tensor()}}};
    std::optional<nn::RMSNorm> last, none;
    std::shared_ptr<nn::Module> shared = std::make_shared<nn::RMSNorm>(2);
    std::pair<nn::RMSNorm, Tensor> both{nn::RMSNorm(2), Tensor({3.0})};
    nn::RMSNorm plain[1] = {nn::RMSNorm(2)};
    TG_FIELDS(list, array, heads, tables, groups, last, none, shared, both, plain)
  } m;
  m.list.push_back(std::make_unique<nn::Linear>(2, 2, nn::LinearOptions{.bias = false}));
  m.list.push_back(nullptr);
  m.last.emplace(2);
  EXPECT_EQ(names_of(m),
            (Names{"list.0.weight", "array.0.weight", "array.1.weight", "heads.a.weight", "heads.b.weight", "tables.9", "tables.10",
                   "groups.x.0", "groups.y.0", "last.weight", "shared.weight", "both.0.weight", "both.1", "plain.0.weight"}));
}

/// What the error says.
template <class E>
std::string says(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    EXPECT_EQ(typeid(e), typeid(E));
    return e.what();
  }
  return "no error";
}

TEST(Errors, NameTheLayerByItsPath) {
  Net net(6);
  net.blocks[4].up = nn::Linear(32, 128);
  const Tensor x = Tensor::ones({2, 8});
  EXPECT_EQ(says<ShapeError>([&] { net(x); }).find("Linear(32 -> 128): "), 0U) << "nobody has asked for its names";
  get_parameters(net);
  EXPECT_EQ(says<ShapeError>([&] { net(x); }).find("blocks.4.up: Linear(32 -> 128): "), 0U) << says<ShapeError>([&] { net(x); });
  const Net copy = net;
  get_parameters(net.blocks[4]);  // an inner module's own names are shorter
  EXPECT_EQ(says<ShapeError>([&] { net(x); }).find("blocks.4.up: "), 0U);
  EXPECT_EQ(says<ShapeError>([&] { copy(x); }).find("blocks.4.up: "), 0U);
  net.blocks.erase(net.blocks.begin());
  get_parameters(net);
  EXPECT_EQ(says<ShapeError>([&] { net(x); }).find("blocks.3.up: "), 0U);
}

TEST(Errors, OfEveryKindOfLayer) {
  struct : nn::Module {
    nn::Conv2d conv{3, 16, 3};
    nn::ConvTranspose2d transposed{3, 16, 2};
    nn::BatchNorm batch{3};
    nn::GroupNorm group{1, 3};
    nn::LayerNorm layer{3};
    nn::LayerNorm2d layer2d{3};
    nn::RMSNorm rms{3};
    nn::Embedding table{10, 4};
    nn::LSTMCell cell{3, 4};
    TG_FIELDS(conv, transposed, batch, group, layer, layer2d, rms, table, cell)
  } m;
  get_state_dict(m, "net.");
  const Tensor x = Tensor::ones({2, 5, 5, 5}), row = Tensor::ones({2, 5});
  EXPECT_EQ(says<ShapeError>([&] { m.conv(x); }).find("net.conv: Conv2d(3 -> 16, kernel 3x3): "), 0U);
  EXPECT_EQ(says<ShapeError>([&] { m.transposed(x); }).find("net.transposed: ConvTranspose2d(3 -> 16, kernel 2x2): "), 0U);
  EXPECT_EQ(says<ShapeError>([&] { m.batch(x); }).find("net.batch: BatchNorm: got "), 0U);
  EXPECT_EQ(says<ShapeError>([&] { m.group(x); }).find("net.group: GroupNorm: got "), 0U);
  EXPECT_EQ(says<ShapeError>([&] { m.layer(x); }).find("net.layer: LayerNorm: got "), 0U);
  EXPECT_EQ(says<ShapeError>([&] { m.layer2d(x); }).find("net.layer2d: LayerNorm2d: got "), 0U);
  EXPECT_EQ(says<ShapeError>([&] { m.rms(row); }).find("net.rms: RMSNorm: got "), 0U);
  EXPECT_EQ(says<DTypeError>([&] { m.table(row); }).find("net.table: Embedding: got "), 0U);
  EXPECT_EQ(says<ShapeError>([&] { m.cell(row); }).find("net.cell: LSTMCell: got "), 0U);
  EXPECT_EQ(says<ValueError>([&] { nn::Linear()(row); }).find("Linear(): "), 0U);
}

// A captured call has packed weights, whose products may be added up in another order.
void expect_near(const std::vector<float>& values, const std::vector<float>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-5) << i;
}

TEST(Loading, IntoACapturedModelCapturesNothingAnew) {
  Tensor::manual_seed(4);
  const Net net(2), other(2);
  int runs = 0;
  const auto call = jit([&](const Tensor& x) {
    ++runs;
    return net(x);
  });
  const Tensor x = Tensor::rand({3, 8}).realize();
  for (int i = 0; i < 3; ++i) call(x);
  const int before = runs;
  const Tensor view = net.blocks[0].up.weight[0];
  StateDict state = get_state_dict(other);
  const std::vector<float> expected = other(x).tolist();
  load_state_dict(net, state, {.verbose = false});
  expect_near(call(x).tolist(), expected);
  EXPECT_EQ(runs, before) << "it was captured again";
  EXPECT_EQ(view.tolist(), other.blocks[0].up.weight[0].tolist());
  EXPECT_EQ(other(x).tolist(), expected) << "the dict's tensors are its own";
  load_state_dict(net, state, {.verbose = false, .consume = true});
  EXPECT_TRUE(state.empty());
  expect_near(call(x).tolist(), expected);
  EXPECT_EQ(runs, before);
}

TEST(Loading, ComputesWhatReadsTheOldValues) {
  nn::Linear a(2, 2), b(2, 2);
  const std::vector<float> old = a.weight.realize().tolist(), new_values = b.weight.realize().tolist();
  const Tensor doubled = a.weight * 2;  // lazy
  StateDict swapped{{"weight", b.weight}, {"bias", b.bias}};
  load_state_dict(a, swapped, {.verbose = false});
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(doubled.tolist()[i], 2 * old[i]);
  EXPECT_EQ(a.weight.tolist(), new_values);
}

TEST(Loading, OfATensorsOwnMemoryUnderOtherNames) {
  struct : nn::Module {
    Tensor a = Tensor({1.f, 2.f}), b = Tensor({3.f, 4.f}), c = Tensor({5.f, 6.f});
    TG_FIELDS(a, b, c)
  } m;
  load_state_dict(m, StateDict{{"a", m.b}, {"b", m.c}, {"c", m.a}}, {.verbose = false});
  EXPECT_EQ(m.a.tolist(), (std::vector<float>{3, 4}));
  EXPECT_EQ(m.b.tolist(), (std::vector<float>{5, 6}));
  EXPECT_EQ(m.c.tolist(), (std::vector<float>{1, 2}));
}

/// The loss of one row of logits (0, 0, 0, 0), which is log 4 for every class.
TEST(Labels, ThatAreNoClassHaveNoLossOf0) {
  const Tensor logits = Tensor::zeros({3, 4}).contiguous().realize(), logs = logits.log_softmax();
  const float one = std::log(4.0F);
  struct Loss {
    const char* name;
    std::function<Tensor(const Tensor& y, Reduction r)> of;
  };
  const std::vector<Loss> all = {
      {"sparse", [&](const Tensor& y, Reduction r) { return logits.sparse_categorical_crossentropy(y, {.reduction = r}); }},
      {"cross_entropy", [&](const Tensor& y, Reduction r) { return logits.cross_entropy(y, {.reduction = r}); }},
      {"nll_loss", [&](const Tensor& y, Reduction r) { return logs.nll_loss(y, {}, {.reduction = r}); }},
  };
  for (const Loss& loss : all) {
    SCOPED_TRACE(loss.name);
    const Tensor ignored({1, -100, 3});
    EXPECT_NEAR(loss.of(ignored, Reduction::mean).item(), one, 1e-6);
    EXPECT_NEAR(loss.of(ignored, Reduction::sum).item(), 2 * one, 1e-6);
    EXPECT_EQ(loss.of(ignored, Reduction::none).tolist()[1], 0);
    for (int bad : {4, 17, -1, -2}) {
      const Tensor known({0, bad, 3});
      EXPECT_THROW(loss.of(known, Reduction::mean), IndexError) << bad;
      const Tensor computed = (known * 1).contiguous();  // not in memory yet
      const auto losses = loss.of(computed, Reduction::none).tolist();
      EXPECT_TRUE(std::isnan(losses[1])) << bad;
      EXPECT_NEAR(losses[2], one, 1e-6);
      EXPECT_TRUE(std::isnan(loss.of(computed, Reduction::mean).item()));
    }
    EXPECT_THROW(loss.of(Tensor(std::vector<uint8_t>{0, 4, 1}), Reduction::mean), IndexError);
    EXPECT_TRUE(std::isnan(loss.of(Tensor(std::vector<uint8_t>{0, 4, 1}) + 0, Reduction::mean).item()));
    EXPECT_TRUE(std::isnan(loss.of(Tensor({-100, -100, -100}), Reduction::mean).item())) << "of none";
  }
  const auto step = jit([&](const Tensor& y) { return logits.cross_entropy(y); });
  for (int i = 0; i < 3; ++i) step(Tensor({0, 1, 2}));
  EXPECT_TRUE(std::isnan(step(Tensor({0, 9, 2})).item())) << "a replay";
}

TEST(Labels, MayNameAnotherIndexToIgnore) {
  const Tensor logits = Tensor::zeros({3, 4}).realize();
  const float one = std::log(4.0F);
  EXPECT_NEAR(logits.cross_entropy(Tensor({1, 255, 3}), {.ignore_index = 255}).item(), one, 1e-6);
  EXPECT_THROW(logits.cross_entropy(Tensor({1, -100, 3}), {.ignore_index = 255}), IndexError);
  EXPECT_NEAR(logits.sparse_categorical_crossentropy(Tensor({2, 2, 3}), {.ignore_index = 2, .reduction = Reduction::sum}).item(), one,
              1e-6);
}

TEST(ClipGradNorm, ScalesAllTogether) {
  Tensor a({3.f, 0.f}), b({0.f, 4.f}), without({1.f});
  const auto give = [&](double scale) {
    a.set_grad(Tensor({3.f, 0.f}) * scale);
    b.set_grad(Tensor({0.f, 4.f}) * scale);
  };
  give(2);
  EXPECT_NEAR(nn::utils::clip_grad_norm_({a, without, b}, 5).item(), 10, 1e-5);
  EXPECT_NEAR(a.grad().tolist()[0], 3, 1e-5);
  EXPECT_NEAR(b.grad().tolist()[1], 4, 1e-5);
  EXPECT_NEAR(nn::utils::clip_grad_norm_({a, b}, 50).item(), 5, 1e-5);
  EXPECT_NEAR(a.grad().tolist()[0], 3, 1e-5) << "nothing to clip";
  give(1);
  EXPECT_NEAR(nn::utils::clip_grad_norm_({a, b}, 2, {.norm_type = INFINITY}).item(), 4, 1e-6);
  EXPECT_NEAR(b.grad().tolist()[1], 2, 1e-5);
  give(1);
  EXPECT_NEAR(nn::utils::clip_grad_norm_({a, b}, 1, {.norm_type = 1}).item(), 7, 1e-5);
  give(NAN);
  EXPECT_THROW(nn::utils::clip_grad_norm_({a, b}, 1, {.error_if_nonfinite = true}), ValueError);
  EXPECT_THROW(nn::utils::clip_grad_norm_({a}, -1), ValueError);
  EXPECT_EQ(nn::utils::clip_grad_norm_({without}, 1).item(), 0);
  give(1);
  nn::utils::clip_grad_value_(std::vector{a, b}, 2.5);
  EXPECT_EQ(b.grad().tolist(), (std::vector<float>{0, 2.5}));
}

TEST(ClipGradNorm, BelongsIntoACapturedStep) {
  const auto train = Tensor::train();
  Tensor w = Tensor({1.f, 2.f}).realize(), plain = Tensor({1.f, 2.f}).realize();
  nn::optim::SGD optimizer(std::vector{w}, {.lr = 0.1});
  const auto step = jit([&](const Tensor& x) {
    optimizer.zero_grad();
    (w * x).sum().backward();
    const Tensor norm = nn::utils::clip_grad_norm_({w}, 1);
    optimizer.step();
    return norm;
  });
  for (int i = 1; i <= 4; ++i) EXPECT_NEAR(step(Tensor({3.f * float(i), 4.f * float(i)})).item(), 5 * i, 1e-4);
  EXPECT_TRUE(step.captured());
  EXPECT_NEAR(w.tolist()[0], 1 - 4 * 0.1 * 0.6, 1e-4);
  EXPECT_NEAR(w.tolist()[1], 2 - 4 * 0.1 * 0.8, 1e-4);
}

}  // namespace
}  // namespace tinygrad
