// Whole networks on our side of bench/kernels.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include <tinygrad/tinygrad.h>

#include "bench/measure.h"
#include "models.h"
#include "models/encoder.h"
#include "models/gpt2.h"
#include "models/mnist_net.h"
#include "models/mobile.h"
#include "models/resnet.h"

using namespace tinygrad;

namespace bench {

namespace {

using Tensors = std::vector<Tensor>;

/// The weights of a network in float64 while it lives.
class DoubleWeights {
 public:
  explicit DoubleWeights(const nn::Module& net) {
    for (const Tensor& t : nn::state::get_parameters(net)) {
      if (!t.is_floating_point()) continue;
      weights_.push_back(t);
      saved_.push_back(t.clone().realize());
    }
    for (Tensor& t : weights_) t.replace(t.to_double().realize());
  }
  ~DoubleWeights() {
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i].replace(saved_[i]);
  }
  DoubleWeights(const DoubleWeights&) = delete;
  DoubleWeights& operator=(const DoubleWeights&) = delete;

 private:
  Tensors weights_, saved_;
};

Tensor as_double(const Tensor& t) { return t.is_floating_point() ? t.to_double().realize() : t; }

/// Weights drawn once, not anew by each graph.
template <class Net>
std::shared_ptr<Net> realized(std::shared_ptr<Net> net) {
  const Tensors weights = nn::state::get_parameters(*net);
  Tensor::realize(weights);
  return net;
}

/// The largest difference divided by the root mean square.
double error_of(const std::vector<double>& got, const std::vector<double>& exact) {
  double largest = 0, squares = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double difference = std::abs(got[i] - exact[i]);
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
    squares += exact[i] * exact[i];
  }
  return largest / std::sqrt(squares / double(exact.size()));
}

/// What is timed, and how wrong its results are: of a call that replays what calls before it captured. How many operations a network is, a
/// peer tells.
Prepared checked(std::string title, std::function<void()> call, double error, double tolerance = 1e-3) {
  return {.call = std::move(call), .facts = {{"title", std::move(title)}, {"error_of_result", error}, {"tolerance", tolerance}}};
}

/// Writes what peers need to do the same work, and what comes out of it by float64: weights by their names, and the others here.
void share(const Json& c, const nn::Module& net, std::initializer_list<std::pair<std::string, Tensor>> others) {
  if (!c.contains("share")) return;
  nn::state::StateDict all = nn::state::get_state_dict(net);
  for (const auto& [name, tensor] : others) all[name] = tensor;
  nn::state::safe_save(all, c.at("share").get<std::string>());
}

template <class Net>
Prepared inference(const Json& c, std::string title, std::shared_ptr<Net> net, const Tensor& input) {
  realized(net);
  std::vector<double> exact;
  {
    const DoubleWeights wide(*net);
    exact = (*net)(as_double(input)).template tolist<double>();
  }
  share(c, *net, {{"input", input}, {"output", Tensor(exact)}});
  const auto run = [net](const Tensor& x) { return (*net)(x).realize(); };
  const auto step = std::make_shared<decltype(jit(run))>(jit(run));
  for (int i = 0; i < 2; ++i) (*step)(input);
  const std::vector<double> got = (*step)(input).template tolist<double>();
  return checked(std::move(title), [step, input] { (*step)(input); }, error_of(got, exact));
}

/// A training step of a network, as a function of an optimizer that returns the loss before the step.
template <class Optimizer, class Net>
auto training_step(const std::shared_ptr<Net>& net) {
  return [net](Optimizer& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = (*net)(x).sparse_categorical_crossentropy(y);
    loss.backward();
    optimizer.step();
    return loss.realize();
  };
}

/// Losses of four steps of which only the third, a replay where steps are captured, moves the weights: with Adam, weights whose gradients
/// are next to nothing go either way, and a few steps later the losses of different roundings have little in common.
std::vector<double> losses(nn::optim::Optimizer& optimizer, const std::function<double()>& step) {
  const Tensor rate = optimizer.lr.clone().realize();
  optimizer.lr.assign(optimizer.lr.zeros_like()).realize();
  std::vector<double> all;
  for (int i = 0; i < 4; ++i) {
    if (i == 2) optimizer.lr.assign(rate).realize();
    all.push_back(step());
  }
  return all;
}

/// The error is that of the loss after a step, divided by how far the step moved it.
template <class Optimizer, class Net, class Options>
Prepared training(const Json& c, std::string title, std::shared_ptr<Net> net, const Options& options, const Tensor& input,
                  const Tensor& answers) {
  realized(net);
  const auto train = training_step<Optimizer>(net);
  std::vector<double> exact;
  {
    const Context training{{.training = true}};
    const DoubleWeights wide(*net);
    Optimizer optimizer(nn::state::get_parameters(*net), options);
    exact = losses(optimizer, [&] { return train(optimizer, as_double(input), answers).template item<double>(); });
  }
  share(c, *net, {{"input", input}, {"answers", answers}, {"losses", Tensor(exact)}});
  const auto optimizer = std::make_shared<Optimizer>(nn::state::get_parameters(*net), options);
  const auto run = [optimizer, train](const Tensor& x, const Tensor& y) { return train(*optimizer, x, y); };
  const auto step = std::make_shared<decltype(jit(run))>(jit(run));
  const auto call = [step, input, answers] {
    const Context training{{.training = true}};
    return (*step)(input, answers).template item<double>();
  };
  const double error = std::abs(losses(*optimizer, call).back() - exact.back()) / std::abs(exact.front() - exact.back());
  return checked(std::move(title), [call] { call(); }, error, 1e-2);
}

Tensor images(int64_t batch, int64_t side) {
  Tensor t = Tensor::randn({batch, 3, side, side}).realize();
  return t.is_param_(false);
}
Tensor integers(const Sizes& shape, int64_t high, DType dtype) { return Tensor::randint(shape, 0, high, {.dtype = dtype}).realize(); }
Tensor pixels(int64_t batch) { return integers({batch, 1, 28, 28}, 256, DType::uint8); }

const nn::optim::SGDOptions momentum{.lr = 0.01, .momentum = 0.9};

/// A row of kernels that each need the one before: none can be merged with another.
Prepared replay(int64_t kernels, int64_t floats) {
  const Tensor input = Tensor::randn({floats}).realize();
  const auto run = [kernels](const Tensor& x) {
    Tensor y = x;
    for (int64_t i = 0; i < kernels; ++i) y = (y + 1).realize();
    return y;
  };
  const auto step = std::make_shared<decltype(jit(run))>(jit(run));
  for (int i = 0; i < 3; ++i) (*step)(input);
  GlobalCounters::reset();
  const Tensor result = (*step)(input);
  if (GlobalCounters::kernel_count != uint64_t(kernels))
    throw std::runtime_error("the replay has " + std::to_string(GlobalCounters::kernel_count) + " kernels");
  const std::vector<double> got = result.tolist<double>();
  std::vector<double> exact = input.tolist<double>();
  for (double& x : exact) x += double(kernels);
  Prepared replay = checked(
      "replay of " + std::to_string(kernels) + " kernels of " + std::to_string(floats) + " floats", [step, input] { (*step)(input); },
      error_of(got, exact));
  replay.facts["each"] = kernels;
  return replay;
}

}  // namespace

namespace {

struct Model {
  std::string name;
  Prepared (*prepare)(const Json& c, const Sizes& size);
};

std::string batch(int64_t size) { return ", batch " + std::to_string(size); }
std::string text(int64_t layers, int64_t batch_size, int64_t tokens) {
  return ", " + std::to_string(layers) + " layers" + batch(batch_size) + " of " + std::to_string(tokens);
}

/// Sets the statistics of normalizations to those of this input. By the first ones, a variance of 1, signals shrink from layer to layer
/// until the scores are the last bias alone, and say nothing of what is before it.
template <class Net>
void take_statistics(const Net& net, const Tensor& input) {
  nn::state::StateDict state = nn::state::get_state_dict(net);
  {
    const Context training{{.training = true}};
    std::vector<Tensor> all{net(input)};
    for (const auto& [name, t] : state) all.push_back(t);
    Tensor::realize(all);
  }
  for (auto& [name, t] : state) {  // a tenth is of the input, the rest of what was before
    if (name.ends_with("running_mean")) t.replace((t * 10).realize());
    if (name.ends_with("running_var")) t.replace((t * 10 - 9).realize());
  }
}

template <class Net>
Prepared vision(const Json& c, const char* title, int64_t count) {
  const auto net = std::make_shared<Net>();
  realized(net);
  const Tensor input = images(count, 224);
  take_statistics(*net, input);
  return inference(c, title + batch(count), net, input);
}

/// Sizes are layers, batch and tokens.
template <class Net>
Prepared language(const Json& c, const char* title, const Sizes& size, int64_t vocabulary) {
  return inference(c, title + text(size.at(0), size.at(1), size.at(2)), std::make_shared<Net>(size[0]),
                   integers({size[1], size[2]}, vocabulary, DType::int32));
}

template <class Net>
Prepared language_training(const Json& c, const char* title, const Sizes& size, int64_t vocabulary) {
  return training<nn::optim::SGD>(c, title + text(size.at(0), size.at(1), size.at(2)) + ", training step", std::make_shared<Net>(size[0]),
                                  momentum, integers({size[1], size[2]}, vocabulary, DType::int32),
                                  integers({size[1], size[2]}, vocabulary, DType::int32));
}

const std::vector<Model>& models() {
  using apps::BertBase, apps::gpt2::Gpt2, apps::gpt2::vocabulary;
  static const std::vector<Model> all{
      {"replay", [](const Json&, const Sizes& s) { return replay(s.at(0), s.at(1)); }},
      {"resnet18", [](const Json& c, const Sizes& s) { return vision<apps::ResNet18>(c, "ResNet-18", s.at(0)); }},
      {"resnet50", [](const Json& c, const Sizes& s) { return vision<apps::ResNet50>(c, "ResNet-50", s.at(0)); }},
      {"mobilenetv3", [](const Json& c, const Sizes& s) { return vision<apps::MobileNetV3>(c, "MobileNetV3-Large", s.at(0)); }},
      {"efficientnet", [](const Json& c, const Sizes& s) { return vision<apps::EfficientNetB0>(c, "EfficientNet-B0", s.at(0)); }},
      {"vit", [](const Json& c, const Sizes& s) { return vision<apps::VitB16>(c, "ViT-B/16", s.at(0)); }},
      {"bert", [](const Json& c, const Sizes& s) { return language<BertBase>(c, "BERT-base", s, BertBase::vocabulary); }},
      {"gpt2", [](const Json& c, const Sizes& s) { return language<Gpt2>(c, "GPT-2", s, vocabulary); }},
      {"train_mnist",
       [](const Json& c, const Sizes& s) {
         return training<nn::optim::Adam>(c, "MNIST conv net" + batch(s.at(0)) + ", training step", std::make_shared<apps::MnistNet>(),
                                          nn::optim::AdamOptions{}, pixels(s[0]), integers({s[0]}, 10, DType::uint8));
       }},
      {"train_resnet18",
       [](const Json& c, const Sizes& s) {
         return training<nn::optim::SGD>(c, "ResNet-18" + batch(s.at(0)) + " at " + std::to_string(s.at(1)) + ", training step",
                                         std::make_shared<apps::ResNet18>(), momentum, images(s[0], s[1]),
                                         integers({s[0]}, 1000, DType::int32));
       }},
      {"train_bert", [](const Json& c, const Sizes& s) { return language_training<BertBase>(c, "BERT", s, BertBase::vocabulary); }},
      {"train_gpt2", [](const Json& c, const Sizes& s) { return language_training<Gpt2>(c, "GPT-2", s, vocabulary); }},
  };
  return all;
}

}  // namespace

Prepared prepare_model(const Json& c) {
  const std::string name = c.at("kernel");
  for (const Model& m : models())
    if (m.name == name) return m.prepare(c, c.at("size"));
  throw std::runtime_error("has no " + name);
}

Json first_step() {
  const Context training{{.training = true}};
  const auto seed = uint64_t(std::chrono::system_clock::now().time_since_epoch().count());
  Tensor::manual_seed(seed);
  const auto start = std::chrono::steady_clock::now();
  const auto net = std::make_shared<apps::MnistNet>();
  nn::optim::Adam optimizer(nn::state::get_parameters(*net));
  const Tensor input = pixels(512), answers = integers({512}, 10, DType::uint8);
  const auto step = training_step<nn::optim::Adam>(net);
  const double got = step(optimizer, input, answers).item<double>();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto run = [&](const Tensor& x, const Tensor& y) { return step(optimizer, x, y); };
  auto captured = jit(run);
  const auto again = [&] { return seconds_of([&] { captured(input, answers).item<double>(); }, 1); };
  for (int i = 0; i < 2; ++i) again();
  const double own_seconds = std::min(again(), again());

  Tensor::manual_seed(seed);
  const auto same = realized(std::make_shared<apps::MnistNet>());
  const DoubleWeights wide(*same);
  const double exact = (*same)(as_double(input)).sparse_categorical_crossentropy(answers).item<double>();
  return {{"seconds", seconds},
          {"own_seconds", own_seconds},
          {"error_of_result", std::abs(got - exact) / std::abs(exact)},
          {"tolerance", 1e-3}};
}

Json first_search() {
  const apps::BenchCase c = apps::make_case({.kernel = "matmul", .size = {1024, 1024, 1024}});
  const apps::BenchWork work = apps::make_work(c);
  const Context beam{{.beam = 2}};
  const auto start = std::chrono::steady_clock::now();
  const apps::Replay replay(work);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const apps::Accuracy accuracy = apps::check_accuracy(c, work, replay.results());
  return {{"seconds", seconds}, {"error_of_result", accuracy.error}, {"tolerance", accuracy.tolerance}};
}

}  // namespace bench
