#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tinygrad {

/// The bytes of a file that is there. Throws IoError for what has no size, such as a folder or a pipe.
uint64_t file_size(const std::string& path);
/// From the root on. Throws IoError.
std::string absolute_path(const std::string& path);

/// All bytes of a file. Throws IoError.
std::string read_file(const std::string& path);

/// Puts bytes into a file so that a reader, and a crash, sees the old content or the new but nothing between: into a file
/// beside it, which then takes its name and mode. Throws IoError and leaves the old file.
void write_file_atomic(const std::string& path, std::string_view bytes);

/// The same in pieces: the file takes its name when it is committed; if it never is, it leaves nothing behind.
class AtomicFile {
 public:
  /// Throws IoError, as the others do.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes) { write({reinterpret_cast<const char*>(bytes.data()), bytes.size()}); }
  void commit();

 private:
  const std::string path_, temporary_;
  int fd_ = -1;
  bool committed_ = false;
};

/// A file's bytes as memory, loaded as they are touched.
class MappedFile {
 public:
  enum class Access : uint8_t {
    read,
    copy_on_write,  ///< what is written is not written to the file
  };
  MappedFile() = default;
  /// Throws IoError.
  explicit MappedFile(const std::string& path, Access access = Access::read);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::byte* data() const noexcept { return data_; }
  /// For a mapping that is copied on write.
  std::byte* writable_data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tinygrad
