#include "base/archive/zip.h"

#include <fmt/core.h>

#include <algorithm>
#include <concepts>
#include <cstring>
#include <unordered_set>
#include <utility>

#include <tinygrad/errors.h>

#include "base/archive/gzip.h"

namespace tinygrad::archive {

namespace {

constexpr uint32_t end_magic = 0x06054b50, end64_magic = 0x06064b50, locator_magic = 0x07064b50, entry_magic = 0x02014b50,
                   local_magic = 0x04034b50;
constexpr size_t end_bytes = 22, end64_bytes = 56, locator_bytes = 20, entry_bytes = 46, local_bytes = 30, most_comment = 65535;
constexpr uint32_t in_zip64 = 0xffffffff;  // stands for a number that a zip64 record has
constexpr uint64_t most_expansion = 1032;  // of deflate: more is a lie

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> archive, const std::string& name) : archive_(archive), name_(name) {}

  std::vector<ZipFile> read() {
    find_directory();
    if (count_ > directory_.size() / entry_bytes) fail("a directory shorter than the number of its entries");
    std::vector<ZipFile> files;
    std::unordered_set<std::string> names;
    size_t at = 0;
    for (uint64_t i = 0; i < count_; ++i) {
      files.push_back(read_entry(at));
      if (!names.insert(files.back().name).second) fail(fmt::format("two files named '{}'", files.back().name));
    }
    if (at != directory_.size()) fail("a directory longer than its entries");
    check_overlaps();
    return files;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const { throw FormatError(fmt::format("{}: {}", name_, what)); }

  /// A little-endian number.
  template <std::unsigned_integral T>
  T get(std::span<const std::byte> bytes, size_t at) const {
    if (at > bytes.size() || bytes.size() - at < sizeof(T)) fail("cut off");
    T value = 0;
    for (size_t i = sizeof(T); i-- > 0;) value = static_cast<T>(uint64_t{value} << 8 | static_cast<uint64_t>(bytes[at + i]));
    return value;
  }
  std::span<const std::byte> part(std::span<const std::byte> bytes, uint64_t begin, uint64_t size, std::string_view what) const {
    if (begin > bytes.size() || size > bytes.size() - begin) fail(fmt::format("{} is not inside of the archive", what));
    return bytes.subspan(begin, size);
  }
  static std::string text(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

  /// The end record is last, but for a comment of a length that it tells.
  size_t find_end() const {
    if (archive_.size() < end_bytes) fail("too short for a zip archive");
    const size_t last = archive_.size() - end_bytes, first = last - std::min(last, most_comment);
    for (size_t at = last + 1; at-- > first;)
      if (get<uint32_t>(archive_, at) == end_magic && get<uint16_t>(archive_, at + 20) == archive_.size() - at - end_bytes) return at;
    fail("no zip archive, or cut off");
  }

  void find_directory() {
    const size_t end = find_end();
    count_ = get<uint16_t>(archive_, end + 10);
    uint64_t size = get<uint32_t>(archive_, end + 12), begin = get<uint32_t>(archive_, end + 16);
    uint32_t disk = get<uint16_t>(archive_, end + 4);
    directory_end_ = end;
    if (end >= locator_bytes && get<uint32_t>(archive_, end - locator_bytes) == locator_magic) {
      const auto record = part(archive_, get<uint64_t>(archive_, end - locator_bytes + 8), end64_bytes, "the zip64 end record");
      if (get<uint32_t>(record, 0) != end64_magic) fail("no zip64 end record where one should be");
      disk = get<uint32_t>(record, 16);
      count_ = get<uint64_t>(record, 32);
      size = get<uint64_t>(record, 40);
      begin = get<uint64_t>(record, 48);
      directory_end_ = static_cast<size_t>(record.data() - archive_.data());
    }
    if (disk != 0) fail("a part of an archive over several disks");
    directory_ = part(archive_.first(directory_end_), begin, size, "the directory");
    directory_begin_ = begin;
  }

  ZipFile read_entry(size_t& at) {
    const auto fixed = part(directory_, at, entry_bytes, "an entry");
    if (get<uint32_t>(fixed, 0) != entry_magic) fail("damaged directory");
    const uint16_t flags = get<uint16_t>(fixed, 8), method = get<uint16_t>(fixed, 10);
    const uint16_t name_size = get<uint16_t>(fixed, 28), extra_size = get<uint16_t>(fixed, 30), comment_size = get<uint16_t>(fixed, 32);
    const auto variable = part(directory_, at + entry_bytes, size_t{name_size} + extra_size + comment_size, "an entry");
    at += entry_bytes + variable.size();

    ZipFile file{.name = text(variable.first(name_size)), .packed = {}, .size = get<uint32_t>(fixed, 24), .crc = get<uint32_t>(fixed, 16)};
    uint64_t packed_size = get<uint32_t>(fixed, 20), local = get<uint32_t>(fixed, 42);
    read_zip64(variable.subspan(name_size, extra_size), file.size, packed_size, local);
    if (flags & 1) fail(fmt::format("'{}' is encrypted", file.name));
    if (method != 0 && method != 8) fail(fmt::format("'{}' is packed by method {}, which is not supported", file.name, method));
    file.is_deflated = method == 8;
    if (file.is_deflated ? file.size / most_expansion > packed_size : file.size != packed_size)
      fail(fmt::format("'{}' cannot have {} bytes, packed into {}", file.name, file.size, packed_size));
    file.packed = packed_bytes(file.name, local, packed_size);
    return file;
  }

  /// Numbers of 64 bits for those that do not fit into the entry, in this order.
  void read_zip64(std::span<const std::byte> extra, uint64_t& size, uint64_t& packed_size, uint64_t& local) const {
    constexpr uint16_t zip64_id = 1;
    while (extra.size() >= 4) {
      const uint16_t id = get<uint16_t>(extra, 0);
      const auto field = part(extra, 4, get<uint16_t>(extra, 2), "an extra field");
      size_t at = 0;
      for (uint64_t* number : {&size, &packed_size, &local})
        if (id == zip64_id && *number == in_zip64) *number = get<uint64_t>(field, std::exchange(at, at + 8));
      extra = extra.subspan(4 + field.size());
    }
  }

  /// Where the local header, which repeats the entry, says that they begin.
  std::span<const std::byte> packed_bytes(const std::string& name, uint64_t local, uint64_t size) {
    const auto before = archive_.first(directory_begin_);
    const auto header = part(before, local, local_bytes, "a file");
    if (get<uint32_t>(header, 0) != local_magic) fail(fmt::format("no file where '{}' should be", name));
    const uint16_t name_size = get<uint16_t>(header, 26), extra_size = get<uint16_t>(header, 28);
    const auto variable = part(before, local + local_bytes, size_t{name_size} + extra_size, "a file");
    if (text(variable.first(name_size)) != name) fail(fmt::format("'{}' has another name where its bytes are", name));
    const uint64_t begin = local + local_bytes + variable.size();
    places_.emplace_back(local, begin + size);
    return part(before, begin, size, "a file");
  }

  void check_overlaps() {
    std::sort(places_.begin(), places_.end());
    for (size_t i = 1; i < places_.size(); ++i)
      if (places_[i].first < places_[i - 1].second) fail("files that overlap");
  }

  std::span<const std::byte> archive_, directory_;
  const std::string& name_;
  uint64_t count_ = 0, directory_begin_ = 0;
  size_t directory_end_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> places_;
};

}  // namespace

void ZipFile::check_stored(const std::string& archive_name) const {
  if (const uint32_t found = crc_of(packed); found != crc)
    throw FormatError(fmt::format("{}: '{}' has CRC-32 {:08x}, the archive lists {:08x}", archive_name, name, found, crc));
}

std::vector<std::byte> ZipFile::unpack(const std::string& archive_name) const {
  if (!is_deflated) {
    check_stored(archive_name);
    return {packed.begin(), packed.end()};
  }
  return inflate(packed, size, crc, fmt::format("{}: '{}'", archive_name, name));
}

std::vector<ZipFile> read_zip(std::span<const std::byte> archive, const std::string& name) { return ZipReader(archive, name).read(); }

}  // namespace tinygrad::archive
