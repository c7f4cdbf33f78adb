#pragma once
/// Learning rates that change from step to step. A scheduler assigns to the rate of its optimizer, which is a tensor in memory: a jitted
/// step follows it, and a scheduler may itself step inside of a jitted function, but for LambdaLR. Each is a Module, so that it is saved
/// and loaded with the optimizer; then it goes on where it was. Values and names are PyTorch's.
///
/// The optimizer must outlive its scheduler. Options that make no sense throw ValueError.

#include <cstdint>
#include <functional>
#include <vector>

#include <tinygrad/optim.h>

namespace tinygrad::nn::optim {

/// The base of those whose rate follows from the number of steps. One is made with the rate that its optimizer has then, and sets the rate
/// of step 0.
class TINYGRAD_EXPORT LRScheduler : public Module {
 public:
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// To the next rate.
  void step();
  /// The same, lazily: the tensors to realize.
  std::vector<Tensor> schedule_step();
  /// The rate after as many steps as `epoch` says, (1), of the dtype of `base_lr`.
  virtual Tensor get_lr() const = 0;

  Tensor epoch;    ///< (1), int32: steps so far
  Tensor base_lr;  ///< (1): the optimizer's rate at first
  TG_FIELDS(epoch, base_lr)

 protected:
  explicit LRScheduler(Optimizer& optimizer);
  /// Sets the rate of step 0: for the constructor of what implements get_lr().
  void start();
  /// `epoch` in the dtype of `base_lr`.
  Tensor steps() const { return epoch.cast(base_lr.dtype()); }

 private:
  Optimizer& optimizer_;
};

/// The base rate times gamma for each milestone that was reached.
class TINYGRAD_EXPORT MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);
  Tensor get_lr() const override;

 private:
  std::vector<int64_t> milestones_;
  double gamma_;
};

struct CosineAnnealingOptions {
  int64_t steps = 1;    ///< from the base rate to the end (PyTorch's T_max)
  double end_lr = 0.0;  ///< PyTorch's eta_min
};

/// Half a wave of the cosine from the base rate to `end_lr`, and back again, and so on (Loshchilov and Hutter, 2017).
class TINYGRAD_EXPORT CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingOptions& options);
  Tensor get_lr() const override;

 private:
  CosineAnnealingOptions options_;
};

struct CosineWarmupOptions {
  int64_t warmup_steps = 1;  ///< of a rate that grows from base / warmup_steps to the base rate
  int64_t decay_steps = 1;   ///< from there to the end
  double end_lr = 0.0;       ///< which stays
};

/// Linear growth to the base rate, then half a wave of the cosine (tinygrad's).
class TINYGRAD_EXPORT CosineAnnealingLRWithWarmup : public LRScheduler {
 public:
  CosineAnnealingLRWithWarmup(Optimizer& optimizer, const CosineWarmupOptions& options);
  Tensor get_lr() const override;

 private:
  CosineWarmupOptions options_;
};

enum class Anneal : uint8_t { cosine, linear };

struct OneCycleOptions {
  double max_lr = 0.01;
  int64_t total_steps = 2;
  double pct_start = 0.3;  ///< the part of the steps with a growing rate
  Anneal anneal = Anneal::cosine;
  double div_factor = 25;         ///< the first rate is max_lr / div_factor
  double final_div_factor = 1e4;  ///< the last is the first / final_div_factor
  bool three_phase = false;       ///< the way down is as long as the way up and leads to the first rate; the rest to the last
};

/// Up to the maximum and down (Smith and Topin, 2018); the base rate has no influence. The momentum stays as it is.
class TINYGRAD_EXPORT OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options);
  Tensor get_lr() const override;

 private:
  OneCycleOptions options_;
};

/// The base rate times a function of the number of steps. The function runs on the host: to step inside of a jitted function is
/// a JitError.
class TINYGRAD_EXPORT LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t step)> factor);
  Tensor get_lr() const override;

 private:
  std::function<double(int64_t)> factor_;
};

enum class PlateauMode : uint8_t { min, max };
enum class PlateauThreshold : uint8_t { rel, abs };

struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::min;  ///< whether a smaller metric is better
  double factor = 0.1;
  int64_t patience = 10;    ///< steps without anything better that are let pass
  double threshold = 1e-4;  ///< by how much a metric must be better: a part of the best, or a distance
  PlateauThreshold threshold_mode = PlateauThreshold::rel;
  int64_t cooldown = 0;  ///< steps after a reduction that don't count
  double min_lr = 0.0;
  double eps = 1e-8;  ///< a reduction by less is left out
};

/// Multiplies the rate by `factor` when a metric has not become better for a while.
class TINYGRAD_EXPORT ReduceLROnPlateau : public Module {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  ReduceLROnPlateau(const ReduceLROnPlateau&) = delete;
  ReduceLROnPlateau& operator=(const ReduceLROnPlateau&) = delete;

  /// One step with a metric, a tensor of one element.
  void step(const Tensor& metric);
  void step(double metric);
  /// The same, lazily: the tensors to realize.
  std::vector<Tensor> schedule_step(const Tensor& metric);

  Tensor best;                     ///< (1), of the dtype of the rate
  Tensor bad_steps, cooling_down;  ///< (1), int32: steps without anything better, and to go of the cooldown
  TG_FIELDS(best, bad_steps, cooling_down)

 private:
  Optimizer& optimizer_;
  ReduceLROnPlateauOptions options_;
};

}  // namespace tinygrad::nn::optim
