// Recurrent layers over sequences: tanh, relu, GRU and LSTM, as torch.nn has them.
#include <fmt/core.h>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

enum class Cell : uint8_t { tanh, relu, gru, lstm };

/// The weights of one layer in one direction.
struct Weights {
  Tensor input, hidden, input_bias, hidden_bias, projection;
};
struct State {
  Tensor hidden, cell;
};

Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor out = x.matmul(weight.transpose(0, 1));
  return bias.defined() ? out + bias : out;
}
State step(Cell kind, const Tensor& from_input, const State& before, const Weights& w) {
  const Tensor from_hidden = affine(before.hidden, w.hidden, w.hidden_bias);
  if (kind == Cell::tanh) return {(from_input + from_hidden).tanh(), {}};
  if (kind == Cell::relu) return {(from_input + from_hidden).relu(), {}};
  if (kind == Cell::gru) {
    const std::vector<Tensor> i = from_input.chunk(3, -1), h = from_hidden.chunk(3, -1);
    const Tensor reset = (i[0] + h[0]).sigmoid(), update = (i[1] + h[1]).sigmoid(), fresh = (i[2] + reset * h[2]).tanh();
    return {(1 - update) * fresh + update * before.hidden, {}};
  }
  const std::vector<Tensor> gates = (from_input + from_hidden).chunk(4, -1);
  const Tensor cell = gates[1].sigmoid() * before.cell + gates[0].sigmoid() * gates[2].tanh();
  Tensor hidden = gates[3].sigmoid() * cell.tanh();
  if (w.projection.defined()) hidden = hidden.matmul(w.projection.transpose(0, 1));
  return {hidden, cell};
}

Tensor row(const Tensor& x, int64_t i) { return x[{i}]; }

Results recurrent(const Call& c, Cell kind) {
  Tensor x = c.tensor("input");
  const bool unbatched = x.ndim() == 2, batch_first = c.flag("batch_first") && !unbatched, both = c.flag("bidirectional");
  if (c.flag("train") && c.number("dropout") > 0) c.fail("dropout in training is not supported");
  if (unbatched) x = x.unsqueeze(1);
  if (batch_first) x = x.transpose(0, 1);
  std::vector<Tensor> states = kind == Cell::lstm ? c.tensors("hx") : std::vector{c.tensor("hx")};
  if (states.size() != (kind == Cell::lstm ? 2u : 1u)) c.fail("hx has the wrong number of tensors");
  if (unbatched)
    for (Tensor& s : states) s = s.unsqueeze(1);
  const std::vector<Tensor> params = c.tensors("params");
  const int64_t layers = c.integer("num_layers"), directions = both ? 2 : 1;
  const bool biases = c.flag("has_biases");
  const int64_t hidden = states[0].size(-1), cell_size = kind == Cell::lstm ? states[1].size(-1) : hidden;
  const bool projects = hidden != cell_size;
  const size_t each = 2 + (biases ? 2 : 0) + (projects ? 1 : 0);
  if (params.size() != each * size_t(layers * directions)) c.fail(fmt::format("{} parameters for {} layers", params.size(), layers));
  std::vector<Tensor> last_hidden, last_cell;
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::vector<Tensor> sides;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t place = layer * directions + d;
      const Tensor* p = &params[size_t(place) * each];
      const Weights w{p[0], p[1], biases ? p[2] : Tensor(), biases ? p[3] : Tensor(), projects ? p[each - 1] : Tensor()};
      State s{row(states[0], place), kind == Cell::lstm ? row(states[1], place) : Tensor()};
      const Tensor from_input = affine(x, w.input, w.input_bias);
      const int64_t steps = x.size(0);
      std::vector<Tensor> out;
      out.resize(size_t(steps));
      for (int64_t t = 0; t < steps; ++t) {
        const int64_t at = d == 0 ? t : steps - 1 - t;
        s = step(kind, row(from_input, at), s, w);
        out[size_t(at)] = s.hidden;
      }
      sides.push_back(Tensor::stack(out, 0));
      last_hidden.push_back(s.hidden);
      if (s.cell.defined()) last_cell.push_back(s.cell);
    }
    x = both ? Tensor::cat(sides, -1) : sides[0];
  }
  if (batch_first) x = x.transpose(0, 1);
  const auto joined = [&](const std::vector<Tensor>& all) {
    const Tensor out = Tensor::stack(all, 0);
    return unbatched ? out.squeeze(1) : out;
  };
  Results out{unbatched ? x.squeeze(1) : x, joined(last_hidden)};
  if (kind == Cell::lstm) out.push_back(joined(last_cell));
  return out;
}
/// One step of a cell.
Results cell(const Call& c, Cell kind) {
  const Weights w{c.tensor("w_ih"), c.tensor("w_hh"), c.tensor("b_ih"), c.tensor("b_hh"), {}};
  State before;
  if (kind == Cell::lstm) {
    const std::vector<Tensor> hx = c.tensors("hx");
    if (hx.size() != 2) c.fail("hx does not have two tensors");
    before = {hx[0], hx[1]};
  } else {
    before = {c.tensor("hx"), {}};
  }
  const State after = step(kind, affine(c.tensor("input"), w.input, w.input_bias), before, w);
  return kind == Cell::lstm ? Results{after.hidden, after.cell} : one(after.hidden);
}

#define TG_LAYERS "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first)"
#define TG_CELL "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)"

}  // namespace

std::vector<Row> recurrent_operators() {
  return {
      {"aten.lstm.input(Tensor input, Tensor[] hx, " TG_LAYERS, [](const Call& c) { return recurrent(c, Cell::lstm); }},
      {"aten.gru.input(Tensor input, Tensor hx, " TG_LAYERS, [](const Call& c) { return recurrent(c, Cell::gru); }},
      {"aten.rnn_tanh.input(Tensor input, Tensor hx, " TG_LAYERS, [](const Call& c) { return recurrent(c, Cell::tanh); }},
      {"aten.rnn_relu.input(Tensor input, Tensor hx, " TG_LAYERS, [](const Call& c) { return recurrent(c, Cell::relu); }},
      {"aten.lstm_cell.default(Tensor input, Tensor[] hx, " TG_CELL, [](const Call& c) { return cell(c, Cell::lstm); }},
      {"aten.gru_cell.default(Tensor input, Tensor hx, " TG_CELL, [](const Call& c) { return cell(c, Cell::gru); }},
      {"aten.rnn_tanh_cell.default(Tensor input, Tensor hx, " TG_CELL, [](const Call& c) { return cell(c, Cell::tanh); }},
      {"aten.rnn_relu_cell.default(Tensor input, Tensor hx, " TG_CELL, [](const Call& c) { return cell(c, Cell::relu); }},
  };
}

}  // namespace tinygrad::aten
