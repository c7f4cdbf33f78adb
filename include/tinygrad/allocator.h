#pragma once
/// Memory of devices.

#include <atomic>
#include <compare>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <tinygrad/export.h>

namespace tinygrad {

/// What memory a buffer asks for, beside its size.
struct BufferSpec {
  void* external_ptr = nullptr;           ///< memory of somebody else, used in place and never freed; it must outlive the buffer
  std::shared_ptr<void> owner = nullptr;  ///< keeps the external memory alive
  bool host = false;                      ///< memory of a device that the host can reach too
  friend auto operator<=>(const BufferSpec&, const BufferSpec&) = default;
};

/// Memory of one device. Handles are opaque but for the device and its kernels. Safe for several threads.
class TINYGRAD_EXPORT Allocator {
 public:
  explicit Allocator(std::string device) : device_(std::move(device)) {}
  virtual ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Memory for `bytes` bytes, of unspecified content. Throws OutOfMemoryError saying what was asked for and what is in use; nothing has
  /// changed then, and the same call may work after memory was freed.
  void* allocate(size_t bytes, const BufferSpec& spec);
  void deallocate(void* handle, size_t bytes, const BufferSpec& spec) noexcept;
  /// Gives cached memory back to the system.
  virtual void empty_cache() noexcept {}

  /// Bytes handed out and not yet returned.
  size_t bytes_in_use() const { return in_use_.load(std::memory_order_relaxed); }
  /// The most that ever were.
  size_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  /// Bytes kept for later.
  virtual size_t bytes_cached() const { return 0; }

  /// Whether handles are addresses of the host, so that memory of somebody else (BufferSpec::external_ptr) can be used in place.
  virtual bool uses_host_memory() const { return false; }
  /// The handle of the part of an allocation that starts at `bytes`.
  virtual void* offset(void* handle, size_t bytes) const = 0;
  /// Where the host finds the memory, or nullptr.
  virtual std::byte* host_pointer(void* handle) const = 0;
  virtual void copy_in(void* handle, const std::byte* from, size_t bytes) = 0;
  /// Writes `bytes` of something, from byte `at` of it on, to memory of the host; may throw.
  using Reader = std::function<void(std::byte* to, size_t at, size_t bytes)>;
  /// The same of what a function reads, in pieces from the first byte on. Where it can, a device has it read to where it takes memory of
  /// the host from, so that files need no memory between; this one has it read to a piece of 16 MiB. If the function throws, what was read
  /// before may have been written.
  virtual void copy_in_read(void* handle, size_t bytes, const Reader& read);
  virtual void copy_out(std::byte* to, void* handle, size_t bytes) = 0;
  /// Within the device; the ranges may overlap.
  virtual void copy(void* to, void* from, size_t bytes) = 0;

 protected:
  const std::string& device() const { return device_; }
  /// nullptr when there is no memory.
  virtual void* take(size_t bytes, const BufferSpec& spec) = 0;
  virtual void give_back(void* handle, size_t bytes, const BufferSpec& spec) noexcept = 0;

 private:
  void* take_within_limit(size_t bytes, const BufferSpec& spec);
  bool count(size_t bytes);

  const std::string device_;
  std::atomic<size_t> in_use_{0}, peak_{0};
};

/// Keeps freed memory for allocations of the same size and spec, unless LRU=0. Together with what is in use it never keeps more than twice
/// the most that ever was in use: sizes that were not asked for lately go first. When memory is used up the cache is emptied and the
/// allocation tried once more. Whoever derives from it calls empty_cache() in its destructor.
class TINYGRAD_EXPORT LruAllocator : public Allocator {
 public:
  explicit LruAllocator(std::string device);
  ~LruAllocator() override;

  void empty_cache() noexcept override;
  size_t bytes_cached() const override;

 protected:
  /// nullptr when there is no memory.
  virtual void* system_allocate(size_t bytes, const BufferSpec& spec) = 0;
  virtual void system_free(void* handle, size_t bytes, const BufferSpec& spec) noexcept = 0;

 private:
  void* take(size_t bytes, const BufferSpec& spec) override;
  void give_back(void* handle, size_t bytes, const BufferSpec& spec) noexcept override;

  bool keep(void* handle, size_t bytes, const BufferSpec& spec) noexcept;

  struct Cache;
  const std::unique_ptr<Cache> cache_;
};

}  // namespace tinygrad
