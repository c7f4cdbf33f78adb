#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad {

/// Where a CPU kernel has its private memory. Small BUFFERs are on the stack, where compilers make registers of them. The others have
/// places in a scratch area that each thread brings when it calls the kernel, so that kernels need little stack.
class ScratchLayout {
 public:
  /// Bytes to which the area and each place in it are aligned: a vector register, a cache line.
  static constexpr int64_t alignment = 64;
  /// The most bytes of BUFFERs that a kernel has on the stack.
  static constexpr int64_t stack_bytes = 16 << 10;

  explicit ScratchLayout(const UOp& linear);

  int64_t bytes() const { return bytes_; }
  /// The place of a BUFFER, in bytes from the beginning of the area; nothing if it is on the stack.
  std::optional<int64_t> offset(const UOp& buffer) const;
  /// BUFFERs in the area, in the order of their places.
  std::span<const UOp> buffers() const { return buffers_; }

 private:
  std::vector<UOp> buffers_;
  NodeMap<int64_t> offsets_;
  int64_t bytes_ = 0;
};

}  // namespace tinygrad
