#pragma once
/// tcgen05 in CUDA C: statements around assembly. renderer/ptx/tensor_memory.h says what they are for.

#include <cstdint>
#include <string>
#include <string_view>

#include "renderer/cstyle/prelude.h"
#include "renderer/cstyle/value.h"
#include "target/target.h"

namespace tinygrad::renderer::cstyle {

class TensorMemory {
 public:
  TensorMemory(Prelude& prelude, const KernelInfo& info);

  /// The first of so many columns.
  int32_t add_tile(int32_t columns);
  /// `adds` is a bool: whether there is anything to add to.
  std::string begin_product(const TensorCore& core, int32_t tile, std::string_view a, std::string_view b, std::string_view adds);
  /// From and to a variable.
  std::string write(int32_t tile, const Value& sums);
  std::string read(int32_t tile, const Value& sums, std::string_view adds);
  std::string wait();
  std::string barrier();
  /// In front of what a barrier must precede, if none does; else empty.
  std::string needed_barrier();
  void forget_barrier() { needs_barrier_ = true; }

  /// Lines in front of the kernel's body, given a pointer to `kept_sums_group_bytes` of the group's memory, and behind it.
  std::string prologue(std::string_view shared);
  std::string epilogue();

 private:
  Prelude& prelude_;
  const KernelInfo& info_;
  int32_t used_ = 0;  ///< columns of 128 items
  bool needs_barrier_ = false;
};

}  // namespace tinygrad::renderer::cstyle
