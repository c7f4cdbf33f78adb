#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace tinygrad {

/// Memory that other processes can map too. It cannot be made smaller, so that nobody else makes reading it an error.
class MemoryFile {
 public:
  /// Throws OutOfMemoryError.
  explicit MemoryFile(uint64_t bytes);
  /// The file of another process, by its descriptor. Throws FormatError for a descriptor that is none.
  static MemoryFile opened(int descriptor);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// Throws FormatError where there is no such memory.
  std::span<std::byte> at(uint64_t offset, uint64_t bytes) const;

 private:
  MemoryFile(int descriptor, uint64_t size);

  int descriptor_ = -1;
  std::byte* memory_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace tinygrad
