#pragma once
/// Writes zip archives whose files are stored as they are, zip64 where they are large.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::archive {

class ZipWriter {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;
  /// `sink` gets the archive's bytes one after another.
  explicit ZipWriter(Sink sink) : sink_(std::move(sink)) {}

  /// A file of these parts, one behind the other; it begins at a multiple of 64 bytes. A name has at most 65000 bytes.
  void add(std::string_view name, std::span<const std::span<const std::byte>> parts);
  /// The directory, which is last.
  void finish();

 private:
  void write(std::string_view bytes);

  Sink sink_;
  uint64_t at_ = 0, count_ = 0;
  std::string directory_;
};

}  // namespace tinygrad::archive
