#pragma once
/// Where a parser is in the bytes of a file.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/core.h>

#include <tinygrad/errors.h>

namespace tinygrad::frontend {

/// Takes little-endian numbers and texts one after another. Where the file ends before, and where fail() is called, a FormatError names the
/// file, the field and its first byte.
class ByteCursor {
 public:
  /// `file` must live as long.
  ByteCursor(std::span<const std::byte> bytes, std::string_view file, uint64_t at = 0)
      : bytes_(bytes), file_(file), at_(at), field_at_(at) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  T number(std::string_view field) {
    T out;
    std::memcpy(&out, take(sizeof(T), field).data(), sizeof(T));
    return out;
  }
  std::string_view text(uint64_t size, std::string_view field) {
    const std::span<const std::byte> bytes = take(size, field);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> take(uint64_t size, std::string_view field) {
    field_at_ = at_;
    if (size > left()) fail(field, fmt::format("{} bytes are expected, {} are left", size, left()));
    const std::span<const std::byte> out = bytes_.subspan(static_cast<size_t>(at_), static_cast<size_t>(size));
    at_ += size;
    return out;
  }

  /// Up to the next newline, which is taken, too.
  std::string_view line(std::string_view field) {
    field_at_ = at_;
    const char* begin = reinterpret_cast<const char*>(bytes_.data()) + at_;
    const void* end = left() == 0 ? nullptr : std::memchr(begin, '\n', static_cast<size_t>(left()));
    if (!end) fail(field, "no end of a line in what is left");
    const std::string_view out(begin, static_cast<size_t>(static_cast<const char*>(end) - begin));
    at_ += out.size() + 1;
    return out;
  }

  uint64_t at() const { return at_; }
  uint64_t left() const { return at_ < bytes_.size() ? bytes_.size() - at_ : 0; }
  /// Where what was taken last begins.
  uint64_t field_at() const { return field_at_; }
  /// "FILE: FIELD at byte N: why", with the byte at which what was taken last begins.
  [[noreturn]] void fail(std::string_view field, std::string_view why) const { fail_at(field_at_, field, why); }
  [[noreturn]] void fail_at(uint64_t byte, std::string_view field, std::string_view why) const {
    throw FormatError(fmt::format("{}: {} at byte {}: {}", file_, field, byte, why));
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view file_;
  uint64_t at_, field_at_;
};

}  // namespace tinygrad::frontend
