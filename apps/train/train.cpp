#include "train/train.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

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
