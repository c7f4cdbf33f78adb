#include "frontend/npy/header.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include <tinygrad/errors.h>

#include "frontend/byte_cursor.h"

namespace tinygrad::frontend {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view magic = "\x93NUMPY"sv;
constexpr uint64_t most_header_bytes = uint64_t{1} << 20;
constexpr size_t most_axes = 64;  // as in NumPy
constexpr size_t alignment = 64;  // of the elements

constexpr std::array<std::pair<std::string_view, DType>, 12> codes{{{"b1", DType::bool_},
                                                                    {"i1", DType::int8},
                                                                    {"u1", DType::uint8},
                                                                    {"i2", DType::int16},
                                                                    {"u2", DType::uint16},
                                                                    {"i4", DType::int32},
                                                                    {"u4", DType::uint32},
                                                                    {"i8", DType::int64},
                                                                    {"u8", DType::uint64},
                                                                    {"f2", DType::float16},
                                                                    {"f4", DType::float32},
                                                                    {"f8", DType::float64}}};

struct Version {
  uint8_t major = 0;
  uint64_t size_at = 0, header_at = 0, header_bytes = 0;
};

Version read_version(ByteCursor& in) {
  if (in.text(magic.size(), "the magic text") != magic) in.fail("the magic text", "no file of NumPy");
  Version out;
  out.major = in.number<uint8_t>("the version");
  if (out.major < 1 || out.major > 3) in.fail("the version", fmt::format("{}, expects 1 to 3", out.major));
  if (const auto minor = in.number<uint8_t>("the minor version"); minor != 0)
    in.fail("the minor version", fmt::format("{}, expects 0", minor));
  out.size_at = in.at();
  out.header_bytes = out.major == 1 ? in.number<uint16_t>("the size of the header") : in.number<uint32_t>("the size of the header");
  if (out.header_bytes > most_header_bytes)
    in.fail("the size of the header", fmt::format("{} bytes, at most {} are read", out.header_bytes, most_header_bytes));
  out.header_at = in.at();
  return out;
}

/// Reads the dict: three keys, each once, with values of their kinds.
class DictReader {
 public:
  DictReader(std::string_view text, uint64_t begin, const std::string& name, NpyHeader& out)
      : text_(text), begin_(begin), name_(name), out_(out) {}

  void read() {
    expect('{', "the dict");
    while (!take('}')) {
      read_entry();
      if (!take(',') && peek() != '}') fail("the dict", "expects a comma or a brace");
    }
    skip_space();
    if (at_ != text_.size()) fail("the dict", "something follows it");
    for (const auto& [key, has] : has_)
      if (!has) fail("the dict", fmt::format("it has no '{}'", key));
  }

 private:
  [[noreturn]] void fail(std::string_view field, std::string_view why) const {
    throw FormatError(fmt::format("{}: {} at byte {}: {}", name_, field, begin_ + at_, why));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c, std::string_view field) {
    if (!take(c)) fail(field, fmt::format("expects '{}'", c));
  }
  /// A text in quotes, without escapes.
  std::string_view quoted(std::string_view field) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail(field, "expects a text in quotes");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail(field, "a text without an end");
    const std::string_view out = text_.substr(at_ + 1, end - at_ - 1);
    if (out.find('\\') != std::string_view::npos) fail(field, "a text with a backslash");
    at_ = end + 1;
    return out;
  }

  void read_entry() {
    const std::string_view key = quoted("a key");
    auto* known = std::ranges::find(has_, key, &std::pair<std::string_view, bool>::first);
    if (known == has_.end()) fail("a key", "expects 'descr', 'fortran_order' or 'shape'");
    if (std::exchange(known->second, true)) fail("a key", fmt::format("'{}' is there twice", key));
    expect(':', key);
    if (key == "descr")
      read_descr();
    else if (key == "shape")
      read_shape();
    else
      out_.is_column_major = read_flag();
  }

  bool read_flag() {
    skip_space();
    for (const std::string_view word : {"True"sv, "False"sv})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    fail("fortran_order", "expects True or False");
  }

  void read_shape() {
    expect('(', "shape");
    bool needs_comma = false;
    while (!take(')')) {
      if (needs_comma) fail("shape", "expects a comma or ')'");
      if (out_.shape.size() == most_axes) fail("shape", fmt::format("more than {} axes", most_axes));
      skip_space();
      int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc{} || size < 0 || text_[at_] == '-') fail("shape", "expects a size of at most 63 bits");
      at_ = static_cast<size_t>(end - text_.data());
      take('L');  // Python 2's
      out_.shape.push_back(size);
      needs_comma = !take(',');
      if (needs_comma && out_.shape.size() == 1) fail("shape", "expects a tuple: (3,)");
    }
  }

  void read_descr() {
    const size_t begin = at_;
    if (peek() == '[') {
      skip_records();
      out_.descr = text_.substr(begin, at_ - begin);
      const size_t first = out_.descr.find_first_not_of(' ');
      out_.descr.erase(0, first);
      return;
    }
    const std::string_view code = quoted("descr");
    out_.descr = code;
    constexpr std::string_view orders = "<>|=", kinds = "biufcmMOSUV";
    if (code.size() < 2 || orders.find(code[0]) == std::string_view::npos || kinds.find(code[1]) == std::string_view::npos)
      fail("descr", "expects the code of an element type, as '<f4'");
    const std::string_view kind = code.substr(1);
    const auto* known = std::ranges::find(codes, kind, &std::pair<std::string_view, DType>::first);
    if (known != codes.end()) out_.dtype = known->second;
    out_.is_big_endian = code[0] == '>';
    out_.item_bytes = item_bytes(kind);
  }
  /// What the digits behind the letter say, which may have a unit of time behind them.
  int64_t item_bytes(std::string_view kind) const {
    if (kind[0] == 'O') return 0;
    int64_t size = 0;
    const auto [end, error] = std::from_chars(kind.data() + 1, kind.data() + kind.size(), size);
    const std::string_view rest(end, static_cast<size_t>(kind.data() + kind.size() - end));
    const bool is_time = kind[0] == 'm' || kind[0] == 'M';
    if (error != std::errc{} || size < 0 || !(rest.empty() || (is_time && rest.front() == '[' && rest.back() == ']')))
      fail("descr", "expects the code of an element type, as '<f4'");
    constexpr int64_t most = int64_t{1} << 32, letter = 4;
    if (size > most) fail("descr", fmt::format("elements of {} bytes", size));
    return kind[0] == 'U' ? letter * size : size;
  }
  /// Over the list of an array of records, whatever it has in its brackets.
  void skip_records() {
    int64_t open = 0;
    do {
      const char c = peek();
      if (c == '\0') fail("descr", "a list without an end");
      if (c == '\'' || c == '"') {
        quoted("descr");
        continue;
      }
      open += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
      ++at_;
    } while (open > 0);
  }

  const std::string_view text_;
  const uint64_t begin_;  // of the text in the file
  const std::string& name_;
  NpyHeader& out_;
  size_t at_ = 0;
  std::array<std::pair<std::string_view, bool>, 3> has_{{{"descr", false}, {"fortran_order", false}, {"shape", false}}};
};

}  // namespace

std::optional<int64_t> NpyHeader::data_bytes() const {
  if (item_bytes == 0 && descr.find_first_of("O[") != std::string::npos) return {};
  int64_t bytes = item_bytes;
  for (const int64_t s : shape)
    if (__builtin_mul_overflow(bytes, s, &bytes)) return {};
  return bytes;
}

bool is_npy(std::span<const std::byte> bytes) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

uint64_t npy_header_bytes(std::span<const std::byte> first, const std::string& name) {
  ByteCursor in(first, name);
  const Version version = read_version(in);
  return version.header_at + version.header_bytes;
}

NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& name) {
  ByteCursor in(file, name);
  const Version version = read_version(in);
  const std::string_view text = in.text(version.header_bytes, "the header");
  NpyHeader out;
  DictReader(text, version.header_at, name, out).read();
  out.data_start = in.at();
  return out;
}

bool has_numpy(DType dtype) { return std::ranges::find(codes, dtype, &std::pair<std::string_view, DType>::second) != codes.end(); }

std::string make_npy_header(DType dtype, const Sizes& shape) {
  const auto* known = std::ranges::find(codes, dtype, &std::pair<std::string_view, DType>::second);
  if (known == codes.end()) throw DTypeError(fmt::format("npy_save: NumPy has no {}; cast the tensor", repr(dtype)));
  const std::string sizes = shape.size() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
  std::string dict =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}", itemsize(dtype) == 1 ? '|' : '<', known->first, sizes);
  constexpr size_t before = 10;  // magic, version and size
  dict.append(alignment - (before + dict.size()) % alignment - 1, ' ');
  dict += '\n';
  const auto size = static_cast<uint16_t>(dict.size());
  std::string out(magic);
  out += "\x01\x00"sv;
  out.append(reinterpret_cast<const char*>(&size), sizeof(size));
  return out + dict;
}

}  // namespace tinygrad::frontend
