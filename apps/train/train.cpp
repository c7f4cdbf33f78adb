#include "train/train.h"

#include <fmt/core.h>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include <tinygrad/checkpoint.h>
#include <tinygrad/comm.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>

#include "common/json_line.h"
#include "common/sheet.h"

namespace tinygrad::apps {

namespace {

double rounded(double x) { return std::round(x * 1e4) / 1e4; }

}  // namespace

std::vector<std::string> devices_of_shards(const TrainOptions& options) {
  if (const int ranks = world_size(); ranks > 1 && options.shards > 1) {
    if (options.devices > 1) throw ValueError("--devices: there are ranks, each with one device");
    std::vector<std::string> names;
    for (int s = 0; s < options.shards; ++s)
      names.push_back(canonical_device(fmt::format("{}@{}", default_device(), s * std::min(ranks, options.shards) / options.shards)));
    return names;
  }
  if (options.devices > options.shards)
    throw ValueError(fmt::format("--devices {}: there are {} shards for them; give --shards", options.devices, options.shards));
  const std::string first = default_device(), kind = first.substr(0, first.find(':'));
  const int index = kind == first ? 0 : std::stoi(first.substr(kind.size() + 1));
  std::vector<std::string> names;
  for (int s = 0; s < options.shards; ++s)
    names.push_back(canonical_device(fmt::format("{}:{}", kind, index + s * options.devices / options.shards)));
  return names;
}

Checkpoints::Checkpoints(const TrainOptions& options, std::string program, const nn::Module& net, const nn::Module& optimizer,
                         std::mt19937_64& random)
    : options_(options), program_(std::move(program)), net_(net), optimizer_(optimizer), random_(random) {}

std::map<std::string, std::string> Checkpoints::facts() const {
  return {{"program", program_},
          {"seed", std::to_string(options_.seed)},
          {"epochs", std::to_string(options_.epochs)},
          {"shards", std::to_string(options_.shards)}};
}

nn::state::StateDict Checkpoints::tensors() const {
  nn::state::StateDict all = nn::state::get_state_dict(net_, "net.");
  all.merge(nn::state::get_state_dict(optimizer_, "optimizer."));
  return all;
}

int Checkpoints::resume() {
  if (options_.checkpoint.empty()) return 0;
  std::error_code error;
  std::filesystem::create_directories(options_.checkpoint, error);
  if (error || ::access(options_.checkpoint.c_str(), W_OK) != 0)
    throw IoError(fmt::format("--checkpoint {}: {}", options_.checkpoint, error ? error.message() : "it cannot be written to"));
  const std::optional<nn::state::Checkpoint> last = nn::state::load_checkpoint(options_.checkpoint);
  if (!last) return 0;
  const auto said = [&](const std::string& name) {
    const auto at = last->metadata.find(name);
    if (at == last->metadata.end()) throw ValueError(fmt::format("{}: not a checkpoint of `tg train`: it has no {}", last->path, name));
    return at->second;
  };
  for (const auto& [name, value] : facts())
    if (const std::string was = said(name); was != value)
      throw ValueError(
          fmt::format("{}: a checkpoint of {} {}, here it is {}; give the same options, or another folder", last->path, name, was, value));
  nn::state::StateDict saved = last->tensors;
  const auto take = [&](const char* name) {
    const auto found = saved.extract(name);
    if (found.empty()) throw ValueError(fmt::format("{}: there is no '{}' in the checkpoint", last->path, name));
    return found.mapped();
  };
  Tensor::set_rng_state(take("random"));
  std::istringstream order(said("order"));
  if (!(order >> random_)) throw FormatError(fmt::format("{}: its order is not the state of a generator", last->path));
  nn::state::StateDict of_net, of_optimizer;
  for (const auto& [name, tensor] : saved) {
    const bool is_of_net = name.starts_with("net.");
    (is_of_net ? of_net : of_optimizer).emplace(name.substr(name.find('.') + 1), tensor);
  }
  nn::state::load_state_dict(net_, of_net, {.verbose = false});
  nn::state::load_state_dict(optimizer_, of_optimizer, {.verbose = false});
  if (rank() == 0) fmt::print(stderr, "going on behind epoch {} of {}, from {}\n", last->step, options_.epochs, last->path);
  return static_cast<int>(last->step);
}

void Checkpoints::save(int epochs) const {
  if (options_.checkpoint.empty()) return;
  nn::state::StateDict all = tensors();
  all.emplace("random", Tensor::get_rng_state());
  std::map<std::string, std::string> metadata = facts();
  std::ostringstream order;
  order << random_;
  metadata.emplace("order", order.str());
  nn::state::save_checkpoint(options_.checkpoint, epochs, all, metadata);
}

std::vector<int32_t> shuffled(int64_t count, std::mt19937_64& random) {
  std::vector<int32_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

Tensor count_right(const Tensor& scores, const Tensor& answers) { return (scores.detach().argmax(1) == answers).to_int().sum(); }

void EpochMeter::add(const Tensor& loss, const Tensor& right, int64_t images) {
  loss_ += loss.item<float>();
  right_ += right.item<int32_t>();
  ++batches_;
  images_ += images;
  bar_.set_postfix(fmt::format("loss {:.4f}, accuracy {:.2f} %", loss_ / double(batches_), 100 * right_ / double(images_)));
  bar_.update();
}

void EpochMeter::report(const TrainOptions& options, int epoch) const {
  if (options.json && rank() == 0)
    print_json({{"epoch", epoch}, {"loss", rounded(loss_ / double(batches_))}, {"accuracy", rounded(right_ / double(images_))}});
}

void report_result(const TrainOptions& options, const ImageSet& test, std::span<const int32_t> predicted) {
  if (rank() != 0) return;
  int64_t right = 0;
  for (size_t i = 0; i < predicted.size(); ++i) right += predicted[i] == test.labels[i];
  const double accuracy = double(right) / double(test.size());
  if (options.json)
    print_json({{"test_accuracy", rounded(accuracy)}});
  else
    fmt::print("test accuracy: {:.2f} %\n", accuracy * 100);
  std::fflush(stdout);  // a picture that cannot be written loses nothing else
  if (!options.png.empty()) {
    write_sheet(options.png, test, predicted);
    fmt::print(stderr, "wrote {}\n", options.png);
  }
}

}  // namespace tinygrad::apps
