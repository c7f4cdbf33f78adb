#include "base/archive/tar.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include <tinygrad/errors.h>

namespace tinygrad::archive {

namespace {

constexpr size_t block = 512;
constexpr size_t most_extra = size_t{1} << 20;  // bytes of an extended header

struct Field {
  size_t begin, size;
};
constexpr Field name_field{0, 100}, size_field{124, 12}, checksum_field{148, 8}, type_field{156, 1}, magic_field{257, 8},
    prefix_field{345, 155};

class TarReader {
 public:
  TarReader(std::span<const std::byte> archive, const std::string& name) : archive_(archive), name_(name) {}

  std::vector<TarFile> read() {
    if (archive_.empty()) fail("an empty file is no tar archive");
    while (at_ < archive_.size()) {
      if (archive_.size() - at_ < block) fail("cut off in a header");
      header_ = archive_.subspan(at_, block);
      if (std::all_of(header_.begin(), header_.end(), [](std::byte b) { return b == std::byte{0}; })) break;
      check_sum();
      at_ += block;
      take_member();
    }
    return std::move(files_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const { throw FormatError(fmt::format("{}: byte {}: {}", name_, at_, what)); }

  std::string_view raw(Field f) const { return {reinterpret_cast<const char*>(header_.data()) + f.begin, f.size}; }
  /// Up to the first zero.
  std::string_view text(Field f) const {
    const std::string_view all = raw(f);
    return all.substr(0, all.find('\0'));
  }

  /// Octal digits between spaces and zeros, or the bytes of a number behind a first one of 0x80.
  std::optional<uint64_t> number(Field f) const {
    std::string_view digits = raw(f);
    if (static_cast<unsigned char>(digits[0]) == 0x80) {
      uint64_t value = 0;
      for (const char c : digits.substr(1)) {
        if (value >> 56) return {};
        value = value << 8 | static_cast<unsigned char>(c);
      }
      return value;
    }
    digits = digits.substr(0, digits.find('\0'));
    const size_t begin = std::min(digits.find_first_not_of(' '), digits.size());
    const size_t end = digits.find_last_not_of(' ') + 1;
    uint64_t value = 0;
    if (begin >= end) return value;
    const auto [stop, error] = std::from_chars(digits.data() + begin, digits.data() + end, value, 8);
    if (error != std::errc() || stop != digits.data() + end) return {};
    return value;
  }

  void check_sum() const {
    uint64_t as_unsigned = 0;
    int64_t as_signed = 0;  // as some old programs summed
    for (size_t i = 0; i < block; ++i) {
      const bool is_sum = i >= checksum_field.begin && i < checksum_field.begin + checksum_field.size;
      const auto c = is_sum ? static_cast<unsigned char>(' ') : static_cast<unsigned char>(header_[i]);
      as_unsigned += c;
      as_signed += static_cast<signed char>(c);
    }
    const std::optional<uint64_t> sum = number(checksum_field);
    if (!sum || (*sum != as_unsigned && static_cast<int64_t>(*sum) != as_signed)) fail("a header whose checksum is wrong");
  }

  std::span<const std::byte> take_bytes(uint64_t size) {
    if (size > archive_.size() - at_) fail(fmt::format("{} bytes are listed, {} are left", size, archive_.size() - at_));
    const auto bytes = archive_.subspan(at_, size);
    at_ = std::min(archive_.size(), at_ + (size + block - 1) / block * block);
    return bytes;
  }

  void take_member() {
    const char type = raw(type_field)[0];
    const std::optional<uint64_t> listed = number(size_field);
    if (!listed) fail("the size of a file is no number");
    switch (type) {
      case 'L': long_name_ = terminated(take_extra(*listed)); return;
      case 'K': take_extra(*listed); return;  // where a long link leads
      case 'x': take_records(take_extra(*listed)); return;
      case 'g': take_extra(*listed); return;
      case 'S': fail("a sparse file, which is not supported");
      default: break;
    }
    std::string name = long_name_ ? *long_name_ : member_name();
    const uint64_t size = long_size_.value_or(*listed);
    long_name_.reset();
    long_size_.reset();
    if (type >= '1' && type <= '6') return;  // links, devices, folders: without bytes, whatever the size says
    const auto bytes = take_bytes(size);
    const bool is_file = type == '0' || type == '\0' || type == '7';
    if (!is_file || name.ends_with('/')) return;
    if (name.empty()) fail("a file without a name");
    files_.push_back({std::move(name), bytes});
  }

  std::string member_name() const {
    const std::string_view name = text(name_field), prefix = text(prefix_field);
    const bool is_ustar = raw(magic_field).substr(0, 6) == std::string_view("ustar\0", 6);
    return is_ustar && !prefix.empty() ? fmt::format("{}/{}", prefix, name) : std::string(name);
  }

  std::string_view take_extra(uint64_t size) {
    if (size > most_extra) fail(fmt::format("an extended header of {} bytes", size));
    const auto bytes = take_bytes(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static std::string terminated(std::string_view text) { return std::string(text.substr(0, text.find('\0'))); }

  /// "LENGTH KEY=VALUE\n", again and again; the length counts all of it.
  void take_records(std::string_view records) {
    while (!records.empty()) {
      size_t length = 0;
      const auto [stop, error] = std::from_chars(records.data(), records.data() + records.size(), length);
      const size_t digits = static_cast<size_t>(stop - records.data());
      if (error != std::errc() || length > records.size() || length < digits + 3 || *stop != ' ' || records[length - 1] != '\n')
        fail("a pax record that is damaged");
      const std::string_view record = records.substr(digits + 1, length - digits - 2);
      const size_t equals = record.find('=');
      if (equals == std::string_view::npos) fail("a pax record without a value");
      take_record(record.substr(0, equals), record.substr(equals + 1));
      records.remove_prefix(length);
    }
  }
  void take_record(std::string_view key, std::string_view value) {
    if (key == "path") long_name_ = std::string(value);
    if (key.starts_with("GNU.sparse.")) fail("a sparse file, which is not supported");
    if (key != "size") return;
    uint64_t size = 0;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc() || stop != value.data() + value.size()) fail("a pax record whose size is no number");
    long_size_ = size;
  }

  std::span<const std::byte> archive_, header_;
  const std::string& name_;
  size_t at_ = 0;
  std::vector<TarFile> files_;
  // The names that extension headers give the next member.
  std::optional<std::string> long_name_;
  std::optional<uint64_t> long_size_;
};

}  // namespace

std::vector<TarFile> read_tar(std::span<const std::byte> archive, const std::string& name) { return TarReader(archive, name).read(); }

}  // namespace tinygrad::archive
