#pragma once
/// Optimizers. Learning rate and state are tensors in memory: a step is the same program every time, and a jitted one follows what is
/// assigned to them. State is float32, or float64 for parameters that are; a parameter is rounded to its dtype once a step.
///
/// Options that make no sense (a negative rate, a decay of 1, ...) throw ValueError.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tinygrad/module.h>
#include <tinygrad/tensor.h>

namespace tinygrad::nn::optim {

/// Updates parameters by their gradients. A Module: its state is saved and loaded as that of any other.
class TINYGRAD_EXPORT Optimizer : public Module {
 public:
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Forgets the gradients.
  void zero_grad();
  /// Updates the parameters that have a gradient, and computes them. Throws ValueError unless the option `training` is on, and if no
  /// parameter has a gradient; ShapeError for a gradient of another shape. Nothing has changed then.
  void step();
  /// The same, lazily: the tensors to realize.
  std::vector<Tensor> schedule_step();

  /// The tensors that are updated: those of a float dtype that are params (is_param()), each once.
  const std::vector<Tensor>& params() const { return params_; }
  /// The other tensors that were given, running statistics for example. A step computes them too.
  const std::vector<Tensor>& buffers() const { return buffers_; }
  /// The device of the state, on which updates are computed.
  const std::string& device() const { return device_; }
  bool fused() const { return fused_; }

  Tensor lr;  ///< (1), float32 or wider: assign to it to change the learning rate

 protected:
  struct Settings {
    double lr = 0.001;
    std::string device = {};
    std::optional<bool> fused = {};
  };
  /// Parameters get memory.
  Optimizer(std::span<const Tensor> params, const Settings& settings);
  /// An optimizer without state of its own.
  Optimizer(std::vector<Tensor> params, std::vector<Tensor> buffers);
  /// Zeros like each parameter, or as many as all together if fused.
  std::vector<Tensor> make_state() const;
  /// The learning rate in the dtype of a state.
  Tensor rate(DType dtype) const { return lr.cast(dtype); }

  /// The new value of `p`, which has the gradient `g` and the state `i`; both have the state's dtype and device. Assigns to its state
  /// and adds that to `changed`.
  virtual Tensor update(size_t i, const Tensor& p, const Tensor& g, std::vector<Tensor>& changed) = 0;
  /// Once a step, before the updates; returns what it assigned to.
  virtual std::vector<Tensor> begin_step() { return {}; }

 private:
  friend class OptimizerGroup;
  virtual void check_gradients() const;
  /// The tensors that were assigned to; none if there are no gradients.
  virtual std::vector<Tensor> updates();
  std::vector<Tensor> fused_updates();

  std::vector<Tensor> params_, buffers_;
  std::string device_;
  bool fused_ = false;
};

/// Several optimizers as one, each for its own parameters. Its `lr` is undefined; theirs count.
class TINYGRAD_EXPORT OptimizerGroup : public Optimizer {
 public:
  explicit OptimizerGroup(std::vector<std::shared_ptr<Optimizer>> group);
  Optimizer& operator[](size_t i) const { return *optimizers.at(i); }
  size_t size() const { return optimizers.size(); }
  const std::vector<std::shared_ptr<Optimizer>> optimizers;
  TG_FIELDS(optimizers)

 private:
  void check_gradients() const override;
  std::vector<Tensor> updates() override;
  Tensor update(size_t i, const Tensor& p, const Tensor& g, std::vector<Tensor>& changed) override;
};

struct LARSOptions {
  double lr = 0.001;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  int64_t ns_steps = 0;                      ///< of Newton and Schulz
  std::vector<double> ns_coefficients = {};  ///< none: the gradient is used as it is
  bool nesterov = false;
  bool classic = true;             ///< the learning rate goes into the momentum
  bool pre_wd = true;              ///< weight decay goes into the gradient, not directly into the parameter
  double tcoef = 0.001;            ///< how far a step may go, as a part of the parameter's norm; 0: no such limit
  std::string device = {};         ///< by default that of the first parameter
  std::optional<bool> fused = {};  ///< all parameters as one flat tensor; by default what FUSE_OPTIM says
};

/// Momentum with a rate for each layer (You, Gitman and Ginsburg, 2017). Fused, all parameters are one layer.
class TINYGRAD_EXPORT LARS : public Optimizer {
 public:
  explicit LARS(std::span<const Tensor> params, const LARSOptions& options = {});
  std::vector<Tensor> b;  ///< momentum, where there is one
  const LARSOptions& options() const { return options_; }
  TG_FIELDS(lr, b)

 private:
  Tensor update(size_t i, const Tensor& p, const Tensor& g, std::vector<Tensor>& changed) override;
  LARSOptions options_;
};

struct SGDOptions {
  double lr = 0.001;
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool classic = false;  ///< the learning rate goes into the momentum
  std::string device = {};
  std::optional<bool> fused = {};
};

/// Stochastic gradient descent with momentum (Sutskever et al., 2013).
class TINYGRAD_EXPORT SGD : public LARS {
 public:
  explicit SGD(std::span<const Tensor> params, const SGDOptions& options = {});
};

struct MuonOptions {
  double lr = 0.001;
  double momentum = 0.95;
  double weight_decay = 0.1;
  int64_t ns_steps = 5;
  std::vector<double> ns_coefficients = {3.4445, -4.775, 2.0315};
  bool nesterov = true;
  std::string device = {};
  std::optional<bool> fused = {};  ///< must not be true
};

/// Momentum made orthogonal by Newton and Schulz's iteration (Jordan et al., 2024), for parameters of at least one axis: the first against
/// all others.
class TINYGRAD_EXPORT Muon : public LARS {
 public:
  explicit Muon(std::span<const Tensor> params, const MuonOptions& options = {});
};

struct LAMBOptions {
  double lr = 0.001;
  double b1 = 0.9, b2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0.0;
  bool adam = false;  ///< no rate for each layer: AdamW
  std::string device = {};
  std::optional<bool> fused = {};
};

/// Adam with a rate for each layer (You et al., 2020). Fused, all parameters are one layer.
class TINYGRAD_EXPORT LAMB : public Optimizer {
 public:
  explicit LAMB(std::span<const Tensor> params, const LAMBOptions& options = {});
  Tensor b1_t, b2_t;         ///< (1): b1 and b2 to the number of steps
  std::vector<Tensor> m, v;  ///< running means of gradient and squared gradient
  const LAMBOptions& options() const { return options_; }
  TG_FIELDS(lr, b1_t, b2_t, m, v)

 private:
  std::vector<Tensor> begin_step() override;
  Tensor update(size_t i, const Tensor& p, const Tensor& g, std::vector<Tensor>& changed) override;
  LAMBOptions options_;
};

struct AdamWOptions {
  double lr = 0.001;
  double b1 = 0.9, b2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  std::string device = {};
  std::optional<bool> fused = {};
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
class TINYGRAD_EXPORT AdamW : public LAMB {
 public:
  explicit AdamW(std::span<const Tensor> params, const AdamWOptions& options = {});
};

struct AdamOptions {
  double lr = 0.001;
  double b1 = 0.9, b2 = 0.999;
  double eps = 1e-8;
  std::string device = {};
  std::optional<bool> fused = {};
};

/// Kingma and Ba (2015).
class TINYGRAD_EXPORT Adam : public LAMB {
 public:
  explicit Adam(std::span<const Tensor> params, const AdamOptions& options = {});
};

}  // namespace tinygrad::nn::optim
