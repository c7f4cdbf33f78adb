#include <algorithm>

#include <fmt/core.h>

#include <tinygrad/errors.h>
#include "shape/ranges.h"
#include "spec/alu.h"
#include "spec/scope.h"
#include "uop/graph.h"

namespace tinygrad::spec {

namespace {

/// The elements of `x` that the steps of a reduction take: those of step r for all results.
Value transposed_for_steps(const Value& x, const AxisIds& open, const AxisIds& closed, const Frame& frame, const Axes& axes) {
  const Value full = broadcast(x, frame);
  const Sizes strides = row_major(full->sizes);
  Sizes kept, reduced, kept_strides, reduced_strides;
  auto take = [&](size_t dim, bool is_kept) {
    (is_kept ? kept : reduced).push_back(full->sizes[dim]);
    (is_kept ? kept_strides : reduced_strides).push_back(strides[dim]);
  };
  auto dim_of = [&](uint32_t axis) { return size_t(std::find(frame.axes.begin(), frame.axes.end(), axis) - frame.axes.begin()); };
  for (uint32_t a : open) take(dim_of(a), true);
  for (uint32_t a : closed) take(dim_of(a), false);
  for (size_t i = 0; i < frame.shape.size(); ++i) take(frame.axes.size() + i, std::find(axes.begin(), axes.end(), int(i)) == axes.end());

  Sizes box = reduced, from = reduced_strides;
  box.append(kept.begin(), kept.end());
  from.append(kept_strides.begin(), kept_strides.end());
  auto out = std::make_shared<Data>(x->dtype, AxisIds{}, Sizes{product(reduced), product(kept)});
  copy_strided(itemsize(x->dtype), box, out->bytes(), {row_major(box)}, full->bytes(), {from});
  return out;
}

/// Row `r` of a matrix as values along one named axis.
Value row(const Value& x, size_t r, uint32_t axis) {
  auto out = std::make_shared<Data>(x->dtype, AxisIds{axis}, Sizes{x->sizes[1]});
  std::memcpy(out->bytes(), x->bytes() + r * out->byte_count(), out->byte_count());
  return out;
}

Value select(const Value& condition, const Value& a, const Value& b) {
  const Value choice[] = {condition, a, b};
  return alu_values(Op::WHERE, a->dtype, choice);
}

}  // namespace

/// All results are reduced side by side, along an axis of the step's scope.
Result Scope::general_reduce_node(const UOp& u) {
  const Axes& axes = u.arg_as<ReduceArg>().axes;
  AxisIds closed;
  Sizes closed_sizes;
  closed_axes(closed_ranges(u), closed, closed_sizes);
  std::vector<Value> xs;
  Frame frame;
  for (const Result& x : *result(u.src(0)).tuple) {
    xs.push_back(read(u.src(0), x));
    frame.include(*xs.back());
  }
  for (const UOp& r : closed_ranges(u)) frame.include_axes(*value(r));
  Value exists = ev_.existing(frame.axes);
  if (exists) frame.include_axes(*exists);

  AxisIds open;
  Sizes out_sizes, kept_shape;
  for (size_t i = 0; i < frame.axes.size(); ++i) {
    if (std::find(closed.begin(), closed.end(), frame.axes[i]) != closed.end()) continue;
    open.push_back(frame.axes[i]);
    out_sizes.push_back(frame.axis_sizes[i]);
  }
  Frame out{open, out_sizes, {}};
  for (size_t i = 0; i < frame.shape.size(); ++i)
    if (std::find(axes.begin(), axes.end(), int(i)) == axes.end()) out.shape.push_back(frame.shape[i]);
  const int64_t lanes = product(out.sizes());
  const uint32_t lane = ev_.new_axis(u, lanes, nullptr);

  for (Value& x : xs) x = transposed_for_steps(x, open, closed, frame, axes);
  if (exists) exists = transposed_for_steps(exists, open, closed, frame, axes);
  std::vector<Value> carried;
  for (const Result& identity : *result(u.src(1)).tuple) {
    const Value full = broadcast(read(u.src(1), identity), out);
    auto flat = std::make_shared<Data>(full->dtype, AxisIds{lane}, Sizes{lanes});
    std::memcpy(flat->bytes(), full->bytes(), full->byte_count());
    carried.push_back(flat);
  }

  const UOp& body = u.src(2).src(0);
  Scope step(ev_, std::span(&body, 1));
  const size_t steps = xs.empty() ? 0 : size_t(xs[0]->sizes[0]);
  for (size_t r = 0; r < steps; ++r) {
    Environment env{.params = {}, .buffers = {}, .variables = env_->variables};
    for (const Value& c : carried) env.params[int32_t(env.params.size())].value = c;
    for (const Value& x : xs) env.params[int32_t(env.params.size())].value = row(x, r, lane);
    step.run(env);
    const auto& next = step.result(body).tuple;
    if (!next || next->size() != carried.size())
      throw InternalError(fmt::format("REDUCE: the step does not give {} values: {}", carried.size(), print_expr(u)));
    for (size_t i = 0; i < carried.size(); ++i) {
      const Value v = broadcast(step.read(body.src(i), (*next)[i]), AxisIds{lane}, Sizes{lanes}, {});
      carried[i] = exists ? select(row(exists, r, lane), v, carried[i]) : v;
    }
  }

  std::vector<Result> results;
  for (const Value& c : carried) {
    auto shaped = std::make_shared<Data>(c->dtype, open, out.sizes());
    std::memcpy(shaped->bytes(), c->bytes(), c->byte_count());
    results.push_back({.value = shaped});
  }
  return {.tuple = std::make_shared<const std::vector<Result>>(std::move(results))};
}

}  // namespace tinygrad::spec
