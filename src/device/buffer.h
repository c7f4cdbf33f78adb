#pragma once
#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "device/device.h"
#include "uop/uop.h"

namespace tinygrad {

class Buffer;
using BufferPtr = IntrusivePtr<Buffer>;

/// A run of elements on a device: the resource of a BUFFER node. Memory is taken when first needed and returned with the last
/// reference. A view is a part of a base, which it keeps alive. Safe for several threads, but for the content.
class Buffer final : public Resource {
 public:
  /// A buffer that has no memory yet, unless `spec` has an external pointer.
  static BufferPtr make(Device& device, int64_t size, DType dtype, const BufferSpec& spec = {});
  /// The memory of another device's buffer in place, if both are the host's and what it holds lies as the dtype needs it; else null.
  static BufferPtr sharing(Device& device, const BufferPtr& memory);
  /// `size` elements of `dtype` that start `byte_offset` bytes into this one; views of views have the same base. Throws ValueError if
  /// they are not inside.
  BufferPtr view(int64_t byte_offset, int64_t size, DType dtype);
  ~Buffer() override;

  Device& device() const { return device_; }
  int64_t size() const { return size_; }  ///< elements
  DType dtype() const { return dtype_; }
  size_t nbytes() const { return static_cast<size_t>(size_) * itemsize(dtype_); }
  const BufferSpec& spec() const { return spec_; }

  bool is_view() const { return base_ != nullptr; }
  Buffer& base() { return base_ ? *base_ : *this; }
  const Buffer& base() const { return base_ ? *base_ : *this; }
  size_t byte_offset() const { return byte_offset_; }
  /// The same for all buffers on the same memory: the base, or that of what it shares.
  const Buffer& origin() const { return base().shared_ ? base().shared_->origin() : base(); }
  Buffer& origin() { return const_cast<Buffer&>(std::as_const(*this).origin()); }

  bool is_allocated() const { return base().memory_.load(std::memory_order_acquire) != nullptr; }
  /// Takes memory (for the base) if there is none. Throws OutOfMemoryError, having changed nothing.
  void ensure_allocated();
  /// Returns the memory of the base; the content is lost. Nobody may be using it.
  void deallocate();

  /// What a kernel gets; takes memory if there is none.
  void* handle();
  /// The elements, to read and write, for devices whose memory the host reaches; else DeviceError. Takes memory if there is none.
  std::byte* data();

  /// All bytes, from or to host memory of nbytes(). Waits for the device. One that nothing was written to holds anything; reading one that
  /// is poisoned throws DeviceError. Sizes that differ throw ValueError.
  void copyin(std::span<const std::byte> from);
  void copyout(std::span<std::byte> to);
  /// All bytes of another buffer of the same nbytes(), of any device.
  void copy_from(Buffer& from);

  /// Marks the content of the base as lost, because a store to it may have run in part: reading throws DeviceError with the reason. The
  /// mark goes when the whole base is written by copyin or copy_from, or by a store that ends with written_whole().
  void poison(std::string_view reason) noexcept;
  /// All of it was written, by whatever way.
  void written_whole();
  bool poisoned() const { return base().poisoned_.load(std::memory_order_acquire); }
  /// Throws DeviceError if the content is lost.
  void check_readable() const;
  /// A part of it was stored to.
  void note_write() { origin().content_.fetch_add(1, std::memory_order_release); }
  /// How often it was written to by way of the library.
  uint64_t writes() const { return origin().content_.load(std::memory_order_acquire); }
  /// A number that is another one after each write to this memory; 0 where it may be written without note_write().
  uint64_t content() const;
  /// For who works with the memory of an origin while others may want to: readers beside one another, or one writer alone. False where
  /// somebody is in the way. See tensor/claims.h.
  bool try_claim(bool writes) noexcept;
  void give_back_claim(bool writes) noexcept { claims_.fetch_add(writes ? 1 : -1); }
  /// Whether something that was computed from what is in this memory, or is in it, has gradients: writes end them.
  void note_history() { origin().has_history_.store(true, std::memory_order_release); }
  bool take_history() { return origin().has_history_.exchange(false, std::memory_order_acq_rel); }
  /// A launch of this number (see LaunchLog) writes to it: should the launch turn out to have failed, the content is lost.
  void written_by(uint64_t launch);

 private:
  Buffer(Device& device, int64_t size, DType dtype, const BufferSpec& spec, BufferPtr base, size_t byte_offset);
  bool copy_by_queues(void* to, Buffer& from, void* source);
  void copy_through_host(void* to, Buffer& from, void* source);
  std::string describe() const;

  Device& device_;
  const int64_t size_;
  const DType dtype_;
  const BufferSpec spec_;
  const BufferPtr base_;  // null for a base
  BufferPtr shared_;      // whose memory this is, of another device
  const size_t byte_offset_;

  // Used by bases only, not by views.
  mutable std::mutex mutex_;
  std::atomic<void*> memory_{nullptr};
  std::atomic<bool> poisoned_{false};
  std::atomic<bool> shown_{false};  ///< the host has a pointer to it
  std::atomic<uint64_t> content_{1};
  std::atomic<int32_t> claims_{0};  ///< readers; -1: a writer
  std::atomic<bool> has_history_{false};
  std::atomic<uint64_t> last_launch_{0};  ///< that wrote to it, of an asynchronous device
  std::string poison_reason_;
};

/// The buffer that a BUFFER node of device scope hangs on; InternalError for any other node.
Buffer& buffer_of(const UOp& node);
/// Of memory on several devices, an MSTACK, those of its parts, and of a BUFFER its own.
SmallVector<Buffer*, 1> buffers_of(const UOp& memory);

}  // namespace tinygrad
