#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace tinygrad::search {

/// Memory that other processes can map too. It cannot be made smaller, so that nobody else makes reading it an error.
class MemoryFile {
 public:
  /// Throws OutOfMemoryError.
  explicit MemoryFile(uint64_t bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::span<std::byte> bytes() const { return {memory_, size_}; }

 private:
  int descriptor_ = -1;
  std::byte* memory_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace tinygrad::search
