// Operators that run graphs: conditions that are known choose, loops are unrolled.
#include <fmt/core.h>

#include <numeric>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

Results if_then(Call& c) {
  const bool condition = c.integer(0) != 0;
  return c.run_graph(c.graph(condition ? "then_branch" : "else_branch"), {});
}

Value stacked(const std::vector<Value>& values, int axis) {
  if (values.front().kind() == Value::Kind::strings) {
    Strings out{.shape = values.front().shape()};
    out.shape.insert(out.shape.begin(), int64_t(values.size()));
    for (const Value& v : values) out.values.insert(out.values.end(), v.strings().values.begin(), v.strings().values.end());
    return out;
  }
  std::vector<Tensor> tensors;
  for (const Value& v : values) tensors.push_back(v.tensor());
  Value out(Tensor::stack(tensors, axis), values.front().element_type());
  const bool from_input = std::any_of(values.begin(), values.end(), [](const Value& v) { return is_from_input(v); });
  detail::ValueAccess::set_from_input(out, from_input);
  return out;
}

/// An output that no iteration gave: its shape is what the graph declares.
Value none_stacked(const proto::TypeInfo& type) {
  Sizes shape{0};
  for (const Dimension& d : type.shape) shape.push_back(std::max<int64_t>(d.size, 0));
  if (type.element_type == ElementType::string) return Strings{.shape = shape};
  if (type.kind != proto::TypeInfo::Kind::tensor || type.element_type == ElementType::undefined)
    throw ValueError("nothing was stacked, and the graph does not say of which type that is");
  return {Tensor::zeros(shape, {.dtype = dtype_of(type.element_type)}), type.element_type};
}

Results loop(Call& c) {
  const proto::Graph& body = c.graph("body");
  const int64_t most = c.has(0) ? c.integer(0) : std::numeric_limits<int64_t>::max();
  bool goes_on = !c.has(1) || c.integer(1) != 0;
  const size_t carried = c.input_count() < 2 ? 0 : c.input_count() - 2;
  if (body.outputs.size() < carried + 1) c.fail(fmt::format("a body with {} outputs for {} values", body.outputs.size(), carried));
  const size_t scanned = body.outputs.size() - carried - 1;
  std::vector<Value> state(c.values().begin() + int64_t(std::min<size_t>(2, c.input_count())), c.values().end());
  std::vector<std::vector<Value>> scans(scanned);
  for (int64_t i = 0; i < most && goes_on; ++i) {
    std::vector<Value> inputs{host_integer(i), host_value(HostArray::of(ElementType::bool_, {}, std::vector<int64_t>{1}))};
    inputs.insert(inputs.end(), state.begin(), state.end());
    Results out = c.run_graph(body, inputs);
    goes_on = i + 1 < most && c.host(out[0]).integers().at(0) != 0;
    for (size_t k = 0; k < carried; ++k) state[k] = out[k + 1];
    for (size_t k = 0; k < scanned; ++k) scans[k].push_back(out[carried + 1 + k]);
  }
  Results out(state.begin(), state.end());
  for (size_t k = 0; k < scanned; ++k)
    out.push_back(scans[k].empty() ? none_stacked(body.outputs[carried + 1 + k].type) : stacked(scans[k], 0));
  return out;
}

Tensor at_index(const Tensor& x, int axis, int64_t i) {
  std::vector<Index> indices(size_t(axis), Index(Slice{}));
  indices.emplace_back(i);
  return x.get_item(indices);
}

/// One scan over inputs without an axis of a batch.
Results scan_once(const Call& c, std::span<const Value> inputs) {
  const proto::Graph& body = c.graph("body");
  const int64_t named = c.required_integer("num_scan_inputs");
  if (named < 1 || named > int64_t(inputs.size())) c.fail(fmt::format("{} inputs to scan of {}", named, inputs.size()));
  const size_t scanned = size_t(named);
  const size_t carried = inputs.size() - scanned;
  if (body.outputs.size() < carried) c.fail("a body with too few outputs");
  const size_t results_scanned = body.outputs.size() - carried;
  const bool is_first = c.version() < 9;
  const std::vector<int64_t> in_axes = c.attribute("scan_input_axes", std::vector<int64_t>(scanned, 0)),
                             in_directions =
                                 c.attribute(is_first ? "directions" : "scan_input_directions", std::vector<int64_t>(scanned, 0)),
                             out_axes = c.attribute("scan_output_axes", std::vector<int64_t>(results_scanned, 0)),
                             out_directions = c.attribute("scan_output_directions", std::vector<int64_t>(results_scanned, 0));
  std::vector<Value> state(inputs.begin(), inputs.begin() + int64_t(carried));
  const auto axis_of = [&](size_t k) { return normal_axis(c, in_axes.at(k), inputs[carried + k].shape().size()); };
  for (const auto& [list, count] : {std::pair(&in_axes, scanned), std::pair(&in_directions, scanned), std::pair(&out_axes, results_scanned),
                                    std::pair(&out_directions, results_scanned)})
    if (list->size() != count) c.fail(fmt::format("{} axes or directions for {} values", list->size(), count));
  const int64_t steps = inputs[carried].shape()[size_t(axis_of(0))];
  for (size_t k = 0; k < scanned; ++k)
    if (const int64_t own = inputs[carried + k].shape()[size_t(axis_of(k))]; own != steps)
      c.fail(fmt::format("the inputs to scan have {} and {} elements", steps, own));
  std::vector<std::vector<Value>> scans(results_scanned);
  for (int64_t t = 0; t < steps; ++t) {
    std::vector<Value> now = state;
    for (size_t k = 0; k < scanned; ++k) {
      const Value& v = inputs[carried + k];
      now.push_back({at_index(v.tensor(), axis_of(k), in_directions.at(k) ? steps - 1 - t : t), v.element_type()});
      detail::ValueAccess::set_from_input(now.back(), is_from_input(v));
    }
    Results out = c.run_graph(body, now);
    for (size_t k = 0; k < carried; ++k) state[k] = out[k];
    for (size_t k = 0; k < results_scanned; ++k) scans[k].push_back(out[carried + k]);
  }
  Results out(state.begin(), state.end());
  for (size_t k = 0; k < results_scanned; ++k) {
    if (scans[k].empty()) {
      out.push_back(none_stacked(body.outputs[carried + k].type));
      continue;
    }
    if (out_directions.at(k)) std::reverse(scans[k].begin(), scans[k].end());
    const int axis = normal_axis(c, out_axes.at(k), scans[k].front().shape().size() + 1);
    out.push_back(stacked(scans[k], axis));
  }
  return out;
}

Results scan(Call& c) {
  if (c.version() >= 9) return scan_once(c, c.values());
  // Version 8 has the lengths first, and an axis of the batch in all inputs.
  if (c.input_count() < 2) c.fail("has no inputs");
  const std::span<const Value> inputs = c.values().subspan(1);
  const int64_t batch = inputs[0].shape().at(0);
  if (c.has(0)) c.fail("sequences of different lengths are not supported");
  if (batch == 0) c.fail("a batch of 0");
  std::vector<Results> of_each;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Value> own;
    for (const Value& v : inputs) {
      own.push_back({at_index(v.tensor(), 0, b), v.element_type()});
      detail::ValueAccess::set_from_input(own.back(), is_from_input(v));
    }
    of_each.push_back(scan_once(c, own));
  }
  Results out;
  for (size_t k = 0; !of_each.empty() && k < of_each[0].size(); ++k) {
    std::vector<Value> all;
    for (const Results& r : of_each) all.push_back(r[k]);
    out.push_back(stacked(all, 0));
  }
  return out;
}

/// Runs the body on the elements of sequences, one after another; what is no sequence goes into each.
Results sequence_map(Call& c) {
  const proto::Graph& body = c.graph("body");
  const size_t length = c.value(0).sequence().size();
  std::vector<std::vector<Value>> out(body.outputs.size());
  for (size_t i = 0; i < length; ++i) {
    std::vector<Value> inputs;
    for (const Value& v : c.values()) inputs.push_back(v.kind() == Value::Kind::sequence ? v.sequence().at(i) : v);
    Results now = c.run_graph(body, inputs);
    for (size_t k = 0; k < out.size(); ++k) out[k].push_back(now[k]);
  }
  Results all;
  for (auto& values : out) all.emplace_back(std::move(values));
  return all;
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "If", 1, if_then},
    {onnx_domain, "Loop", 1, loop},
    {onnx_domain, "Scan", 8, scan},
    {onnx_domain, "SequenceMap", 17, sequence_map},
};

}  // namespace

std::span<const OperatorRow> control_operators() { return rows; }

}  // namespace tinygrad::onnx
