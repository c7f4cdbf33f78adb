#pragma once
/// What of a kernel's values its text has to compute, and which of them as numbers of 64 bits for addresses.

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::renderer::llvmir {

/// Indices count with 32 bits, addresses have 64: where every step to an index is exact, it is computed with 64 bits from the loops on, so
/// that LLVM finds the strides of addresses without a proof for each that the narrow sum cannot wrap.
class Needs {
 public:
  explicit Needs(const UOp& linear);

  /// As what it is.
  bool value(const UOp& u) const { return !is_pure(u) || value_.contains(u); }
  /// As a number of 64 bits.
  bool wide(const UOp& u) const { return wide_.contains(u); }
  /// Whether a wide number is computed from the wide ones of its sources; else it is the value, extended.
  static bool is_wide_sum(const UOp& u);

 private:
  static bool is_pure(const UOp& u);
  void read(const UOp& u);
  void read_wide(const UOp& u);
  void read_address(const UOp& index);

  NodeMap<bool> value_, wide_;
};

}  // namespace tinygrad::renderer::llvmir
