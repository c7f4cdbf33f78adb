#pragma once
/// What the operators of ai.onnx.ml share.

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

/// Scores of classes or targets for each row, on the host.
struct Scores {
  int64_t rows = 0, columns = 0;
  std::vector<double> values = {};

  static Scores zeros(const Call& call, int64_t rows, int64_t columns) {
    return {rows, columns, std::vector<double>(size_t(host_count(call, {rows, columns})), 0.0)};
  }
  double& at(int64_t row, int64_t column) { return values[size_t(row * columns + column)]; }
  std::span<double> row(int64_t i) { return std::span(values).subspan(size_t(i * columns), size_t(columns)); }
  Value value(ElementType type = ElementType::float32) const { return host_value(HostArray::of(type, {rows, columns}, values)); }
};

/// Applies NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT to a row. ValueError for another one.
void transform_scores(std::span<double> row, const std::string& name);

/// A matrix of numbers on the host; a vector is one row.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> values = {};
  std::span<const double> row(int64_t i) const { return std::span(values).subspan(size_t(i * columns), size_t(columns)); }
};
Matrix matrix_of(const Call& call, size_t input);

/// Of each row the label at a place in classlabels_strings, or in the list of integers under one of its names, or the place.
Value labels_at(const Call& call, const std::vector<int64_t>& places);

Results tree_ensemble(Call& call);
Results tree_ensemble_classifier(Call& call);
Results tree_ensemble_regressor(Call& call);
Results svm_classifier(Call& call);
Results svm_regressor(Call& call);

}  // namespace tinygrad::onnx
