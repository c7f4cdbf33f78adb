// Sequences and optionals.
#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

/// A place in a sequence of n elements; one behind the last where that is meant.
size_t place(const Call& c, int64_t at, size_t n, bool may_be_end) {
  const int64_t count = int64_t(n), from_start = at < 0 ? at + count : at;
  if (from_start < 0 || from_start > count || (from_start == count && !may_be_end))
    throw IndexError(fmt::format("the place {} in a sequence of {}", at, n));
  (void)c;
  return size_t(from_start);
}

Results sequence_at(Call& c) {
  const std::vector<Value>& s = c.value(0).sequence();
  return {s[place(c, c.integer(1), s.size(), false)]};
}
Results sequence_construct(Call& c) { return {Value(std::vector<Value>(c.values().begin(), c.values().end()))}; }
Results sequence_empty(Call&) { return {Value(std::vector<Value>())}; }
Results sequence_erase(Call& c) {
  std::vector<Value> s = c.value(0).sequence();
  const size_t at = s.empty() ? 0 : place(c, c.has(1) ? c.integer(1) : -1, s.size(), false);
  if (s.empty()) c.fail("nothing to erase in an empty sequence");
  s.erase(s.begin() + int64_t(at));
  return {Value(std::move(s))};
}
Results sequence_insert(Call& c) {
  std::vector<Value> s = c.value(0).sequence();
  const size_t at = c.has(2) ? place(c, c.integer(2), s.size(), true) : s.size();
  s.insert(s.begin() + int64_t(at), c.value(1));
  return {Value(std::move(s))};
}
Results sequence_length(Call& c) { return {host_integer(int64_t(c.value(0).sequence().size()))}; }

Results concat_from_sequence(Call& c) {
  std::vector<Tensor> tensors;
  const std::vector<Value>& s = c.value(0).sequence();
  if (s.empty()) c.fail("an empty sequence");
  for (const Value& v : s) tensors.push_back(v.tensor());
  const int64_t axis = c.required_integer("axis");
  if (c.flag("new_axis")) return results_like(s[0], Tensor::stack(tensors, normal_axis(c, axis, size_t(tensors[0].ndim()) + 1)));
  return results_like(s[0], Tensor::cat(tensors, normal_axis(c, axis, size_t(tensors[0].ndim()))));
}

Results split_to_sequence(Call& c) {
  const Value& v = c.value(0);
  const int axis = normal_axis(c, c.attribute("axis", 0), v.shape().size());
  const int64_t n = v.shape()[size_t(axis)];
  Sizes sizes;
  bool keeps_axis = true;
  if (!c.has(1)) {
    c.take_steps(n);
    sizes.assign(size_t(n), 1);
    keeps_axis = c.flag("keepdims", true);
  } else if (const HostArray split = c.host(1); split.shape.empty()) {
    const int64_t size = split.integers()[0];
    if (size < 1) c.fail(fmt::format("parts of {} elements", size));
    c.take_steps(n / size);
    for (int64_t at = 0; at < n; at += sizes.back()) sizes.push_back(std::min(size, n - at));
  } else {
    sizes = split.integers();
  }
  int64_t left = n;
  for (int64_t size : sizes) left = size < 0 || size > left ? -1 : left - size;
  if (left != 0) c.fail(fmt::format("parts that are no {} elements", n));
  std::vector<Value> out;
  int64_t at = 0;
  for (int64_t size : sizes) {
    const int64_t end = at + size;
    if (v.kind() == Value::Kind::strings) {
      if (v.shape().size() != 1) c.fail("texts along several axes");
      Strings part{.shape = {size}};
      part.values.assign(v.strings().values.begin() + at, v.strings().values.begin() + end);
      out.emplace_back(std::move(part));
    } else {
      std::vector<std::pair<int64_t, int64_t>> bounds;
      for (int64_t s : v.shape()) bounds.push_back({0, s});
      bounds[size_t(axis)] = {at, end};
      const Tensor part = v.tensor().shrink(bounds);
      out.push_back({keeps_axis ? part : part.squeeze(axis), v.element_type()});
    }
    at = end;
  }
  for (Value& part : out) detail::ValueAccess::set_from_input(part, is_from_input(v));
  return {Value(std::move(out))};
}

Results optional(Call& c) { return {c.has(0) ? c.value(0) : Value()}; }
Results optional_get_element(Call& c) { return {c.value(0)}; }
Results optional_has_element(Call& c) { return {host_value(HostArray::of(ElementType::bool_, {}, std::vector<int64_t>{c.has(0)}))}; }

constexpr OperatorRow rows[] = {
    {onnx_domain, "ConcatFromSequence", 11, concat_from_sequence},
    {onnx_domain, "Optional", 15, optional},
    {onnx_domain, "OptionalGetElement", 15, optional_get_element},
    {onnx_domain, "OptionalHasElement", 15, optional_has_element},
    {onnx_domain, "SequenceAt", 11, sequence_at},
    {onnx_domain, "SequenceConstruct", 11, sequence_construct},
    {onnx_domain, "SequenceEmpty", 11, sequence_empty},
    {onnx_domain, "SequenceErase", 11, sequence_erase},
    {onnx_domain, "SequenceInsert", 11, sequence_insert},
    {onnx_domain, "SequenceLength", 11, sequence_length},
    {onnx_domain, "SplitToSequence", 11, split_to_sequence},
};

}  // namespace

std::span<const OperatorRow> sequence_operators() { return rows; }

}  // namespace tinygrad::onnx
