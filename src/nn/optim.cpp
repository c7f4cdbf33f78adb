#include <tinygrad/errors.h>
#include <tinygrad/optim.h>

#include "base/options.h"

namespace tinygrad::nn::optim {

Optimizer::Optimizer(std::span<const Tensor> params, double rate) {
  for (const Tensor& p : params)
    if (p.is_param() && p.is_floating_point()) params_.push_back(p);
  if (params_.empty()) throw ValueError("optimizer: got no parameters");
  lr = Tensor({rate}, {.device = params_[0].device()}).is_param_(false);
  Tensor::realize(params_);
}

void Optimizer::zero_grad() {
  for (const Tensor& p : params_) p.set_grad({});
}

void Optimizer::step() { Tensor::realize(schedule_step()); }

std::vector<Tensor> Optimizer::schedule_step() {
  if (!current_options().training)
    throw ValueError("optimizer: step() while training is off; open a scope with Context training{{.training = true}}");
  std::vector<Tensor> changed;
  for (size_t i = 0; i < params_.size(); ++i) {
    const Tensor grad = params_[i].grad();
    if (!grad.defined()) continue;
    if (changed.empty()) changed = begin_step();
    const std::vector<Tensor> more = update(i, grad.detach());
    changed.insert(changed.end(), more.begin(), more.end());
  }
  if (changed.empty()) throw ValueError("optimizer: no parameter has a gradient; call backward() first");
  return changed;
}

std::vector<Tensor> Optimizer::state_like_params() const {
  std::vector<Tensor> out;
  for (const Tensor& p : params_) out.push_back(p.zeros_like().clone().is_param_(false));
  Tensor::realize(out);
  return out;
}

SGD::SGD(std::span<const Tensor> params, const SGDOptions& options) : Optimizer(params, options.lr), options_(options) {
  if (options.momentum != 0) b = state_like_params();
}

std::vector<Tensor> SGD::update(size_t i, const Tensor& grad) {
  Tensor p = params()[i];
  const Tensor rate = lr.cast(p.dtype());
  Tensor g = options_.weight_decay != 0 ? grad + p.detach() * options_.weight_decay : grad;
  if (options_.classic) g = g * rate;
  std::vector<Tensor> changed{p};
  if (!b.empty()) {
    b[i].assign(b[i] * options_.momentum + g);
    g = options_.nesterov ? g + b[i] * options_.momentum : b[i];
    changed.push_back(b[i]);
  }
  p.assign((p - (options_.classic ? g : g * rate)).detach());
  return changed;
}

AdamW::AdamW(std::span<const Tensor> params, const AdamWOptions& options) : Optimizer(params, options.lr), options_(options) {
  const std::string device = this->params()[0].device();
  b1_t = Tensor({1.0}, {.dtype = DType::float32, .device = device}).is_param_(false);
  b2_t = Tensor({1.0}, {.dtype = DType::float32, .device = device}).is_param_(false);
  m = state_like_params();
  v = state_like_params();
}

std::vector<Tensor> AdamW::begin_step() {
  b1_t *= options_.b1;
  b2_t *= options_.b2;
  return {b1_t, b2_t};
}

std::vector<Tensor> AdamW::update(size_t i, const Tensor& grad) {
  Tensor p = params()[i];
  const Tensor g = grad.cast(m[i].dtype());
  m[i].assign(m[i] * options_.b1 + g * (1 - options_.b1));
  v[i].assign(v[i] * options_.b2 + g.square() * (1 - options_.b2));
  const Tensor m_hat = m[i] / (1 - b1_t).cast(m[i].dtype()), v_hat = v[i] / (1 - b2_t).cast(v[i].dtype());
  Tensor up = m_hat / (v_hat.sqrt() + options_.eps);
  if (options_.weight_decay != 0) up = up + p.detach() * options_.weight_decay;
  p.assign((p - up * lr.cast(up.dtype())).cast(p.dtype()).detach());
  return {p, m[i], v[i]};
}

}  // namespace tinygrad::nn::optim
