#pragma once
/// The operators, in families: each has a table of rows (domain, name, first version, what it does).

#include <span>
#include <string_view>

#include "frontend/onnx/walk.h"

namespace tinygrad::onnx {

inline constexpr std::string_view onnx_domain = "ai.onnx", ml_domain = "ai.onnx.ml", microsoft_domain = "com.microsoft",
                                  preview_domain = "ai.onnx.preview", training_domain = "ai.onnx.preview.training";

struct OperatorRow {
  std::string_view domain, name;
  int64_t since;
  Operator run;
};

std::span<const OperatorRow> elementwise_operators();
std::span<const OperatorRow> reduce_operators();
std::span<const OperatorRow> movement_operators();
std::span<const OperatorRow> creation_operators();
std::span<const OperatorRow> indexing_operators();
std::span<const OperatorRow> product_operators();
std::span<const OperatorRow> pooling_operators();
std::span<const OperatorRow> normalization_operators();
std::span<const OperatorRow> recurrent_operators();
std::span<const OperatorRow> attention_operators();
std::span<const OperatorRow> quantized_operators();
std::span<const OperatorRow> signal_operators();
std::span<const OperatorRow> image_operators();
std::span<const OperatorRow> decoder_operators();
std::span<const OperatorRow> control_operators();
std::span<const OperatorRow> sequence_operators();
std::span<const OperatorRow> text_operators();
std::span<const OperatorRow> random_operators();
std::span<const OperatorRow> ml_operators();
std::span<const OperatorRow> microsoft_operators();
std::span<const OperatorRow> training_operators();

/// The operator as it is in this version of its domain: that of the last row which is not newer. Null where there is none.
const OperatorRow* find_operator(std::string_view domain, std::string_view name, int64_t version);
/// The newest version of a domain that is known; 0 for an unknown domain.
int64_t newest_version(std::string_view domain);

// Shared by families.
inline Results results(Tensor t) { return {Value(std::move(t))}; }
/// With the element type of an input whose elements were only moved.
inline Results results_like(const Value& v, Tensor t) { return {Value(std::move(t), v.element_type())}; }
/// An axis counted from the start; ValueError where there is none.
int normal_axis(const Call& call, int64_t axis, size_t rank);
std::vector<int> normal_axes(const Call& call, const std::vector<int64_t>& axes, size_t rank);
/// The common shape of broadcast ones; ShapeError.
Sizes broadcast_shape(std::span<const Sizes> shapes);
Tensor typed_scalar(double value, DType dtype);
/// The number of elements of what is made on the host; ValueError for more than models have there.
int64_t host_count(const Call& call, const Sizes& shape);
/// The number of elements along the axes from `begin` on, before `end`.
int64_t count_of(const Sizes& shape, size_t begin, size_t end);

}  // namespace tinygrad::onnx
