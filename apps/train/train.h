#pragma once
/// What the trainings of `tg train` have in common.

#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tinygrad/module.h>
#include <tinygrad/progress.h>
#include <tinygrad/state.h>
#include <tinygrad/tensor.h>

#include "common/image_set.h"

namespace tinygrad::apps {

struct TrainOptions {
  uint64_t seed = 0;
  int epochs = 1;
  std::string data = {};  ///< file or folder of the data set; empty: where it usually is
  std::string png = {};   ///< where to draw results; empty: nowhere
  bool fashion = false;   ///< Fashion-MNIST instead of MNIST
  bool json = false;
  int shards = 1;               ///< parts of each batch, whose gradients are added up in their order
  int devices = 1;              ///< on which the shards are, neighbours together
  std::string checkpoint = {};  ///< folder to save to after each epoch, and to go on from; empty: none
};

/// The devices of the shards: the default one and those that follow it, or where there are ranks, the default one of each of them. Rank 0
/// alone shows results.
std::vector<std::string> devices_of_shards(const TrainOptions& options);

void train_digits(const TrainOptions& options);
void train_mnist(const TrainOptions& options);

/// What a training saves after each epoch, so that it goes on there when it is started again.
class Checkpoints {
 public:
  /// `program` is the training's name, of which, with its options, a checkpoint has to be.
  Checkpoints(const TrainOptions& options, std::string program, const nn::Module& net, const nn::Module& optimizer,
              std::mt19937_64& random);
  /// Loads the last one, and gives the number of epochs that are done. ValueError for one of another program or other options.
  int resume();
  void save(int epochs) const;

 private:
  std::map<std::string, std::string> facts() const;
  nn::state::StateDict tensors() const;

  const TrainOptions& options_;
  const std::string program_;
  const nn::Module &net_, &optimizer_;
  std::mt19937_64& random_;
};

/// The numbers below `count` in an order that is a function of the generator alone, on every machine.
std::vector<int32_t> shuffled(int64_t count, std::mt19937_64& random);

/// How many scores (batch, classes) are highest for the right class.
Tensor count_right(const Tensor& scores, const Tensor& answers);

/// Means over an epoch, shown by a bar that moves on with each batch.
class EpochMeter {
 public:
  explicit EpochMeter(ProgressBar& bar) : bar_(bar) {}
  /// A batch: its mean loss, and how many of its images were right.
  void add(const Tensor& loss, const Tensor& right, int64_t images);
  /// A line about the epoch, if JSON is asked for.
  void report(const TrainOptions& options, int epoch) const;

 private:
  ProgressBar& bar_;
  double loss_ = 0, right_ = 0;
  int64_t batches_ = 0, images_ = 0;
};

/// Draws the picture, if there is a path for it, and prints the test's accuracy as the last line.
void report_result(const TrainOptions& options, const ImageSet& test, std::span<const int32_t> predicted);

}  // namespace tinygrad::apps
