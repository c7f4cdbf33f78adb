#pragma once
#include <span>
#include <vector>

#include "device/buffer.h"

namespace tinygrad {

/// The memory of a tensor that is on several devices: a buffer of one size and dtype on each, shards or copies. The resource of a BUFFER
/// node whose device names all of them.
class MultiBuffer final : public Resource {
 public:
  /// A buffer that has no memory yet. `size` is the size of each part, in elements. Throws ValueError for no devices, and for one that is
  /// named twice.
  static IntrusivePtr<MultiBuffer> make(std::span<Device* const> devices, int64_t size, DType dtype, const BufferSpec& spec = {});

  std::span<const BufferPtr> parts() const { return parts_; }
  int64_t size() const { return parts_[0]->size(); }  ///< elements of a part
  DType dtype() const { return parts_[0]->dtype(); }

  bool is_allocated() const;  ///< all of it
  /// Takes what memory is missing. If one device has none, the others keep theirs, for the next try.
  void ensure_allocated();

 private:
  explicit MultiBuffer(std::vector<BufferPtr> parts) : parts_(std::move(parts)) {}

  const std::vector<BufferPtr> parts_;
};

}  // namespace tinygrad
