#pragma once
/// Writes small archives for tests, right ones and wrong ones.

#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::test {

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
inline std::string text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// Packed with gzip's header (window 31) or without any (window -15).
inline std::string deflated(std::string_view text, int window) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
inline std::string gzipped(std::string_view text) { return deflated(text, 31); }

struct TarMember {
  std::string name, content;
  char type = '0';
  std::string prefix = {};
  std::string size = {};  ///< the field's text, by default the octal size
};

inline std::string tar_of(const std::vector<TarMember>& members, bool with_end = true) {
  std::string out;
  for (const TarMember& m : members) {
    std::string header(512, '\0');
    header.replace(0, m.name.size(), m.name);
    header.replace(100, 8, "0000644 ");
    const std::string size = m.size.empty() ? fmt::format("{:011o} ", m.content.size()) : m.size;
    header.replace(124, size.size(), size);
    header[156] = m.type;
    header.replace(257, 8, std::string("ustar\0", 6) + "00");
    header.replace(345, m.prefix.size(), m.prefix);
    header.replace(148, 8, 8, ' ');
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    header.replace(148, 7, fmt::format("{:06o}", sum) + std::string(1, '\0'));
    out += header + m.content + std::string((512 - m.content.size() % 512) % 512, '\0');
  }
  return with_end ? out + std::string(1024, '\0') : out;
}

inline std::string pax_record(const std::string& key, const std::string& value) {
  size_t length = key.size() + value.size() + 3;
  while (std::to_string(length).size() + key.size() + value.size() + 3 != length)
    length = std::to_string(length).size() + key.size() + value.size() + 3;
  return fmt::format("{} {}={}\n", length, key, value);
}

template <class T>
std::string little(T value) {
  std::string out;
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  return out;
}

struct ZipMember {
  std::string name, content;
  bool deflate = false;
  bool zip64 = false;  ///< sizes and place are in an extra field
  uint16_t flags = 0, method = 0;
};

inline std::string zip_of(const std::vector<ZipMember>& members, bool zip64_end = false, const std::string& comment = "") {
  std::string out, directory;
  for (const ZipMember& m : members) {
    const std::string packed = m.deflate ? deflated(m.content, -15) : m.content;
    const uint32_t crc =
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(m.content.data()), static_cast<uInt>(m.content.size())));
    const uint16_t method = m.method ? m.method : m.deflate ? 8 : 0;
    const uint32_t size = m.zip64 ? UINT32_MAX : static_cast<uint32_t>(m.content.size());
    const uint32_t packed_size = m.zip64 ? UINT32_MAX : static_cast<uint32_t>(packed.size());
    const uint32_t place = m.zip64 ? UINT32_MAX : static_cast<uint32_t>(out.size());
    std::string extra;
    if (m.zip64)
      extra = little<uint16_t>(1) + little<uint16_t>(24) + little<uint64_t>(m.content.size()) + little<uint64_t>(packed.size()) +
              little<uint64_t>(out.size());
    const std::string common = little(m.flags) + little(method) + little<uint32_t>(0) + little(crc) + little(packed_size) + little(size) +
                               little(static_cast<uint16_t>(m.name.size()));
    directory += little<uint32_t>(0x02014b50) + little<uint16_t>(20) + little<uint16_t>(20) + common +
                 little(static_cast<uint16_t>(extra.size())) + little<uint16_t>(0) + little<uint16_t>(0) + little<uint16_t>(0) +
                 little<uint32_t>(0) + little(place) + m.name + extra;
    out += little<uint32_t>(0x04034b50) + little<uint16_t>(20) + common + little<uint16_t>(4) + m.name + "xyz!" + packed;
  }
  const size_t begin = out.size();
  out += directory;
  const size_t end64 = out.size();
  if (zip64_end)
    out += little<uint32_t>(0x06064b50) + little<uint64_t>(44) + little<uint32_t>(0) + little<uint64_t>(0) +
           little<uint64_t>(members.size()) + little<uint64_t>(members.size()) + little<uint64_t>(directory.size()) +
           little<uint64_t>(begin) + little<uint32_t>(0x07064b50) + little<uint32_t>(0) + little<uint64_t>(end64) + little<uint32_t>(1);
  const uint16_t count = zip64_end ? UINT16_MAX : static_cast<uint16_t>(members.size());
  return out + little<uint32_t>(0x06054b50) + little<uint32_t>(0) + little(count) + little(count) +
         little(zip64_end ? UINT32_MAX : static_cast<uint32_t>(directory.size())) +
         little(zip64_end ? UINT32_MAX : static_cast<uint32_t>(begin)) + little(static_cast<uint16_t>(comment.size())) + comment;
}

}  // namespace tinygrad::test
