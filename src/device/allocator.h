#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tinygrad {

/// What memory a buffer asks for, beside its size.
struct BufferSpec {
  void* external_ptr = nullptr;           ///< memory of somebody else, used in place and never freed; it must outlive the buffer
  std::shared_ptr<void> owner = nullptr;  ///< keeps the external memory alive
  bool host = false;                      ///< memory of a device that the host can reach too
  friend auto operator<=>(const BufferSpec&, const BufferSpec&) = default;
};

/// Memory of one device. Handles are opaque but for the device and its kernels. Safe for several threads.
class Allocator {
 public:
  explicit Allocator(std::string device) : device_(std::move(device)) {}
  virtual ~Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Memory for `bytes` bytes, of unspecified content. Throws OutOfMemoryError saying what was asked for and what is in use; nothing has
  /// changed then, and the same call may work after memory was freed.
  void* allocate(size_t bytes, const BufferSpec& spec);
  void deallocate(void* handle, size_t bytes, const BufferSpec& spec) noexcept;
  /// Gives cached memory back to the system.
  virtual void empty_cache() noexcept {}

  /// Bytes handed out and not yet returned.
  size_t bytes_in_use() const;
  /// The most that ever were.
  size_t peak_bytes() const;
  /// Bytes kept for later.
  virtual size_t bytes_cached() const { return 0; }

  /// The handle of the part of an allocation that starts at `bytes`.
  virtual void* offset(void* handle, size_t bytes) const = 0;
  /// Where the host finds the memory, or nullptr.
  virtual std::byte* host_pointer(void* handle) const = 0;
  virtual void copy_in(void* handle, const std::byte* from, size_t bytes) = 0;
  virtual void copy_out(std::byte* to, void* handle, size_t bytes) = 0;
  /// Within the device; the ranges may overlap.
  virtual void copy(void* to, void* from, size_t bytes) = 0;

 protected:
  /// nullptr when there is no memory.
  virtual void* take(size_t bytes, const BufferSpec& spec) = 0;
  virtual void give_back(void* handle, size_t bytes, const BufferSpec& spec) noexcept = 0;

 private:
  void* take_within_limit(size_t bytes, const BufferSpec& spec);

  std::string device_;
  mutable std::mutex mutex_;  // of the count only
  size_t in_use_ = 0, peak_ = 0;
};

/// Keeps freed memory for allocations of the same size and spec, unless LRU=0. Together with what is in use it never keeps more than twice
/// the most that ever was in use: sizes that were not asked for lately go first. When memory is used up the cache is emptied and the
/// allocation tried once more.
class LruAllocator : public Allocator {
 public:
  using Allocator::Allocator;

  void empty_cache() noexcept override;
  size_t bytes_cached() const override;

 protected:
  virtual void* system_allocate(size_t bytes, const BufferSpec& spec) = 0;
  virtual void system_free(void* handle, size_t bytes, const BufferSpec& spec) noexcept = 0;

 private:
  void* take(size_t bytes, const BufferSpec& spec) override;
  void give_back(void* handle, size_t bytes, const BufferSpec& spec) noexcept override;

  using Key = std::pair<size_t, BufferSpec>;
  struct List {
    std::vector<void*> handles;
    uint64_t used = 0;  // when something was last taken or given back
  };
  using Lists = std::map<Key, List>;
  bool keep(void* handle, size_t bytes, const BufferSpec& spec) noexcept;
  std::vector<Lists::node_type> shrink(size_t most);

  mutable std::mutex mutex_;
  Lists cache_;
  size_t cached_ = 0;
  uint64_t now_ = 0;
};

}  // namespace tinygrad
