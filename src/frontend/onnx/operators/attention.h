#pragma once
/// Attention and what goes with it, for the operators of several domains.

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

/// Of queries, keys and values (batch, heads, length, size); keys and values may have fewer heads, each for a group of neighbours.
struct AttentionCall {
  Tensor q, k, v;
  double scale = 1;
  double softcap = 0;
  Tensor allowed = {};    ///< bool, broadcast to (batch, heads, queries, keys); where it is false nothing is attended
  Tensor bias = {};       ///< numbers to add, broadcast likewise
  bool may_close = true;  ///< the bias may be -infinity, as masks are
  std::optional<DType> softmax_dtype = {};

  /// The stages, by their numbers in qk_matmul_output_mode.
  struct Result {
    Tensor y, raw, capped, biased, probabilities;
  };
  /// A query that may attend nothing gives zeros.
  Result compute() const;
};

/// (batch, length, heads * size) as (batch, heads, length, size), and back.
Tensor split_heads(const Tensor& x, int64_t heads);
Tensor join_heads(const Tensor& x);
/// Both where both are defined, else the one that is.
Tensor both(const Tensor& a, const Tensor& b);
/// Keys up to each query, which stand `offset` (a number or (batch, 1, 1, 1)) behind the first; windows of -1 are open.
Tensor key_positions(int64_t keys);
Tensor query_positions(int64_t queries);

/// The first `size` elements of the last axis of x (batch, length, heads, size) turned by angles whose cosines and sines (batch or 1,
/// length, size / 2) are given: pairs lie side by side, or half of `size` apart.
Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool is_interleaved, int64_t size);

}  // namespace tinygrad::onnx
