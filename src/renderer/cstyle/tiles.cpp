#include "renderer/cstyle/tiles.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tinygrad::renderer::cstyle {

std::string Tiles::clear(const UOp& tile) { return fmt::format("{}({});", prelude_.word("clear_tile"), numbers_.of_sums(tile)); }

std::string Tiles::load(const UOp& tile, std::string_view pointer) {
  return fmt::format("{}({}, {});", prelude_.word("load_tile"), numbers_.of_sums(tile), pointer);
}

std::string Tiles::store(const UOp& tile, std::string_view pointer) {
  return fmt::format("{}({}, {});", prelude_.word("store_tile"), numbers_.of_sums(tile), pointer);
}

int Tiles::factor(const UOp& address, std::string_view pointer, int other, std::string& lines) {
  const auto f = numbers_.of_factor(address, other);
  if (!f.is_loaded) lines += fmt::format("{}({}, {}); ", prelude_.word("load_tile"), f.number, pointer);
  return f.number;
}

std::string Tiles::multiply(const UOp& product, std::string_view a, std::string_view b) {
  std::string lines;
  const int first = factor(product.src(0), a, -1, lines), second = factor(product.src(1), b, first, lines);
  const std::string_view name = prelude_.word(product.arg_as<WmmaArg>().name.str());
  return fmt::format("{}{}({}, {}, {});", lines, name, numbers_.of_sums(product.src(2).src(0)), first, second);
}

std::string Tiles::surround(std::string body) {
  if (!numbers_.any()) return body;
  std::vector<std::string> words;
  for (const uint64_t w : tile_configuration()) words.push_back(fmt::format("{:#x}", w));
  return fmt::format("  static const unsigned long configuration[] = {{{}}};\n  {}(configuration);\n{}  {}();\n", fmt::join(words, ", "),
                     prelude_.word("begin_tiles"), body, prelude_.word("end_tiles"));
}

}  // namespace tinygrad::renderer::cstyle
