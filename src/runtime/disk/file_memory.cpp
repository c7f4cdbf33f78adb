#include "runtime/disk/file_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad::runtime {
namespace {

/// Handles are places in the file, from here, since no handle is null.
constexpr uintptr_t kFirst = 4096;

size_t place_of(const void* handle) { return reinterpret_cast<uintptr_t>(handle) - kFirst; }

}  // namespace

FileMemory::~FileMemory() { close(); }

void FileMemory::fail(std::string_view what, int error) const {
  throw IoError(fmt::format("{}: {}: {}", device(), what, std::generic_category().message(error)));
}

void* FileMemory::offset(void* handle, size_t bytes) const { return static_cast<std::byte*>(handle) + bytes; }

void FileMemory::open() {
  created_ = read_only_ = false;
  file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (file_ < 0 && errno == ENOENT) {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    created_ = file_ >= 0;
  } else if (file_ < 0 && (errno == EACCES || errno == EROFS || errno == EPERM || errno == ETXTBSY)) {
    file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    read_only_ = true;
  }
  if (file_ < 0) fail("cannot open it", errno);
  struct stat info{};
  const int error = ::fstat(file_, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : !S_ISREG(info.st_mode) ? ESPIPE : 0;
  if (error == 0) return;
  close();
  fail("it is no file with a size", error);
}

void FileMemory::close() noexcept {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

/// Blocks of the disk are taken now, so that a disk that is full is known before anything is written.
void FileMemory::grow(size_t bytes) {
  struct stat info{};
  if (::fstat(file_, &info) != 0) fail("cannot ask for its size", errno);
  const auto size = static_cast<size_t>(info.st_size);
  if (bytes <= size) return;
  if (read_only_) throw IoError(fmt::format("{}: it has {} bytes and cannot be written, {} are asked for", device(), size, bytes));
  int error = EFBIG;
  if (bytes <= static_cast<size_t>(INT64_MAX)) {
    do error = ::posix_fallocate(file_, info.st_size, static_cast<off_t>(bytes - size));
    while (error == EINTR);
  }
  if (error == 0) return;
  if (::ftruncate(file_, info.st_size) != 0) error = errno;
  fail(fmt::format("cannot make it {} bytes long", bytes), error);
}

void* FileMemory::take(size_t bytes, const BufferSpec&) {
  const std::lock_guard lock(mutex_);
  if (users_ == 0) open();
  try {
    grow(bytes);
  } catch (...) {
    if (users_ == 0) {
      close();
      if (created_) ::unlink(path_.c_str());
    }
    throw;
  }
  ++users_;
  return reinterpret_cast<void*>(kFirst);
}

void FileMemory::give_back(void*, size_t, const BufferSpec&) noexcept {
  const std::lock_guard lock(mutex_);
  if (--users_ == 0) close();
}

void FileMemory::transfer(std::byte* memory, size_t at, size_t bytes, bool write) {
  if (write && read_only_) throw IoError(fmt::format("{}: it cannot be written: no permission", device()));
  while (bytes != 0) {
    const size_t most = std::min(bytes, size_t{1} << 30);  // the system takes less than 2 GiB at a time
    const ssize_t done =
        write ? ::pwrite(file_, memory, most, static_cast<off_t>(at)) : ::pread(file_, memory, most, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(write ? "cannot write to it" : "cannot read it", errno);
    if (done == 0) throw IoError(fmt::format("{}: it has become shorter: byte {} of it is needed and not there", device(), at));
    memory += done;
    at += static_cast<size_t>(done);
    bytes -= static_cast<size_t>(done);
  }
}

void FileMemory::copy_in(void* handle, const std::byte* from, size_t bytes) {
  transfer(const_cast<std::byte*>(from), place_of(handle), bytes, true);
}

void FileMemory::copy_out(std::byte* to, void* handle, size_t bytes) { transfer(to, place_of(handle), bytes, false); }

/// In pieces, from the end where the ranges overlap that way.
void FileMemory::copy(void* to, void* from, size_t bytes) {
  constexpr size_t most = size_t{4} << 20;
  std::vector<std::byte> piece(std::min(most, bytes));
  const bool backwards = place_of(to) > place_of(from);
  for (size_t done = 0; done < bytes;) {
    const size_t n = std::min(most, bytes - done), at = backwards ? bytes - done - n : done;
    transfer(piece.data(), place_of(from) + at, n, false);
    transfer(piece.data(), place_of(to) + at, n, true);
    done += n;
  }
}

}  // namespace tinygrad::runtime
