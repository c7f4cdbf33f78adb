#include "renderer/wgsl/memory.h"

#include <fmt/format.h>

namespace tinygrad::renderer::wgsl {

namespace {

using cstyle::binary;

/// Where an element is in its word.
std::string first_bit(Prelude& prelude, const Memory& m, const Expr& at) {
  const size_t bytes = itemsize(m.dtype);
  const std::string name = bytes == 1 ? "byte_at" : "half_word_at";
  prelude.function(name, fmt::format("fn {}(i: i32) -> u32 {{\n  return {}u * (u32(i) & {}u);\n}}", name, 8 * bytes, 4 / bytes - 1));
  return fmt::format("{}({})", name, at.text);
}

std::string word_of(const Memory& m, const Expr& at) {
  const int shift = itemsize(m.dtype) == 1 ? 2 : 1;
  const std::string i = at.binds == Binds::primary ? at.text : "(" + at.text + ")";
  return fmt::format("{}[{} >> {}u]", m.name, i, shift);
}

Expr in_array(const Memory& m, const Expr& at) { return m.is_argument() ? binary({m.first}, "+", Binds::sum, at) : at; }

}  // namespace

std::string array_type(Prelude& prelude, const Memory& m, int64_t size) {
  const std::string_view type = m.is_packed() ? m.is_written ? "atomic<u32>" : "u32" : type_of(prelude, m.dtype);
  return size ? fmt::format("array<{}, {}>", type, size) : fmt::format("array<{}>", type);
}

Expr element(Prelude& prelude, const Memory& m, const Expr& index) {
  if (m.is_variable) return {m.name};
  const Expr at = in_array(m, index);
  if (!m.is_packed()) return {fmt::format("{}[{}]", m.name, at.text)};
  std::string word = word_of(m, at);
  if (m.is_written) word = fmt::format("atomicLoad(&{})", word);
  if (is_int(m.dtype) && !is_unsigned(m.dtype)) word = fmt::format("i32({})", word);
  const Expr bits = call("extractBits", {word, first_bit(prelude, m, at), fmt::format("{}u", 8 * itemsize(m.dtype))});
  return is_bool(m.dtype) ? binary(bits, "!=", Binds::equality, {"0u"}) : bits;
}

std::vector<std::string> store_element(Prelude& prelude, const Memory& m, const Expr& index, const Expr& value) {
  if (!m.is_packed()) return {fmt::format("{} = {};", element(prelude, m, index).text, value.text)};
  const Expr at = in_array(m, index);
  const std::string word = word_of(m, at), bit = first_bit(prelude, m, at), mask = itemsize(m.dtype) == 1 ? "0xffu" : "0xffffu";
  // A negative literal is of no type yet, and of those that u32 takes only i32 has it.
  const std::string number = value.text.starts_with('-') ? fmt::format("i32({})", value.text) : value.text;
  const std::string bits = is_bool(m.dtype) ? select(value, {"1u"}, {"0u"}).text : fmt::format("(u32({}) & {})", number, mask);
  return {fmt::format("atomicAnd(&{}, ~({} << {}));", word, mask, bit), fmt::format("atomicOr(&{}, {} << {});", word, bits, bit)};
}

}  // namespace tinygrad::renderer::wgsl
