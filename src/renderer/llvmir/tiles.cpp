#include "renderer/llvmir/tiles.h"

#include <fmt/format.h>

namespace tinygrad::renderer::llvmir {

namespace {

std::string number(int n) { return fmt::format("i8 {}", n); }

const std::string& stride() {
  static const auto& text = *new std::string(fmt::format("i64 {}", tile_row_bytes));
  return text;
}

}  // namespace

/// All registers hold whole tiles.
void Tiles::begin() {
  if (!numbers_.any()) return;
  const auto words = tile_configuration();
  out_.line(fmt::format("%tiles = alloca [{} x i64], align 64", words.size()));
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string at = out_.define("at", fmt::format("getelementptr i64, ptr %tiles, i64 {}", i));
    out_.line(fmt::format("store i64 {}, ptr {}, align 8", words[i], at));
  }
  out_.call_void("llvm.x86.ldtilecfg", {"ptr %tiles"});
}

void Tiles::clear(const UOp& tile) { out_.call_void("llvm.x86.tilezero", {number(numbers_.of_sums(tile))}); }

void Tiles::load(const UOp& tile, const std::string& pointer) {
  out_.call_void("llvm.x86.tileloadd64", {number(numbers_.of_sums(tile)), "ptr " + pointer, stride()});
}

void Tiles::store(const UOp& tile, const std::string& pointer) {
  out_.call_void("llvm.x86.tilestored64", {number(numbers_.of_sums(tile)), "ptr " + pointer, stride()});
}

int Tiles::factor(const UOp& address, const std::string& pointer, int other) {
  const auto f = numbers_.of_factor(address, other);
  if (!f.is_loaded) out_.call_void("llvm.x86.tileloadd64", {number(f.number), "ptr " + pointer, stride()});
  return f.number;
}

void Tiles::multiply(const UOp& product, const std::string& a, const std::string& b) {
  const int first = factor(product.src(0), a, -1), second = factor(product.src(1), b, first);
  out_.call_void(fmt::format("llvm.x86.{}", product.arg_as<WmmaArg>().name.str()),
                 {number(numbers_.of_sums(product.src(2).src(0))), number(first), number(second)});
}

void Tiles::finish() {
  if (numbers_.any()) out_.call_void("llvm.x86.tilerelease", {});
}

}  // namespace tinygrad::renderer::llvmir
