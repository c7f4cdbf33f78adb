// Recurrent networks: RNN, GRU and LSTM, whose steps are unrolled.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

using Activation = std::function<Tensor(const Tensor&)>;

Activation activation_named(const Call& c, const std::string& name, double alpha, double beta) {
  const auto given = [](double x, double otherwise) { return x == x ? x : otherwise; };
  if (name == "sigmoid") return [](const Tensor& x) { return x.sigmoid(); };
  if (name == "tanh") return [](const Tensor& x) { return x.tanh(); };
  if (name == "relu") return [](const Tensor& x) { return x.relu(); };
  if (name == "softsign") return [](const Tensor& x) { return x.softsign(); };
  if (name == "softplus") return [](const Tensor& x) { return x.softplus(); };
  if (name == "affine") return [=](const Tensor& x) { return x * given(alpha, 1) + given(beta, 0); };
  if (name == "scaledtanh") return [=](const Tensor& x) { return (x * given(beta, 1)).tanh() * given(alpha, 1); };
  if (name == "leakyrelu") return [=](const Tensor& x) { return x.leaky_relu(given(alpha, 0.01)); };
  if (name == "thresholdedrelu") return [=](const Tensor& x) { return (x > given(alpha, 1)).where(x, 0); };
  if (name == "hardsigmoid") return [=](const Tensor& x) { return x.hardsigmoid(given(alpha, 0.2), given(beta, 0.5)); };
  if (name == "elu") return [=](const Tensor& x) { return x.elu(given(alpha, 1)); };
  c.fail(fmt::format("the activation '{}'", name));
}

/// What the three networks have in common; `gates` is how many matrices of (hidden, ...) weights hold.
struct Network {
  const Call& c;
  int64_t gates;
  std::vector<std::string> defaults;  ///< activations of a direction
  std::vector<Activation> activations = {};

  Tensor x;  ///< (steps, batch, inputs)
  int64_t hidden, directions;
  bool is_batch_first;

  Network(const Call& call, int64_t gate_count, std::vector<std::string> names) : c(call), gates(gate_count), defaults(std::move(names)) {
    is_batch_first = c.flag("layout");
    x = is_batch_first ? c.tensor(0).transpose(0, 1) : c.tensor(0);
    const Sizes w = c.shape(1), r = c.shape(2);
    if (x.ndim() != 3 || w.size() != 3 || r.size() != 3)
      c.fail(fmt::format("({}) with weights ({}) and ({})", fmt::join(c.shape(0), ", "), fmt::join(w, ", "), fmt::join(r, ", ")));
    directions = c.choice("direction", {"forward", "reverse", "bidirectional"}) == "bidirectional" ? 2 : 1;
    hidden = r[2];
    c.attribute_within("hidden_size", hidden, hidden, hidden);
    if (w != Sizes{directions, gates * hidden, x.size(2)} || r != Sizes{directions, gates * hidden, hidden})
      c.fail(fmt::format("weights ({}) and ({}) for {} directions", fmt::join(w, ", "), fmt::join(r, ", "), directions));
    if (c.has(3) && c.shape(3) != Sizes{directions, 2 * gates * hidden}) c.fail(fmt::format("biases ({})", fmt::join(c.shape(3), ", ")));
    if (c.has(4) && c.shape(4) != Sizes{batch()}) c.fail(fmt::format("lengths ({})", fmt::join(c.shape(4), ", ")));
    const Sizes states = is_batch_first ? Sizes{batch(), directions, hidden} : Sizes{directions, batch(), hidden};
    for (size_t state : {size_t{5}, size_t{6}})
      if (c.has(state) && c.shape(state) != states) c.fail(fmt::format("a first state ({})", fmt::join(c.shape(state), ", ")));
    if (c.has(7) && c.shape(7) != Sizes{directions, 3 * hidden}) c.fail(fmt::format("peepholes ({})", fmt::join(c.shape(7), ", ")));
    if (steps() == 0) c.fail("no steps");
    c.take_steps(8 * steps() * directions);
    take_activations();
  }

  int64_t steps() const { return x.size(0); }
  int64_t batch() const { return x.size(1); }
  bool is_reversed(int64_t d) const { return d == 1 || c.attribute("direction", "forward") == "reverse"; }
  Tensor bounded(const Tensor& t) const {
    const double clip = c.attribute("clip", 0.0);
    return clip > 0 ? t.clamp(-clip, clip) : t;
  }
  /// Those that have parameters take them from the lists in their order.
  void take_activations() {
    std::vector<std::string> names = c.texts("activations");
    if (names.empty())
      for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
    if (names.size() != size_t(directions) * defaults.size()) c.fail(fmt::format("{} activations", names.size()));
    const std::vector<double> alphas = c.attribute("activation_alpha", std::vector<double>()),
                              betas = c.attribute("activation_beta", std::vector<double>());
    size_t next_alpha = 0, next_beta = 0;
    const auto next = [](const std::vector<double>& list, size_t& at, bool takes) {
      return takes && at < list.size() ? list[at++] : std::numeric_limits<double>::quiet_NaN();
    };
    for (std::string& n : names) {
      std::transform(n.begin(), n.end(), n.begin(), [](unsigned char letter) { return char(std::tolower(letter)); });
      const bool has_both = n == "affine" || n == "scaledtanh" || n == "hardsigmoid";
      const double alpha = next(alphas, next_alpha, has_both || n == "leakyrelu" || n == "thresholdedrelu" || n == "elu");
      activations.push_back(activation_named(c, n, alpha, next(betas, next_beta, has_both)));
    }
  }
  Activation activation(int64_t d, size_t i) const { return activations[size_t(d) * defaults.size() + i]; }
  /// The part of a direction of an input (directions, ...).
  Tensor part(size_t input, int64_t d) const { return c.tensor(input)[Index(d)]; }
  /// A state before the first step, (batch, hidden).
  Tensor initial(size_t input, int64_t d) const {
    if (!c.has(input)) return Tensor::zeros({batch(), hidden}, {.dtype = x.dtype()});
    return is_batch_first ? c.tensor(input).transpose(0, 1)[Index(d)] : part(input, d);
  }
  /// The input's share of all gates at all steps, (steps, batch, gates * hidden), in the order of time of the direction.
  Tensor from_inputs(int64_t d) const { return in_order(x, d).matmul(part(1, d).T()); }
  /// Steps in the order in which a direction takes them: backwards within the length of each sequence.
  Tensor in_order(const Tensor& t, int64_t d) const {
    if (!is_reversed(d)) return t;
    if (!c.has(4)) return t.flip(0);
    const Tensor length = c.tensor(4).cast(DType::int64).reshape({1, -1, 1}),
                 at = Tensor::arange(steps(), {.dtype = DType::int64}).reshape({-1, 1, 1});
    return t.gather(0, (at < length).where(length - 1 - at, at).expand(t.shape()));
  }
  /// Both biases of a direction, (2 * gates * hidden); not defined where there are none.
  Tensor bias(int64_t d) const { return c.has(3) ? part(3, d) : Tensor(); }
  /// Whether a step is within the sequence, (batch, 1); not defined where all are.
  Tensor is_within(int64_t step) const { return c.has(4) ? (c.tensor(4) > step).reshape({-1, 1}) : Tensor(); }

  /// The outputs Y and then the last states.
  Results outputs(const std::vector<std::vector<Tensor>>& of_steps, const std::vector<std::vector<Tensor>>& last) const {
    std::vector<Tensor> all;
    for (int64_t d = 0; d < directions; ++d) all.push_back(in_order(Tensor::stack(of_steps[size_t(d)], 0), d));
    const Tensor y = Tensor::stack(all, 1);  // (steps, directions, batch, hidden)
    Results out;
    out.push_back(Value(is_batch_first ? y.permute({2, 0, 1, 3}) : y));
    for (const auto& states : last) {
      const Tensor s = Tensor::stack(states, 0);
      out.push_back(Value(is_batch_first ? s.transpose(0, 1) : s));
    }
    return out;
  }
};

Tensor columns(const Tensor& t, int64_t i, int64_t size) { return t.shrink({{0, t.size(0)}, {i * size, (i + 1) * size}}); }
Tensor slice_of(const Tensor& v, int64_t i, int64_t size) { return v.shrink({{i * size, (i + 1) * size}}); }
Tensor kept_within(const Tensor& is_within, const Tensor& now, const Tensor& before) {
  return is_within.defined() ? is_within.where(now, before) : now;
}

Results rnn(Call& c) {
  const Network net(c, 1, {"Tanh"});
  std::vector<std::vector<Tensor>> all(size_t(net.directions));
  std::vector<Tensor> last;
  for (int64_t d = 0; d < net.directions; ++d) {
    const Activation f = net.activation(d, 0);
    Tensor inputs = net.from_inputs(d), h = net.initial(5, d);
    const Tensor recurrence = net.part(2, d).T(), b = net.bias(d);
    if (b.defined()) inputs = inputs + slice_of(b, 0, net.hidden) + slice_of(b, 1, net.hidden);
    for (int64_t t = 0; t < net.steps(); ++t) {
      const Tensor now = f(net.bounded(inputs[Index(t)] + h.matmul(recurrence))), within = net.is_within(t);
      all[size_t(d)].push_back(within.defined() ? within.where(now, 0) : now);
      h = kept_within(within, now, h);
    }
    last.push_back(h);
  }
  return net.outputs(all, {last});
}

/// Gates in the order update, reset, hidden.
Results gru(Call& c) {
  const Network net(c, 3, {"Sigmoid", "Tanh"});
  const bool resets_behind = c.flag("linear_before_reset");
  const int64_t n = net.hidden;
  std::vector<std::vector<Tensor>> all(size_t(net.directions));
  std::vector<Tensor> last;
  for (int64_t d = 0; d < net.directions; ++d) {
    const Activation f = net.activation(d, 0), g = net.activation(d, 1);
    Tensor inputs = net.from_inputs(d), h = net.initial(5, d);
    const Tensor recurrence = net.part(2, d).T();  // (hidden, 3 * hidden)
    const Tensor b = net.bias(d).defined() ? net.bias(d) : Tensor::zeros({6 * n}, {.dtype = net.x.dtype()});
    inputs = inputs + b.shrink({{0, 3 * n}});
    for (int64_t t = 0; t < net.steps(); ++t) {
      const Tensor in = inputs[Index(t)], within = net.is_within(t);
      const Tensor gates = h.matmul(columns(recurrence, 0, 2 * n)) + b.shrink({{3 * n, 5 * n}});
      const Tensor update = f(net.bounded(columns(in, 0, n) + columns(gates, 0, n)));
      const Tensor reset = f(net.bounded(columns(in, 1, n) + columns(gates, 1, n)));
      const Tensor to_hidden = columns(recurrence, 2, n), bias = slice_of(b, 5, n);
      const Tensor of_state = resets_behind ? reset * (h.matmul(to_hidden) + bias) : (reset * h).matmul(to_hidden) + bias;
      const Tensor candidate = g(net.bounded(columns(in, 2, n) + of_state));
      const Tensor now = (1 - update) * candidate + update * h;
      all[size_t(d)].push_back(within.defined() ? within.where(now, 0) : now);
      h = kept_within(within, now, h);
    }
    last.push_back(h);
  }
  return net.outputs(all, {last});
}

/// Gates in the order input, output, forget, cell.
Results lstm(Call& c) {
  const Network net(c, 4, {"Sigmoid", "Tanh", "Tanh"});
  const bool couples = c.flag("input_forget");
  const int64_t n = net.hidden;
  std::vector<std::vector<Tensor>> all(size_t(net.directions));
  std::vector<Tensor> last, last_cells;
  for (int64_t d = 0; d < net.directions; ++d) {
    const Activation f = net.activation(d, 0), g = net.activation(d, 1), h_of = net.activation(d, 2);
    Tensor inputs = net.from_inputs(d), h = net.initial(5, d), cell = net.initial(6, d);
    const Tensor recurrence = net.part(2, d).T(), b = net.bias(d);
    if (b.defined()) inputs = inputs + slice_of(b, 0, 4 * n) + slice_of(b, 1, 4 * n);
    const Tensor peepholes = c.has(7) ? net.part(7, d) : Tensor();  // input, output, forget
    const auto peek = [&](const Tensor& gate, int64_t i, const Tensor& at) {
      return peepholes.defined() ? gate + slice_of(peepholes, i, n) * at : gate;
    };
    for (int64_t t = 0; t < net.steps(); ++t) {
      const Tensor gates = inputs[Index(t)] + h.matmul(recurrence), within = net.is_within(t);
      const Tensor in = f(net.bounded(peek(columns(gates, 0, n), 0, cell)));
      const Tensor forget = couples ? 1 - in : f(net.bounded(peek(columns(gates, 2, n), 2, cell)));
      const Tensor now_cell = forget * cell + in * g(net.bounded(columns(gates, 3, n)));
      const Tensor now = f(net.bounded(peek(columns(gates, 1, n), 1, now_cell))) * h_of(now_cell);
      all[size_t(d)].push_back(within.defined() ? within.where(now, 0) : now);
      h = kept_within(within, now, h);
      cell = kept_within(within, now_cell, cell);
    }
    last.push_back(h);
    last_cells.push_back(cell);
  }
  return net.outputs(all, {last, last_cells});
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "GRU", 1, gru},
    {onnx_domain, "LSTM", 1, lstm},
    {onnx_domain, "RNN", 1, rnn},
};

}  // namespace

std::span<const OperatorRow> recurrent_operators() { return rows; }

}  // namespace tinygrad::onnx
