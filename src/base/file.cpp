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
#include <filesystem>
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

uint64_t file_size(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) fail("cannot open", path);
  if (!S_ISREG(info.st_mode)) fail("it is no file with a size:", path, S_ISDIR(info.st_mode) ? EISDIR : ESPIPE);
  return static_cast<uint64_t>(info.st_size);
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path found = std::filesystem::absolute(path, error);
  if (error) fail("cannot find", path, error.value());
  return found.string();
}

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
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

namespace {

std::string name_beside(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.{}.{}.tmp", path, ::getpid(), counter++);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(name_beside(path_)) {
  const bool existed = ::access(path_.c_str(), F_OK) == 0;
  const mode_t mode = mode_for(path_);
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd_ < 0) fail("cannot create", temporary_);
  if (existed) ::fchmod(fd_, mode);  // what the umask took away
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!committed_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) { write_all(fd_, bytes, temporary_); }

void AtomicFile::commit() {
  // The errors of close() matter: some file systems report a full disk only here.
  if (::fsync(fd_) != 0 || ::close(std::exchange(fd_, -1)) != 0) fail("cannot write", temporary_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot replace", path_);
  committed_ = true;
}

MappedFile::MappedFile(const std::string& path, Access access) {
  struct stat info{};
  Descriptor file(open_for_reading(path, info));
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;  // mmap refuses it, and there is nothing to map
  void* memory = ::mmap(nullptr, size_, access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) fail("cannot map", path);
  data_ = static_cast<std::byte*>(memory);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace tinygrad
