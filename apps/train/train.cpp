// tg train: the command lines of the trainings, and what they print.
#include "train/train.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "commands.h"
#include "common/json_line.h"
#include "common/sheet.h"

namespace tinygrad::apps {

namespace {

double rounded(double x) { return std::round(x * 1e4) / 1e4; }

}  // namespace

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
  if (options.json)
    print_json({{"epoch", epoch}, {"loss", rounded(loss_ / double(batches_))}, {"accuracy", rounded(right_ / double(images_))}});
}

void report_result(const TrainOptions& options, const ImageSet& test, std::span<const int32_t> predicted) {
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

namespace {

/// A training with the options that all have.
CLI::App* add_training(CLI::App& train, const std::string& name, const std::string& about, TrainOptions& o,
                       void (*run)(const TrainOptions&)) {
  CLI::App* command = train.add_subcommand(name, about);
  command->add_option("--seed", o.seed, "Seed of everything random; the same seed gives the same result")->capture_default_str();
  command->add_option("--epochs", o.epochs, "Passes over the training data")->capture_default_str()->check(CLI::Range(1, 100000));
  command->add_option("--png", o.png, "Picture of test images with predictions, mistakes in red; empty: none")->capture_default_str();
  command->add_flag("--json", o.json, "Print one JSON object a line; the last has test_accuracy");
  command->callback([&o, run] { run(o); });
  return command;
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* train = app.add_subcommand("train", "Train a network and measure it on data it has not seen");
  train->require_subcommand(1);

  static TrainOptions digits{.epochs = 30, .png = "digits.png"}, mnist{.epochs = 1, .png = "mnist.png"};
  add_training(*train, "digits", "A convolutional network on 1,797 handwritten digits of 8x8 pixels", digits, train_digits)
      ->add_option("--data", digits.data, "CSV file of the digits, plain or .gz (default: the one that comes with tg)");
  CLI::App* command = add_training(*train, "mnist", "A convolutional network on MNIST or Fashion-MNIST", mnist, train_mnist);
  command->add_flag("--fashion", mnist.fashion, "Fashion-MNIST instead of MNIST");
  command->add_option("--data", mnist.data,
                      "Folder of the four IDX files, plain or .gz (default: they are downloaded into the cache folder)");
}

}  // namespace tinygrad::apps
