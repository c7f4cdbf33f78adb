// The table of all operators, and what families share.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

using Table = std::map<std::pair<std::string_view, std::string_view>, std::vector<OperatorRow>>;

Table make_table() {
  Table table;
  for (const auto family :
       {elementwise_operators(), reduce_operators(),  movement_operators(),      creation_operators(),  indexing_operators(),
        product_operators(),     pooling_operators(), normalization_operators(), recurrent_operators(), attention_operators(),
        quantized_operators(),   signal_operators(),  image_operators(),         decoder_operators(),   control_operators(),
        sequence_operators(),    text_operators(),    random_operators(),        ml_operators(),        microsoft_operators(),
        training_operators()})
    for (const OperatorRow& row : family) table[{row.domain, row.name}].push_back(row);
  for (auto& [key, rows] : table) std::ranges::sort(rows, {}, &OperatorRow::since);
  return table;
}

}  // namespace

const OperatorRow* find_operator(std::string_view domain, std::string_view name, int64_t version) {
  static const auto& table = *new Table(make_table());
  const auto found = table.find({domain, name});
  if (found == table.end() || version > newest_version(domain)) return nullptr;
  const OperatorRow* last = nullptr;
  for (const OperatorRow& row : found->second)
    if (row.since <= version) last = &row;
  return last;
}

int64_t newest_version(std::string_view domain) {
  if (domain == onnx_domain) return 28;
  if (domain == ml_domain) return 5;
  return domain == microsoft_domain || domain == preview_domain || domain == training_domain ? 1 : 0;
}

int normal_axis(const Call& call, int64_t axis, size_t rank) {
  const int64_t n = int64_t(rank);
  if (axis < -n || axis >= n) call.fail(fmt::format("the axis {} of a tensor with {} axes", axis, n));
  return int(axis < 0 ? axis + n : axis);
}

std::vector<int> normal_axes(const Call& call, const std::vector<int64_t>& axes, size_t rank) {
  std::vector<int> out;
  for (int64_t a : axes) out.push_back(normal_axis(call, a, rank));
  return out;
}

Sizes broadcast_shape(std::span<const Sizes> shapes) {
  size_t rank = 0;
  for (const Sizes& s : shapes) rank = std::max(rank, s.size());
  Sizes out(rank, 1);
  for (const Sizes& s : shapes) {
    for (size_t i = 0; i < s.size(); ++i) {
      int64_t& size = out[rank - s.size() + i];
      if (s[i] != 1 && size != 1 && s[i] != size)
        throw ShapeError(fmt::format("({}) and ({}) cannot be broadcast to one shape", fmt::join(out, ", "), fmt::join(s, ", ")));
      if (s[i] != 1) size = s[i];
    }
  }
  return out;
}

int64_t host_count(const Call& call, const Sizes& shape) {
  constexpr int64_t most = int64_t{1} << 24;
  const int64_t count = element_count(shape);
  if (count > most) call.fail(fmt::format("({}) elements on the host, expected {} at most", fmt::join(shape, ", "), most));
  return count;
}

int64_t count_of(const Sizes& shape, size_t begin, size_t end) {
  return element_count(Sizes(shape.begin() + int64_t(begin), shape.begin() + int64_t(end)));
}

Tensor typed_scalar(double value, DType dtype) { return Tensor::full({}, value, {.dtype = dtype}); }

}  // namespace tinygrad::onnx
