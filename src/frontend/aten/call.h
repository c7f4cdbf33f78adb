#pragma once
/// What an operator's implementation sees of a call: arguments by the names of its schema, checked against their types.

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/aten/aten.h"

namespace tinygrad::aten {

/// A schema as it is parsed: "aten.add.Tensor" and its parameters.
struct Schema {
  std::string name = {};
  std::vector<Parameter> parameters = {};
};
/// Parses "aten.add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", which is of the library itself: InternalError.
Schema parse_schema(std::string_view text);

class Call {
 public:
  /// Takes the defaults for what is absent. ValueError and DTypeError as call().
  Call(const Schema& schema, const Arguments& arguments, const CallOptions& options);

  std::string_view name() const { return schema_.name; }
  const Value& operator[](std::string_view parameter) const;
  /// Whether the schema has this parameter.
  bool declares(std::string_view parameter) const;
  bool has(std::string_view parameter) const { return !(*this)[parameter].is_none(); }

  /// A tensor; undefined where an optional one is nothing.
  Tensor tensor(std::string_view parameter) const;
  std::vector<Tensor> tensors(std::string_view parameter) const;
  int64_t integer(std::string_view parameter) const { return (*this)[parameter].integer(); }
  double number(std::string_view parameter) const { return (*this)[parameter].number(); }
  bool flag(std::string_view parameter) const { return has(parameter) && (*this)[parameter].boolean(); }
  std::string_view text(std::string_view parameter) const { return (*this)[parameter].text(); }
  Extent extent(std::string_view parameter) const { return (*this)[parameter].extent(); }
  /// A number of parts or places that lists are made for on the host; ValueError for one that is negative or beyond 2^26.
  int64_t count(std::string_view parameter) const { return count_of(integer(parameter)); }
  int64_t count_of(int64_t number) const;
  /// How far a diagonal is away from the main one: far beyond any matrix, all are alike.
  int offset(std::string_view parameter) const;
  /// Numbers of a list; one number stands for itself, nothing for no numbers.
  Sizes integers(std::string_view parameter) const;
  /// The same where `count` numbers are meant: one stands for all. ValueError for another count, unless there are none and `empty_is` is
  /// given.
  Sizes integers(std::string_view parameter, size_t count, const Sizes& empty_is = {}) const;
  std::vector<double> numbers(std::string_view parameter) const;
  Extents extents(std::string_view parameter) const;
  /// Nothing where the schema has no such parameter.
  std::optional<DType> dtype(std::string_view parameter = "dtype") const;
  /// An axis of a tensor of `rank` axes, counted from the start; a tensor without axes has one for this. IndexError.
  int axis(std::string_view parameter, int rank) const { return axis_of(integer(parameter), rank); }
  int axis_of(int64_t axis, int rank) const;
  /// Axes in the order of the argument; nothing and an empty list are all of them where `empty_is_all`. ValueError for one that is named
  /// twice.
  std::vector<int> axes(std::string_view parameter, int rank, bool empty_is_all = true) const;

  /// Where a tensor is created: as the parameters device and layout say, or on the device of `like`.
  std::string device(const Tensor& like = {}) const;

  /// ValueError that begins with the name.
  [[noreturn]] void fail(std::string_view why) const;

 private:
  const Schema& schema_;
  const CallOptions& options_;
  std::vector<Value> values_;
};

using Results = std::vector<Value>;
using Operator = std::function<Results(const Call&)>;

struct Row {
  std::string_view schema;
  Operator run;
};

// The families of operators.
std::vector<Row> arithmetic_operators();
std::vector<Row> unary_operators();
std::vector<Row> comparison_operators();
std::vector<Row> activation_operators();
std::vector<Row> reduce_operators();
std::vector<Row> scan_operators();
std::vector<Row> movement_operators();
std::vector<Row> slicing_operators();
std::vector<Row> indexing_operators();
std::vector<Row> scatter_operators();
std::vector<Row> creation_operators();
std::vector<Row> random_operators();
std::vector<Row> product_operators();
std::vector<Row> convolution_operators();
std::vector<Row> pooling_operators();
std::vector<Row> padding_operators();
std::vector<Row> softmax_operators();
std::vector<Row> normalization_operators();
std::vector<Row> attention_operators();
std::vector<Row> recurrent_operators();
std::vector<Row> resampling_operators();
std::vector<Row> loss_operators();
std::vector<Row> composite_operators();
std::vector<Row> number_operators();
std::vector<Row> prims_operators();

}  // namespace tinygrad::aten
