#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad {

/// Where a CPU kernel has its private memory. What is small is on the stack, where compilers make registers of it; the rest has places in
/// an area that each thread brings when it calls the kernel, so that kernels run on any stack.
class ScratchLayout {
 public:
  /// Of the area and of each place in it: a vector register, a cache line.
  static constexpr int64_t alignment = 64;
  /// All that a kernel has on the stack.
  static constexpr int64_t stack_bytes = 16 << 10;

  explicit ScratchLayout(const UOp& linear);

  int64_t bytes() const { return bytes_; }
  /// Of a BUFFER, in bytes into the area; nothing if it is on the stack.
  std::optional<int64_t> offset(const UOp& buffer) const;
  /// BUFFERs in the area, in the order of their places.
  std::span<const UOp> buffers() const { return buffers_; }

 private:
  std::vector<UOp> buffers_;
  NodeMap<int64_t> offsets_;
  int64_t bytes_ = 0;
};

}  // namespace tinygrad
