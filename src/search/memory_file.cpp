#include "search/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/core.h>

#include <tinygrad/errors.h>

namespace tinygrad::search {

MemoryFile::MemoryFile(uint64_t bytes) : size_(std::max<uint64_t>(bytes, 1)) {
  descriptor_ = ::memfd_create("tinygrad-search", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor_ >= 0 && ::ftruncate(descriptor_, off_t(size_)) == 0 && ::fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK) == 0) {
    void* m = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (m != MAP_FAILED) {
      memory_ = static_cast<std::byte*>(m);
      return;
    }
  }
  if (descriptor_ >= 0) ::close(descriptor_);
  throw OutOfMemoryError(fmt::format("search: no memory file of {} bytes", size_));
}

MemoryFile::~MemoryFile() {
  ::munmap(memory_, size_);
  ::close(descriptor_);
}

}  // namespace tinygrad::search
