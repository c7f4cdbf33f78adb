#pragma once
#include <cstdint>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad {

/// Where the arrays of a kernel's groups lie in memory that a launch gives, and how they are aligned. An array that may be swizzled for a
/// tensor core begins where a pattern of the swizzle does; those stand in front of the others.
class GroupLayout {
 public:
  explicit GroupLayout(const UOp& linear);

  int64_t place(const UOp& buffer) const { return *places_.find(buffer); }
  /// Bytes of all arrays.
  int64_t bytes() const { return bytes_; }
  /// Of one array, or of all the memory.
  int alignment(const UOp& buffer) const;
  int alignment() const { return may_swizzle_ ? pattern_bytes : least_alignment; }

  static constexpr int least_alignment = 16;

 private:
  static constexpr int pattern_bytes = 1024;  ///< after which a swizzle repeats
  static bool is_whole_pattern(const UOp& buffer);

  NodeMap<int64_t> places_;
  int64_t bytes_ = 0;
  bool may_swizzle_ = false;  ///< cores read factors from the memory
};

}  // namespace tinygrad
