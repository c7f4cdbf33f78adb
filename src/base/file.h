#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tinygrad {

/// All bytes of a file. Throws IoError.
std::string read_file(const std::string& path);

/// Puts bytes into a file so that a reader, and a crash, sees the old content or the new but nothing between: into a file
/// beside it, which then takes its name and mode. Throws IoError and leaves the old file.
void write_file_atomic(const std::string& path, std::string_view bytes);

/// A file's bytes as read-only memory, loaded as they are touched.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws IoError.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tinygrad
