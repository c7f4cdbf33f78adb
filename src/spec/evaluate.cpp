#include "spec/evaluate.h"

#include <fmt/core.h>

#include <tinygrad/errors.h>
#include "dtype/convert.h"
#include "shape/shape.h"
#include "spec/scope.h"
#include "uop/graph.h"

namespace tinygrad::spec {

Array Array::zeros(DType dtype, std::span<const int64_t> shape) {
  Array out{dtype, SmallVector<int64_t, 6>(shape), {}};
  out.bytes.resize(size_t(product(shape)) * itemsize(dtype));
  return out;
}

Array Array::of(DType dtype, std::span<const double> values) {
  const auto n = int64_t(values.size());
  Array out = zeros(dtype, std::span(&n, 1));
  for (size_t i = 0; i < values.size(); ++i) Scalar::from_double(values[i], dtype).to_bytes(out.bytes.data() + i * itemsize(dtype));
  return out;
}

void EvalInputs::set(const UOp& u, Array data) {
  if (u.is(Op::BUFFER))
    buffers[u.arg_as<BufferArg>().id] = std::move(data);
  else
    params[u.arg_as<ParamArg>().slot] = std::move(data);
}

const Array& EvalInputs::at(const UOp& u) const {
  if (u.is(Op::BUFFER)) {
    if (const auto at = buffers.find(u.arg_as<BufferArg>().id); at != buffers.end()) return at->second;
  } else if (const auto at = params.find(u.arg_as<ParamArg>().slot); at != params.end()) {
    return at->second;
  }
  throw ValueError(fmt::format("there are no data for {}", print_expr(u)));
}

namespace {

Value to_value(const Evaluator& ev, const Array& a) {
  auto out = std::make_shared<Data>(ev.storage(a.dtype), AxisIds{}, a.shape);
  if (a.bytes.size() != out->count() * itemsize(a.dtype))
    throw ValueError(fmt::format("an array of {} with {} elements has {} bytes", repr(a.dtype), out->count(), a.bytes.size()));
  convert_array(out->dtype, out->bytes(), a.dtype, a.bytes.data(), out->count());
  if (a.dtype == DType::bool_)
    for (size_t i = 0; i < out->count(); ++i) out->as<uint8_t>()[i] = out->as<uint8_t>()[i] != 0;
  return out;
}

Array to_array(const Value& v) {
  Array out{v->dtype, Sizes(v->shape()), {}};
  out.bytes.assign(v->bytes(), v->bytes() + v->byte_count());
  return out;
}

Environment environment(const Evaluator& ev, const EvalInputs& inputs) {
  Environment env{.params = {}, .buffers = {}, .variables = inputs.variables};
  for (const auto& [id, a] : inputs.buffers) env.buffers[id] = to_value(ev, a);
  for (const auto& [slot, a] : inputs.params) env.params[slot].value = to_value(ev, a);
  return env;
}

/// Memory of a kernel's own is gone after it.
bool lasts(const UOp& base) { return base.is(Op::PARAM) || base.arg_as<BufferArg>().scope == tinygrad::Scope::device; }

}  // namespace

Evaluation evaluate(std::span<const UOp> roots, EvalInputs& inputs, const EvalOptions& options) {
  for (const UOp& root : roots) shape_of(root);  // so that what does not fit is told in the terms of the graph
  Evaluator ev(options);
  const Environment env = environment(ev, inputs);
  Scope scope(ev, roots);
  scope.run(env);

  Evaluation out;
  for (const UOp& root : roots) {
    const Result& r = scope.result(root);
    const bool effect = root.dtype() == DType::void_ || root.in(Group::effect);
    if (effect && !r.value) {
      out.values.emplace_back();
      continue;
    }
    const Value v = scope.value(root);
    if (!v->axes.empty()) throw InternalError(fmt::format("a value is asked for that is inside a loop: {}", print_expr(root)));
    out.values.push_back(to_array(v));
  }

  std::map<uint64_t, Value> buffers;
  std::map<int32_t, Value> params;
  for (const WritesPtr& w : scope.writes()) {
    if (!lasts(w->base)) continue;
    if (!w->index->axes.empty()) throw InternalError(fmt::format("a write outside of its loop: {}", print_expr(w->origin)));
    Value& state = w->base.is(Op::BUFFER) ? buffers[w->base.arg_as<BufferArg>().id] : params[w->base.arg_as<ParamArg>().slot];
    if (!state) state = scope.memory(w->base).state_or_zeros();
    state = after_writes(std::move(state), std::span(&w, 1));
  }
  for (auto& [id, state] : buffers) inputs.buffers[id] = to_array(state);
  for (auto& [slot, state] : params) inputs.params[slot] = to_array(state);
  out.largest_magnitude = ev.largest;
  return out;
}

Array evaluate(const UOp& root, EvalInputs& inputs) { return std::move(evaluate(std::span(&root, 1), inputs).values[0]); }

Array evaluate(const UOp& root) {
  EvalInputs nothing;
  return evaluate(root, nothing);
}

}  // namespace tinygrad::spec
