#include "base/archive/zip_writer.h"

#include <algorithm>
#include <concepts>

#include "base/archive/gzip.h"

namespace tinygrad::archive {

namespace {

constexpr uint64_t in_zip64 = 0xffffffff;  // stands for a number that a zip64 record has
constexpr uint64_t alignment = 64;
constexpr uint16_t utf8_names = 0x0800, stored = 0, first_of_1980 = 0x0021, zip64_id = 1, padding_id = 0xd935;
constexpr uint16_t version = 20, zip64_version = 45;

/// Little-endian numbers one after another.
template <std::unsigned_integral... T>
std::string numbers(T... values) {
  std::string out;
  const auto add = [&](auto value) {
    for (size_t i = 0; i < sizeof(value); ++i) out += static_cast<char>(uint64_t{value} >> (8 * i));
  };
  (add(values), ...);
  return out;
}

uint32_t capped(uint64_t value) { return static_cast<uint32_t>(std::min(value, in_zip64)); }

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  sink_(std::as_bytes(std::span(bytes)));
  at_ += bytes.size();
}

void ZipWriter::add(std::string_view name, std::span<const std::span<const std::byte>> parts) {
  uint64_t size = 0;
  uint32_t crc = 0;
  for (const auto& part : parts) {
    size += part.size();
    crc = crc_of(part, crc);
  }
  const uint64_t begin = at_;
  const bool is_large = size >= in_zip64, is_far = begin >= in_zip64;
  const auto common = [&](bool in_extra) {
    return numbers(in_extra ? zip64_version : version, utf8_names, stored, uint16_t{0}, first_of_1980, crc, capped(size), capped(size),
                   static_cast<uint16_t>(name.size()));
  };
  // The extra field of the local header also fills up to where the file begins.
  std::string extra = is_large ? numbers(zip64_id, uint16_t{16}, size, size) : "";
  constexpr uint64_t local_bytes = 30, extra_bytes = 4;
  const uint64_t after = begin + local_bytes + name.size() + extra.size() + extra_bytes;
  const auto padding = static_cast<uint16_t>((alignment - after % alignment) % alignment);
  extra += numbers(padding_id, padding) + std::string(padding, '\0');
  write(numbers(uint32_t{0x04034b50}) + common(is_large) + numbers(static_cast<uint16_t>(extra.size())) + std::string(name) + extra);
  for (const auto& part : parts) write({reinterpret_cast<const char*>(part.data()), part.size()});

  std::string entry_extra = (is_large ? numbers(size, size) : "") + (is_far ? numbers(begin) : "");
  if (!entry_extra.empty()) entry_extra = numbers(zip64_id, static_cast<uint16_t>(entry_extra.size())) + entry_extra;
  directory_ += numbers(uint32_t{0x02014b50}, is_large || is_far ? zip64_version : version) + common(is_large || is_far) +
                numbers(static_cast<uint16_t>(entry_extra.size()), uint16_t{0}, uint16_t{0}, uint16_t{0}, uint32_t{0}, capped(begin)) +
                std::string(name) + entry_extra;
  ++count_;
}

void ZipWriter::finish() {
  constexpr uint64_t most_files = 0xffff;
  const uint64_t begin = at_, size = directory_.size();
  write(directory_);
  const uint64_t end = at_;
  if (begin >= in_zip64 || size >= in_zip64 || count_ >= most_files)
    write(numbers(uint32_t{0x06064b50}, uint64_t{44}, zip64_version, zip64_version, uint32_t{0}, uint32_t{0}, count_, count_, size, begin,
                  uint32_t{0x07064b50}, uint32_t{0}, end, uint32_t{1}));
  const auto files = static_cast<uint16_t>(std::min(count_, most_files));
  write(numbers(uint32_t{0x06054b50}, uint16_t{0}, uint16_t{0}, files, files, capped(size), capped(begin), uint16_t{0}));
}

}  // namespace tinygrad::archive
