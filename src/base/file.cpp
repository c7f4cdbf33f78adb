#include "base/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tinygrad/errors.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace tinygrad {
namespace {

[[noreturn]] void fail(std::string_view what, const std::string& path, int error = errno) {
  throw IoError(fmt::format("{} '{}': {}", what, path, std::generic_category().message(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  /// The errors of close() matter after a write: some file systems report a full disk only here.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

int open_for_reading(const std::string& path, struct stat& info) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("cannot open", path);
  int error = ::fstat(fd, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
  if (error == 0) return fd;
  ::close(fd);
  fail("cannot read", path, error);
}

void write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

/// The mode that an existing file has, or that a new one gets.
mode_t mode_for(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0666;
}

}  // namespace

std::string read_file(const std::string& path) {
  struct stat info{};
  Descriptor file(open_for_reading(path, info));
  // The size is a hint: files of /proc say 0, and others may grow while they are read.
  std::string bytes;
  for (size_t used = 0;;) {
    if (used == bytes.size()) bytes.resize(used == 0 ? static_cast<size_t>(info.st_size) + 1 : used * 2);
    ssize_t n = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot read", path);
    used += static_cast<size_t>(n);
    if (n == 0) {
      bytes.resize(used);
      return bytes;
    }
  }
}

void write_file_atomic(const std::string& path, std::string_view bytes) {
  static std::atomic<unsigned> counter{0};
  std::string temporary = fmt::format("{}.{}.{}.tmp", path, ::getpid(), counter++);
  bool existed = ::access(path.c_str(), F_OK) == 0;
  mode_t mode = mode_for(path);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (file.get() < 0) fail("cannot create", temporary);
  try {
    write_all(file.get(), bytes, temporary);
    if (existed) ::fchmod(file.get(), mode);  // what the umask took away
    if (::fsync(file.get()) != 0 || !file.close()) fail("cannot write", temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail("cannot replace", path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

MappedFile::MappedFile(const std::string& path) {
  struct stat info{};
  Descriptor file(open_for_reading(path, info));
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;  // mmap refuses it, and there is nothing to map
  void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) fail("cannot map", path);
  data_ = static_cast<const std::byte*>(memory);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace tinygrad
