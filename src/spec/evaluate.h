#pragma once
/// The meaning of a graph, computed op by op from the definitions in uop/ops.def: no schedule, no code generation, no device.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <vector>

#include <tinygrad/symbol.h>
#include "base/small_vector.h"
#include "dtype/scalar.h"
#include "uop/uop.h"

namespace tinygrad::spec {

/// Host data: row-major elements in the dtype's own storage.
struct Array {
  DType dtype = DType::void_;
  SmallVector<int64_t, 6> shape;
  std::vector<std::byte> bytes;

  size_t size() const { return itemsize(dtype) ? bytes.size() / itemsize(dtype) : 0; }
  /// Element `i` of the flat array.
  Scalar operator[](size_t i) const { return Scalar::from_bytes(bytes.data() + i * itemsize(dtype), dtype); }
  template <Element T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  static Array zeros(DType dtype, std::span<const int64_t> shape);
  /// A one-dimensional array; the numbers are converted to `dtype`.
  static Array of(DType dtype, std::span<const double> values);
  static Array of(DType dtype, std::initializer_list<double> values) { return of(dtype, std::span(values.begin(), values.size())); }
};

/// What a graph is evaluated on. Memory that is written before it is read need not be given: it starts as zeros.
struct EvalInputs {
  std::map<uint64_t, Array> buffers;  ///< by BufferArg.id
  std::map<int32_t, Array> params;    ///< by ParamArg.slot; a PARAM of shape () takes one element
  std::map<Symbol, int64_t> variables;

  void set(const UOp& buffer_or_param, Array data);
  /// The data of a BUFFER or PARAM; ValueError if there is none.
  const Array& at(const UOp& buffer_or_param) const;
};

struct EvalOptions {
  /// Floats are computed and kept in float64 and never rounded to their dtype: a reference for comparisons with a bound. Results and memory
  /// of floats then have dtype float64.
  bool exact = false;
};

struct Evaluation {
  std::vector<Array> values;     ///< one a root; dtype `void_` for effects
  double largest_magnitude = 0;  ///< of the finite floats that occurred anywhere, partial sums of REDUCE included; only with `exact`
};

/// Evaluates the roots on `inputs`, which ends with the memory that the graph's effects leave. Definitions beyond those in ops.def:
///
/// - REDUCE starts from the identity of its op and takes elements in the order of its ranges as listed, then of its axes, rounding to the
///   node's dtype after each step. The general form applies `step` in that order.
/// - Memory has versions. A BUFFER or PARAM is the memory as given, AFTER(x, effect...) the version that the effects make of x; a STORE
/// makes a
///   version of the version it targets. So no order of evaluation can change a result.
/// - END runs its effect for each value of its ranges, row-major in the order listed. AFTER(x, RANGE...) inside it is the version that the
///   iterations before have left; without that each iteration sees the version before the loop. Lanes are no iterations: what is read
///   behind a store has what all lanes stored.
/// - Elements that a LOAD does not read are 0, or the alternative.
///
/// Errors: IndexError for an access out of bounds, ValueError for memory or variables without a value, ShapeError for sizes that do not
/// fit, InternalError for what no evaluator runs: linear programs of instructions, WMMA, COLLECTIVE, and a loop that carries
/// memory of a group once work-items are launch dimensions.
Evaluation evaluate(std::span<const UOp> roots, EvalInputs& inputs, const EvalOptions& options = {});
Array evaluate(const UOp& root, EvalInputs& inputs);
/// The value of a graph that reads no memory.
Array evaluate(const UOp& root);

}  // namespace tinygrad::spec
