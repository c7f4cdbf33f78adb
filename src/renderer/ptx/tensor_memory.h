#pragma once
/// tcgen05: products whose sums are in a memory of the tensor cores' own, that items only copy registers to and from (PTX ISA, 9.7.16).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/kernel_info.h>

#include "renderer/ptx/emitter.h"
#include "target/target.h"

namespace tinygrad::renderer::ptx {

/// A place for the sums of a core, in each 128 items' part of the memory.
struct TensorTile {
  std::string place;  ///< a register, for products
  std::string lanes;  ///< a register, for an item of each warp
  std::string adds;   ///< a predicate: false before the first product, which overwrites what is there
  int32_t columns = 0;
};

/// Takes memory for all tiles when the kernel starts, and gives it back. All items of a group do each of these at the same place.
class TensorMemory {
 public:
  TensorMemory(Emitter& out, const KernelInfo& info);

  TensorTile add_tile(int32_t columns);
  /// The tile is to hold nothing.
  void clear(const TensorTile& tile);
  void write(const TensorTile& tile, const std::vector<std::string>& sums);
  /// Sums in registers of 32 bits; zeros where there was no product.
  void read(const TensorTile& tile, DType dtype, const std::vector<std::string>& sums);
  /// Begins to add a product of factors given by their descriptors.
  void begin_product(const TensorCore& core, const TensorTile& tile, std::string_view a, std::string_view b);
  /// Waits for all that were begun.
  void wait();
  void barrier();
  /// What stands next may come after a wait or a read that no barrier has followed.
  void forget_barrier() { needs_barrier_ = true; }

  /// Lines in front of the kernel's, given the register with the address of `tensor_memory_group_bytes` of the group's memory; and those
  /// behind.
  std::string prologue(std::string_view shared) const;
  std::string epilogue() const;

 private:
  Emitter& out_;
  const KernelInfo& info_;
  std::string item_, is_first_, is_first_warp_, starts_products_, base_, done_, phase_, lane_;
  std::string tiles_;  ///< lines that find them
  int32_t used_ = 0;   ///< columns of 128 items
  bool needs_barrier_ = false;
};

}  // namespace tinygrad::renderer::ptx
