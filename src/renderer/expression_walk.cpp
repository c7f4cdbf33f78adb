#include "renderer/expression_walk.h"

#include <algorithm>

#include <fmt/format.h>

namespace tinygrad::renderer {

void ExpressionWalk::line(std::string_view text) { body_ += fmt::format("{:{}}{}\n", "", 2 * (depth_ + 1), text); }

void ExpressionWalk::open(std::string_view text) {
  line(text);
  ++depth_;
}

void ExpressionWalk::close() {
  --depth_;
  line("}");
}

std::string ExpressionWalk::name_loop(bool is_over_chunks) {
  constexpr std::string_view letters[] = {"i", "j", "k", "l", "m", "n", "o", "p"};
  const auto depth = size_t(std::ranges::count_if(loops_, [](const std::string& l) { return !l.starts_with("chunk"); }));
  loops_.push_back(names_.fresh(is_over_chunks ? "chunk" : letters[std::min(depth, std::size(letters) - 1)]));
  return loops_.back();
}

void ExpressionWalk::close_loop() {
  names_.give_back(loops_.back());
  loops_.pop_back();
  close();
}

std::string ExpressionWalk::name_parameter(const KernelParam& p) {
  return names_.fresh_with_number(!p.written ? "in" : p.read ? "data" : "out", p.slot);
}

std::string_view ExpressionWalk::hint(const UOp& u, DType dtype) {
  if (u.is(Op::LOAD)) return "x";
  return is_bool(dtype) ? "c" : is_float(dtype) ? "y" : "n";
}

}  // namespace tinygrad::renderer
