#pragma once
#include <cstddef>
#include <map>
#include <mutex>

#include "base/memory_file.h"
#include "device/host_memory.h"

namespace tinygrad::runtime {

/// Memory that a process for another processor can reach, too: pieces of one file that both have mapped. Safe for several threads.
class SharedHeap {
 public:
  static constexpr size_t alignment = 128;  ///< a vector register
  static constexpr size_t bytes = size_t{1} << 30;
  static constexpr size_t mailbox_bytes = 64 << 10;  ///< at the beginning, never handed out

  SharedHeap();

  int file() const { return file_.descriptor(); }
  std::byte* base() const { return base_; }
  /// nullptr where there is none.
  void* allocate(size_t size);
  void free(void* memory, size_t size) noexcept;
  bool contains(const void* memory) const;
  /// Where in the file something of it is.
  size_t offset(const void* memory) const { return static_cast<size_t>(static_cast<const std::byte*>(memory) - base_); }

 private:
  MemoryFile file_;
  std::byte* base_;
  std::mutex mutex_;
  std::map<size_t, size_t> free_;  ///< by where they begin, how long they are
};

/// Buffers in it.
class SharedAllocator final : public HostMemory<LruAllocator> {
 public:
  SharedAllocator(std::string device, SharedHeap& heap) : HostMemory(std::move(device)), heap_(heap) {}
  ~SharedAllocator() override { empty_cache(); }
  bool uses_host_memory() const override { return false; }  // only what both sides have mapped

 protected:
  void* system_allocate(size_t size, const BufferSpec&) override { return heap_.allocate(size); }
  void system_free(void* handle, size_t size, const BufferSpec&) noexcept override { heap_.free(handle, size); }

 private:
  SharedHeap& heap_;
};

}  // namespace tinygrad::runtime
