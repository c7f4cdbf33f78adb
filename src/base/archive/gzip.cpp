#include "base/archive/gzip.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

namespace tinygrad::archive {

namespace {

constexpr int gzip_window = 15 + 16, raw_window = -15;  // as zlib encodes the kind of header

/// A stream of zlib's over bytes in memory, unpacked into memory that grows with what comes, not with what a header promises.
class Inflater {
 public:
  Inflater(std::span<const std::byte> from, int window, const std::string& name, size_t limit) : rest_(from), name_(name), limit_(limit) {
    if (inflateInit2(&stream_, window) != Z_OK) throw OutOfMemoryError(name_ + ": zlib cannot start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// To the end of the stream.
  void run() {
    for (bool ended = false; !ended;) {
      if (used_ == out_.size()) out_.resize(std::min(std::max<size_t>(2 * used_, size_t{1} << 16), limit_ + 1));
      check_interrupt();
      ended = fill();
      if (used_ > limit_) throw FormatError(fmt::format("{}: more than {} bytes when unpacked", name_, limit_));
    }
  }
  /// Up to the limit, or to the end of the stream where that comes first.
  void run_to_limit() {
    out_.resize(limit_);
    while (used_ < limit_ && !fill()) {}
  }
  /// What the stream has not read.
  std::span<const std::byte> rest() const { return {rest_.data() - stream_.avail_in, rest_.size() + stream_.avail_in}; }
  /// On to another stream of the same kind.
  void restart() { inflateReset(&stream_); }

  std::vector<std::byte> take() {
    out_.resize(used_);
    return std::move(out_);
  }

 private:
  static constexpr size_t most = std::numeric_limits<uInt>::max() / 2;

  /// Unpacks into what is left of out_; true at the end of the stream.
  bool fill() {
    feed();
    const uInt room = static_cast<uInt>(std::min<size_t>(out_.size() - used_, most));
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data() + used_);
    stream_.avail_out = room;
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    used_ += room - stream_.avail_out;
    if (code != Z_OK && code != Z_STREAM_END)
      throw FormatError(fmt::format("{}: damaged or cut-off data: {}", name_, stream_.msg ? stream_.msg : zError(code)));
    return code == Z_STREAM_END;
  }

  void feed() {
    if (stream_.avail_in != 0) return;
    const size_t count = std::min(rest_.size(), most);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest_.data()));  // zlib only reads it
    stream_.avail_in = static_cast<uInt>(count);
    rest_ = rest_.subspan(count);
  }

  z_stream stream_{};
  std::span<const std::byte> rest_;
  const std::string& name_;
  const size_t limit_;
  std::vector<std::byte> out_;
  size_t used_ = 0;
};

}  // namespace

uint32_t crc_of(std::span<const std::byte> bytes, uint32_t before) {
  if (bytes.empty()) return before;  // without bytes zlib starts anew
  return static_cast<uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

bool is_gzip(std::span<const std::byte> bytes) { return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b}; }

std::vector<std::byte> gunzip(std::span<const std::byte> bytes, const std::string& name, size_t limit) {
  if (!is_gzip(bytes)) throw FormatError(fmt::format("{}: no gzip file", name));
  Inflater inflater(bytes, gzip_window, name, limit);
  inflater.run();
  while (is_gzip(inflater.rest())) {
    inflater.restart();
    inflater.run();
  }
  const auto rest = inflater.rest();
  if (std::any_of(rest.begin(), rest.end(), [](std::byte b) { return b != std::byte{0}; }))
    throw FormatError(fmt::format("{}: {} bytes behind the end of the gzip data", name, rest.size()));
  return inflater.take();
}

std::vector<std::byte> inflate(std::span<const std::byte> bytes, size_t size, uint32_t crc, const std::string& name) {
  Inflater inflater(bytes, raw_window, name, size);
  inflater.run();
  const bool all_read = inflater.rest().empty();
  std::vector<std::byte> out = inflater.take();
  if (!all_read || out.size() != size || crc_of(out) != crc)
    throw FormatError(
        fmt::format("{}: {} bytes that are not the {} with CRC-32 {:08x} that the archive lists", name, out.size(), size, crc));
  return out;
}

std::vector<std::byte> inflate_first(std::span<const std::byte> bytes, size_t count, const std::string& name) {
  Inflater inflater(bytes, raw_window, name, count);
  inflater.run_to_limit();
  return inflater.take();
}

}  // namespace tinygrad::archive
