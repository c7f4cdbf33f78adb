#include "base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/core.h>

#include <tinygrad/errors.h>

namespace tinygrad {
namespace {

/// -1 where there is no memory.
int create(uint64_t size) {
  const int descriptor = ::memfd_create("tinygrad-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor >= 0 && ::ftruncate(descriptor, off_t(size)) == 0 && ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
    return descriptor;
  if (descriptor >= 0) ::close(descriptor);
  return -1;
}

}  // namespace

MemoryFile::MemoryFile(uint64_t bytes) : MemoryFile(create(std::max<uint64_t>(bytes, 1)), std::max<uint64_t>(bytes, 1)) {}

MemoryFile MemoryFile::opened(int descriptor) {
  struct stat s = {};
  if (::fstat(descriptor, &s) != 0 || s.st_size <= 0) throw FormatError("there is no memory file");
  return {descriptor, uint64_t(s.st_size)};
}

MemoryFile::MemoryFile(int descriptor, uint64_t size) : descriptor_(descriptor), size_(size) {
  void* m = descriptor < 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (m == MAP_FAILED) {
    if (descriptor >= 0) ::close(descriptor);
    throw OutOfMemoryError(fmt::format("no memory file of {} bytes", size));
  }
  memory_ = static_cast<std::byte*>(m);
}

MemoryFile::~MemoryFile() {
  ::munmap(memory_, size_);
  ::close(descriptor_);
}

std::span<std::byte> MemoryFile::at(uint64_t offset, uint64_t bytes) const {
  if (offset > size_ || bytes > size_ - offset)
    throw FormatError(fmt::format("{} bytes at {} of a memory file of {}", bytes, offset, size_));
  return {memory_ + offset, bytes};
}

}  // namespace tinygrad
