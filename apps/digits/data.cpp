#include "digits/data.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <tinygrad/errors.h>

#include "common/gzip.h"

namespace tinygrad::apps {

namespace {

constexpr int64_t side = 8, pixels = side * side;

/// A number up to `most` at the front of `line`, which loses it and the comma behind it.
uint8_t take_number(std::string_view& line, int most, const std::string& place) {
  int value = -1;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || value < 0 || value > most) throw FormatError(fmt::format("{}: expected a number from 0 to {}", place, most));
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  if (!line.empty()) {
    if (line.front() != ',' || line.size() == 1) throw FormatError(fmt::format("{}: expected numbers with commas between", place));
    line.remove_prefix(1);
  }
  return static_cast<uint8_t>(value);
}

/// share/tinygrad lies beside the folder of the program.
std::string file_beside_program() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path().parent_path() / "share" / "tinygrad" / "digits.csv.gz").string();
}

}  // namespace

ImageSet parse_digits(std::string_view csv, const std::string& name) {
  ImageSet set{.height = side, .width = side, .brightest = 16};
  for (int64_t number = 1; !csv.empty(); ++number) {
    const size_t end = std::min(csv.find('\n'), csv.size());
    std::string_view line = csv.substr(0, end);
    csv.remove_prefix(std::min(end + 1, csv.size()));
    const std::string place = fmt::format("{}:{}", name, number);
    for (int64_t i = 0; i < pixels; ++i) set.pixels.push_back(take_number(line, set.brightest, place));
    set.labels.push_back(take_number(line, 9, place));
    if (!line.empty()) throw FormatError(fmt::format("{}: more than {} numbers", place, pixels + 1));
  }
  if (set.labels.empty()) throw FormatError(fmt::format("{}: no digits", name));
  return set;
}

ImageSet load_digits(const std::string& path) {
  const std::string file = path.empty() ? file_beside_program() : path;
  return parse_digits(read_gzip(file, size_t{16} << 20), file);
}

}  // namespace tinygrad::apps
