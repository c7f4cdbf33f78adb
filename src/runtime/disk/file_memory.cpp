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
#include <tinygrad/helpers.h>

namespace tinygrad::runtime {
namespace {

constexpr uintptr_t kFirst = 4096;                      // no handle is null
constexpr uintptr_t kSpacing = uintptr_t{1} << 48;      // of the handles of files that follow each other
constexpr size_t kMostBytes = size_t{kSpacing} - 4096;  // of a file

void* handle_of(uintptr_t address) { return reinterpret_cast<void*>(address); }  // NOLINT(performance-no-int-to-ptr): nothing reads it

}  // namespace

FileMemory::~FileMemory() {
  for (const auto& [first, file] : files_) close(file);
}

void FileMemory::fail(std::string_view what, int error) const {
  throw IoError(fmt::format("{}: {}: {}", device(), what, std::generic_category().message(error)));
}

void* FileMemory::offset(void* handle, size_t bytes) const { return static_cast<std::byte*>(handle) + bytes; }

FileMemory::File FileMemory::open() const {
  File file{.descriptor = ::open(path_.c_str(), O_RDWR | O_CLOEXEC)};
  if (file.descriptor < 0 && errno == ENOENT) {
    file.descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    file.created = file.descriptor >= 0;
  } else if (file.descriptor < 0 && (errno == EACCES || errno == EROFS || errno == EPERM || errno == ETXTBSY)) {
    file.descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    file.read_only = true;
  }
  if (file.descriptor < 0) fail("cannot open it", errno);
  struct stat info{};
  const int error = ::fstat(file.descriptor, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : !S_ISREG(info.st_mode) ? ESPIPE : 0;
  if (error == 0) return file;
  close(file);
  fail("it is no file with a size", error);
}

void FileMemory::close(const File& file) const noexcept { ::close(file.descriptor); }

bool FileMemory::is_current(const File& file) const {
  struct stat ours{}, named{};
  return ::fstat(file.descriptor, &ours) == 0 && ::stat(path_.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
         ours.st_ino == named.st_ino;
}

/// Blocks of the disk are taken now, so that a disk that is full is known before anything is written.
void FileMemory::grow(const File& file, size_t bytes) const {
  struct stat info{};
  if (::fstat(file.descriptor, &info) != 0) fail("cannot ask for its size", errno);
  const auto size = static_cast<size_t>(info.st_size);
  if (bytes <= size) return;
  if (file.read_only) throw IoError(fmt::format("{}: it has {} bytes and cannot be written, {} are asked for", device(), size, bytes));
  int error = EFBIG;
  if (bytes <= kMostBytes) {
    do error = ::posix_fallocate(file.descriptor, info.st_size, static_cast<off_t>(bytes - size));
    while (error == EINTR);
  }
  if (error == 0) return;
  if (::ftruncate(file.descriptor, info.st_size) != 0) error = errno;
  fail(fmt::format("cannot make it {} bytes long", bytes), error);
}

void* FileMemory::take(size_t bytes, const BufferSpec&) {
  const std::lock_guard lock(mutex_);
  if (!files_.empty() && is_current(files_.rbegin()->second)) {
    auto& [first, file] = *files_.rbegin();
    grow(file, bytes);
    ++file.users;
    return handle_of(first);
  }
  File file = open();
  try {
    grow(file, bytes);
  } catch (...) {
    close(file);
    if (file.created) ::unlink(path_.c_str());
    throw;
  }
  file.users = 1;
  const uintptr_t first = files_.empty() ? kFirst : files_.rbegin()->first + kSpacing;
  files_.emplace(first, file);
  return handle_of(first);
}

void FileMemory::give_back(void* handle, size_t, const BufferSpec&) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(reinterpret_cast<uintptr_t>(handle));
  if (found == files_.end() || --found->second.users != 0) return;
  close(found->second);
  files_.erase(found);
}

FileMemory::Place FileMemory::place(const void* handle) const {
  const std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<uintptr_t>(handle);
  const auto& [first, file] = *std::prev(files_.upper_bound(address));
  return {file, address - first};
}

void FileMemory::transfer(std::byte* memory, const Place& place, size_t bytes, bool write) const {
  if (write && place.file.read_only) throw IoError(fmt::format("{}: it cannot be written: no permission", device()));
  for (size_t at = place.at; bytes != 0;) {
    if (!write) check_interrupt();
    const size_t most = std::min(bytes, size_t{64} << 20);
    const auto from = static_cast<off_t>(at);
    const ssize_t done = write ? ::pwrite(place.file.descriptor, memory, most, from) : ::pread(place.file.descriptor, memory, most, from);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(write ? "cannot write to it" : "cannot read it", errno);
    if (done == 0) throw IoError(fmt::format("{}: it has become shorter: byte {} of it is needed and not there", device(), at));
    memory += done;
    at += static_cast<size_t>(done);
    bytes -= static_cast<size_t>(done);
  }
}

void FileMemory::copy_in(void* handle, const std::byte* from, size_t bytes) {
  transfer(const_cast<std::byte*>(from), place(handle), bytes, true);
}

void FileMemory::copy_out(std::byte* to, void* handle, size_t bytes) { transfer(to, place(handle), bytes, false); }

/// In pieces, from the end where the ranges overlap that way.
void FileMemory::copy(void* to, void* from, size_t bytes) {
  constexpr size_t most = size_t{4} << 20;
  const Place target = place(to), source = place(from);
  std::vector<std::byte> piece(std::min(most, bytes));
  const bool backwards = &target.file == &source.file && target.at > source.at;
  for (size_t done = 0; done < bytes;) {
    const size_t n = std::min(most, bytes - done), at = backwards ? bytes - done - n : done;
    transfer(piece.data(), {source.file, source.at + at}, n, false);
    transfer(piece.data(), {target.file, target.at + at}, n, true);
    done += n;
  }
}

}  // namespace tinygrad::runtime
