#pragma once
/// Optimizers. Learning rate and state are tensors in memory: a step is the same program every time.

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
  /// parameter has a gradient.
  void step();
  /// The same, lazily: the tensors to realize.
  std::vector<Tensor> schedule_step();

  const std::vector<Tensor>& params() const { return params_; }
  Tensor lr;  ///< (1): assign to it to change the learning rate

 protected:
  /// Parameters that are no params (is_param_(false)) are left out. They get memory.
  Optimizer(std::span<const Tensor> params, double rate);
  /// Zeros like each parameter.
  std::vector<Tensor> state_like_params() const;
  /// Assigns to the parameter (params()[i], with the gradient `grad`) and to its state; returns what it assigned to.
  virtual std::vector<Tensor> update(size_t i, const Tensor& grad) = 0;
  /// Once a step, before the updates.
  virtual std::vector<Tensor> begin_step() { return {}; }

 private:
  std::vector<Tensor> params_;
};

struct SGDOptions {
  double lr = 0.001;
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool classic = false;  ///< the learning rate goes into the momentum
};

/// Stochastic gradient descent with momentum (Sutskever et al., 2013).
class TINYGRAD_EXPORT SGD : public Optimizer {
 public:
  explicit SGD(std::span<const Tensor> params, const SGDOptions& options = {});
  std::vector<Tensor> b;  ///< momentum, where there is one
  TG_FIELDS(lr, b)

 private:
  std::vector<Tensor> update(size_t i, const Tensor& grad) override;
  SGDOptions options_;
};

struct AdamOptions {
  double lr = 0.001;
  double b1 = 0.9, b2 = 0.999;
  double eps = 1e-8;
};
struct AdamWOptions {
  double lr = 0.001;
  double b1 = 0.9, b2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
class TINYGRAD_EXPORT AdamW : public Optimizer {
 public:
  explicit AdamW(std::span<const Tensor> params, const AdamWOptions& options = {});
  Tensor b1_t, b2_t;         ///< (1): b1 and b2 to the number of steps
  std::vector<Tensor> m, v;  ///< running means of gradient and squared gradient
  TG_FIELDS(lr, b1_t, b2_t, m, v)

 private:
  std::vector<Tensor> begin_step() override;
  std::vector<Tensor> update(size_t i, const Tensor& grad) override;
  AdamWOptions options_;
};

/// Kingma and Ba (2015).
class TINYGRAD_EXPORT Adam : public AdamW {
 public:
  explicit Adam(std::span<const Tensor> params, const AdamOptions& o = {}) : AdamW(params, {o.lr, o.b1, o.b2, o.eps, 0.0}) {}
};

}  // namespace tinygrad::nn::optim
