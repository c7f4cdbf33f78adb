#pragma once
/// What the trainings of `tg train` have in common.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tinygrad::apps {

struct TrainOptions {
  uint64_t seed = 0;
  int epochs = 0;
  std::string data = {};  ///< file or folder of the data set; empty: where it usually is
  std::string png = {};   ///< where to draw results; empty: nowhere
  bool fashion = false;   ///< Fashion-MNIST instead of MNIST
  bool json = false;
};

void train_digits(const TrainOptions& options);

/// The numbers below `count` in an order that is a function of the generator alone, on every machine.
std::vector<int32_t> shuffled(int64_t count, std::mt19937_64& random);

/// One JSON line for an epoch, if JSON is asked for.
void report_epoch(const TrainOptions& options, int epoch, double loss, double accuracy);
/// The last line.
void report_result(const TrainOptions& options, double test_accuracy);

}  // namespace tinygrad::apps
