// Steps of optimizers, and gradients.
#include <fmt/core.h>

#include <set>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

/// Inputs are the rate, the number of updates, then all tensors, all gradients and each kind of state; outputs the same from the tensors on
/// but for gradients.
struct Step {
  const Call& c;
  size_t count;

  Step(const Call& call, size_t kinds) : c(call), count(call.input_count() < 2 ? 0 : (call.input_count() - 2) / kinds) {
    if (call.input_count() < 2 + kinds || (call.input_count() - 2) % kinds != 0) call.fail(fmt::format("{} inputs", call.input_count()));
  }
  Tensor rate() const { return c.tensor(0).reshape({}); }
  Tensor updates() const { return c.tensor(1).reshape({}).cast(DType::float32); }
  Tensor of(size_t kind, size_t i) const { return c.tensor(2 + kind * count + i); }
  Tensor gradient(size_t i) const { return of(1, i) + of(0, i) * c.attribute("norm_coefficient", 0.0); }
};

Results adagrad(Call& c) {
  const Step s(c, 3);
  const Tensor rate = s.rate() / (s.updates() * c.attribute("decay_factor", 0.0) + 1);
  Results tensors, squares;
  for (size_t i = 0; i < s.count; ++i) {
    const Tensor g = s.gradient(i), h = s.of(2, i) + g * g;
    tensors.emplace_back((s.of(0, i) - rate * g / (h.sqrt() + c.attribute("epsilon", 0.0))).cast(s.of(0, i).dtype()));
    squares.emplace_back(h);
  }
  tensors.insert(tensors.end(), squares.begin(), squares.end());
  return tensors;
}

Results adam(Call& c) {
  const Step s(c, 4);
  const double alpha = c.attribute("alpha", 0.9), beta = c.attribute("beta", 0.999), epsilon = c.attribute("epsilon", 0.0);
  const auto power = [&](double base) { return Tensor::full({}, base, {.dtype = DType::float32}).pow(s.updates()); };
  const Tensor corrected = s.rate() * (1 - power(beta)).sqrt() / (1 - power(alpha));
  const Tensor rate = (s.updates() > 0).where(corrected, s.rate());
  Results tensors, means, squares;
  for (size_t i = 0; i < s.count; ++i) {
    const Tensor g = s.gradient(i), v = s.of(2, i) * alpha + g * (1 - alpha), h = s.of(3, i) * beta + g * g * (1 - beta);
    const Tensor moved = s.of(0, i) - rate * v / (h.sqrt() + epsilon);
    tensors.emplace_back((moved * (1 - c.attribute("norm_coefficient_post", 0.0))).cast(s.of(0, i).dtype()));
    means.emplace_back(v);
    squares.emplace_back(h);
  }
  tensors.insert(tensors.end(), means.begin(), means.end());
  tensors.insert(tensors.end(), squares.begin(), squares.end());
  return tensors;
}

Results momentum(Call& c) {
  const Step s(c, 3);
  const double alpha = c.attribute("alpha", 0.0), beta = c.attribute("beta", 0.0);
  const bool is_nesterov = c.choice("mode", {"standard", "nesterov"}) == "nesterov";
  const Tensor factor = (s.updates() > 0).where(Tensor::full({}, beta, {.dtype = DType::float32}), 1.0);
  Results tensors, momenta;
  for (size_t i = 0; i < s.count; ++i) {
    const Tensor g = s.gradient(i), v = s.of(2, i) * alpha + g * factor;
    tensors.emplace_back((s.of(0, i) - s.rate() * (is_nesterov ? g + v * alpha : v)).cast(s.of(0, i).dtype()));
    momenta.emplace_back(v);
  }
  tensors.insert(tensors.end(), momenta.begin(), momenta.end());
  return tensors;
}

/// Of the value named `y`, computed before in this graph, with respect to those named `xs`; that `xs` are now the node's own inputs
/// changes nothing, as they are the same values.
Results gradient(Call& c) {
  const Value* y = c.scope().find(c.attribute("y", ""));
  if (!y) c.fail(fmt::format("nothing gives '{}'", c.attribute("y", "")));
  std::vector<Tensor> targets;
  for (const std::string& x : c.texts("xs")) {
    const Value* v = c.scope().find(x);
    if (!v) c.fail(fmt::format("nothing gives '{}'", x));
    targets.push_back(v->tensor());
  }
  const Tensor& of = y->tensor();
  Results out;
  for (const Tensor& g : of.gradient(targets, of.ones_like())) out.emplace_back(g);
  return out;
}

constexpr OperatorRow rows[] = {
    {training_domain, "Adagrad", 1, adagrad},
    {training_domain, "Adam", 1, adam},
    {training_domain, "Gradient", 1, gradient},
    {training_domain, "Momentum", 1, momentum},
};

}  // namespace

std::span<const OperatorRow> training_operators() { return rows; }

}  // namespace tinygrad::onnx
