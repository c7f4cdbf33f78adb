#include <tinygrad/optim.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include <tinygrad/device.h>
#include <tinygrad/errors.h>

#include "base/options.h"
#include "nn/require.h"

namespace tinygrad::nn::optim {

namespace {

void require_not_negative(std::string_view what, double got) { require(got >= 0, "optimizer", what, got, "at least 0"); }  // NaN is not
void require_decay(std::string_view what, double got) { require(got >= 0 && got < 1, "optimizer", what, got, "at least 0 and below 1"); }

DType state_dtype(const Tensor& param) { return least_upper_dtype(param.dtype(), DType::float32); }

Tensor on(const std::string& device, const Tensor& t) { return t.device() == device ? t : t.to(device); }

Tensor norm(const Tensor& t) { return t.cast(state_dtype(t)).square().sum().sqrt(); }

/// What an update is computed of: where a parameter is divided, of the parts that each device has.
Tensor parts_of(const Tensor& param) {
  const Tensor value = param.detach();
  return param.devices().size() > 1 ? value.shard_like(param) : value;
}

/// The learning rate has an axis, which a parameter of one number may not have.
Tensor shaped_as(const Tensor& param, const Tensor& x) { return param.ndim() == 0 ? x.reshape({}) : x; }

/// a / b where both norms are above 0, else 1.
Tensor trust_ratio(const Tensor& a, const Tensor& b, const Tensor& ratio) { return (a > 0).where((b > 0).where(ratio, 1.0), 1.0); }

}  // namespace

Optimizer::Optimizer(std::span<const Tensor> params, const Settings& settings)
    : fused_(settings.fused.value_or(current_options().fuse_optim)) {
  require_not_negative("the learning rate", settings.lr);
  std::unordered_set<const void*> seen;
  for (const Tensor& p : params)
    if (seen.insert(&tinygrad::detail::cell_of(p)).second) (p.is_param() && p.is_floating_point() ? params_ : buffers_).push_back(p);
  if (params_.empty()) throw ValueError("optimizer: got no parameters: no float tensor that is_param()");
  device_ = settings.device.empty() ? params_[0].device() : canonical_device(settings.device);
  const DType dtype = least_upper_dtype(parse_dtype(current_options().default_float), DType::float32);
  lr = Tensor({settings.lr}, {.dtype = dtype, .device = device_}).is_param_(false);
  Tensor::realize(params_);
}

Optimizer::Optimizer(std::vector<Tensor> params, std::vector<Tensor> buffers) : params_(std::move(params)), buffers_(std::move(buffers)) {}

void Optimizer::zero_grad() {
  for (const Tensor& p : params_) p.set_grad({});
}

void Optimizer::step() { Tensor::realize(schedule_step()); }

std::vector<Tensor> Optimizer::schedule_step() {
  if (!current_options().training)
    throw ValueError(
        "optimizer: step() while training is off; open a scope with Context training{{.training = true}}, in Python `with "
        "Context(TRAINING=1)`");
  if (lr.defined() && lr.numel() != 1)
    throw ShapeError(fmt::format("optimizer: the learning rate is {}, expects one element", lr.to_string()));
  check_gradients();
  std::vector<Tensor> changed = updates();
  if (changed.empty()) throw ValueError("optimizer: no parameter has a gradient; call backward() first");
  changed.insert(changed.end(), buffers_.begin(), buffers_.end());
  return changed;
}

void Optimizer::check_gradients() const {
  size_t missing = 0;
  for (size_t i = 0; i < params_.size(); ++i) {
    const Tensor grad = params_[i].grad();
    if (!grad.defined())
      ++missing;
    else if (!grad.is_floating_point())
      throw DTypeError(fmt::format("optimizer: parameter {} is {}, its gradient {}; give it one of a float dtype", i,
                                   params_[i].to_string(), grad.to_string()));
    else if (grad.shape() != params_[i].shape())
      throw ShapeError(fmt::format("optimizer: parameter {} is {}, its gradient {}; give it one of the same shape", i,
                                   params_[i].to_string(), grad.to_string()));
  }
  if (fused_ && missing != 0 && missing != params_.size())
    throw ValueError(fmt::format("optimizer: {} of {} parameters have no gradient, which a fused one needs", missing, params_.size()));
}

std::vector<Tensor> Optimizer::updates() {
  if (fused_) return fused_updates();
  std::vector<Tensor> changed;
  for (size_t i = 0; i < params_.size(); ++i) {
    Tensor p = params_[i];
    const Tensor grad = p.grad();
    if (!grad.defined()) continue;
    if (changed.empty()) changed = begin_step();
    const DType dtype = state_dtype(p);
    std::vector<Tensor> state;
    Tensor next = update(i, on(device_, parts_of(p)).cast(dtype), on(device_, grad.detach()).cast(dtype), state);
    next = shaped_as(p, next);
    p.assign(on(p.device(), next.cast(p.dtype())).detach());
    changed.push_back(p);
    changed.insert(changed.end(), state.begin(), state.end());
  }
  return changed;
}

std::vector<Tensor> Optimizer::fused_updates() {
  std::vector<Tensor> values, grads;
  for (const Tensor& p : params_) {
    if (!p.grad().defined()) return {};
    values.push_back(on(device_, p.detach()).flatten());
    grads.push_back(on(device_, p.grad().detach()).contiguous().flatten());
  }
  const Tensor all = Tensor::cat(values);
  const DType dtype = state_dtype(all);
  std::vector<Tensor> changed = begin_step();
  const Tensor next = update(0, all.cast(dtype), Tensor::cat(grads).cast(dtype), changed).contiguous();
  int64_t begin = 0;
  for (Tensor p : params_) {
    const int64_t end = begin + p.numel();
    p.assign(on(p.device(), next.shrink({{begin, end}}).reshape(p.shape()).cast(p.dtype())).detach());
    changed.push_back(p);
    begin = end;
  }
  return changed;
}

std::vector<Tensor> Optimizer::make_state() const {
  std::vector<Tensor> out;
  const auto add = [&](const Tensor& zeros) { out.push_back(zeros.clone().is_param_(false)); };
  const auto zeros = [&](const Sizes& shape, DType dtype) { return Tensor::zeros(shape, {.dtype = dtype, .device = device_}); };
  const auto zeros_of = [&](const Tensor& p) {  // divided as the parameter is
    const Tensor of_one = zeros(p.shape(), state_dtype(p));
    return p.devices().size() > 1 && p.device() == device_ ? of_one.shard_like(p) : of_one;
  };
  if (fused_) {
    int64_t count = 0;
    DType dtype = DType::float32;
    for (const Tensor& p : params_) {
      count += p.numel();
      dtype = least_upper_dtype(dtype, p.dtype());
    }
    add(zeros({count}, dtype));
  } else {
    for (const Tensor& p : params_) add(zeros_of(p));
  }
  Tensor::realize(out);
  return out;
}

namespace {

std::vector<Tensor> all_of(const std::vector<std::shared_ptr<Optimizer>>& group, const std::vector<Tensor>& (Optimizer::*which)() const) {
  std::vector<Tensor> out;
  for (const auto& o : group) {
    if (!o) throw ValueError("OptimizerGroup: got a null pointer");
    const auto& tensors = ((*o).*which)();
    out.insert(out.end(), tensors.begin(), tensors.end());
  }
  return out;
}

}  // namespace

OptimizerGroup::OptimizerGroup(std::vector<std::shared_ptr<Optimizer>> group)
    : Optimizer(all_of(group, &Optimizer::params), all_of(group, &Optimizer::buffers)), optimizers(std::move(group)) {
  if (optimizers.empty()) throw ValueError("OptimizerGroup: got no optimizers");
  std::unordered_set<const void*> seen;
  for (const Tensor& p : params())
    if (!seen.insert(&tinygrad::detail::cell_of(p)).second)
      throw ValueError(fmt::format("OptimizerGroup: {} is a parameter of two optimizers", p.to_string()));
}

void OptimizerGroup::check_gradients() const {
  for (const auto& o : optimizers) o->check_gradients();
}

std::vector<Tensor> OptimizerGroup::updates() {
  std::vector<Tensor> changed;
  for (const auto& o : optimizers) {
    const std::vector<Tensor> more = o->updates();
    changed.insert(changed.end(), more.begin(), more.end());
  }
  return changed;
}

Tensor OptimizerGroup::update(size_t, const Tensor&, const Tensor&, std::vector<Tensor>&) {
  throw InternalError("OptimizerGroup: its optimizers update");
}

LARS::LARS(std::span<const Tensor> params, const LARSOptions& options)
    : Optimizer(params, {options.lr, options.device, options.fused}), options_(options) {
  require_not_negative("the momentum", options.momentum);
  require_not_negative("the weight decay", options.weight_decay);
  require_not_negative("tcoef", options.tcoef);
  require_not_negative("ns_steps", static_cast<double>(options.ns_steps));
  if (options.nesterov && options.momentum == 0) throw ValueError("optimizer: nesterov needs a momentum above 0");
  if (!options.ns_coefficients.empty()) {
    if (fused()) throw ValueError("Muon: cannot be fused, as it treats each parameter as a matrix");
    for (const Tensor& p : this->params())
      if (p.ndim() == 0) throw ShapeError(fmt::format("Muon: got the parameter {}, expects at least one axis", p.to_string()));
  }
  if (options.momentum != 0) b = make_state();
}

Tensor LARS::update(size_t i, const Tensor& p, const Tensor& grad, std::vector<Tensor>& changed) {
  const LARSOptions& o = options_;
  Tensor scale = rate(p.dtype());
  if (o.tcoef != 0) {
    const Tensor r1 = norm(p), r2 = norm(grad);
    scale = scale * trust_ratio(r1, r2, r1 * o.tcoef / (r2 + r1 * o.weight_decay));
  }
  Tensor g = o.pre_wd && o.weight_decay != 0 ? grad + p * o.weight_decay : grad;
  if (o.classic) g = shaped_as(p, g * scale);
  if (!b.empty()) {
    b[i].assign(b[i] * o.momentum + g);
    g = o.nesterov ? g + b[i] * o.momentum : b[i];
    changed.push_back(b[i]);
  }
  if (!o.ns_coefficients.empty()) g = g.reshape({g.size(0), -1}).newton_schulz(o.ns_steps, o.ns_coefficients).reshape(g.shape());
  const Tensor from = !o.pre_wd && o.weight_decay != 0 ? p * (1 - rate(p.dtype()) * o.weight_decay) : p;
  return from - (o.classic ? g : g * scale);
}

SGD::SGD(std::span<const Tensor> params, const SGDOptions& o)
    : LARS(params, {.lr = o.lr,
                    .momentum = o.momentum,
                    .weight_decay = o.weight_decay,
                    .nesterov = o.nesterov,
                    .classic = o.classic,
                    .tcoef = 0.0,
                    .device = o.device,
                    .fused = o.fused}) {}

Muon::Muon(std::span<const Tensor> params, const MuonOptions& o)
    : LARS(params, {.lr = o.lr,
                    .momentum = o.momentum,
                    .weight_decay = o.weight_decay,
                    .ns_steps = o.ns_steps,
                    .ns_coefficients = o.ns_coefficients,
                    .nesterov = o.nesterov,
                    .classic = false,
                    .pre_wd = false,
                    .tcoef = 0.0,
                    .device = o.device,
                    .fused = o.fused}) {}

LAMB::LAMB(std::span<const Tensor> params, const LAMBOptions& options)
    : Optimizer(params, {options.lr, options.device, options.fused}), options_(options) {
  require_decay("b1", options.b1);
  require_decay("b2", options.b2);
  require_not_negative("eps", options.eps);
  require_not_negative("the weight decay", options.weight_decay);
  b1_t = Tensor({1.0}, {.dtype = DType::float32, .device = device()}).is_param_(false);
  b2_t = Tensor({1.0}, {.dtype = DType::float32, .device = device()}).is_param_(false);
  m = make_state();
  v = make_state();
}

std::vector<Tensor> LAMB::begin_step() {
  b1_t *= options_.b1;
  b2_t *= options_.b2;
  return {b1_t, b2_t};
}

Tensor LAMB::update(size_t i, const Tensor& p, const Tensor& g, std::vector<Tensor>& changed) {
  const LAMBOptions& o = options_;
  m[i].assign(m[i] * o.b1 + g * (1 - o.b1));
  v[i].assign(v[i] * o.b2 + g.square() * (1 - o.b2));
  changed.insert(changed.end(), {m[i], v[i]});
  const Tensor m_hat = m[i] / (1 - b1_t).cast(p.dtype()), v_hat = v[i] / (1 - b2_t).cast(p.dtype());
  Tensor up = m_hat / (v_hat.sqrt() + o.eps);
  if (o.weight_decay != 0) up = up + p * o.weight_decay;
  if (o.adam) return p - up * rate(p.dtype());
  const Tensor r1 = norm(p), r2 = norm(up);
  return p - up * (rate(p.dtype()) * trust_ratio(r1, r2, r1 / r2));
}

AdamW::AdamW(std::span<const Tensor> params, const AdamWOptions& o)
    : LAMB(params, {o.lr, o.b1, o.b2, o.eps, o.weight_decay, true, o.device, o.fused}) {}

Adam::Adam(std::span<const Tensor> params, const AdamOptions& o) : LAMB(params, {o.lr, o.b1, o.b2, o.eps, 0.0, true, o.device, o.fused}) {}

}  // namespace tinygrad::nn::optim
