#include "renderer/ptx/memory.h"

#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tinygrad::renderer::ptx {
namespace {

constexpr size_t most_lanes = 4;  ///< of a vector; more elements of 16 bits are pairs in words

/// How many of the elements from `first` on one access takes.
size_t vector_at(const Place& place, DType dtype, size_t first, size_t count) {
  const int64_t each = int64_t(itemsize(dtype)), at = place.offset + int64_t(first) * each;
  for (size_t n : {each == 2 ? 8 : 4, 4, 2}) {
    const int64_t bytes = int64_t(n) * each;
    if (first + n <= count && bytes <= 16 && place.alignment % bytes == 0 && at % bytes == 0) return n;
  }
  return 1;
}

std::string address(const Place& place, int64_t beyond) {
  const int64_t offset = place.offset + beyond;
  return offset == 0 ? fmt::format("[{}]", place.pointer) : fmt::format("[{}+{}]", place.pointer, offset);
}

std::string instruction(std::string_view name, const Place& place, DType dtype, size_t lanes) {
  return fmt::format("{}.{}{}.{}", name, place.space, lanes == 1 ? "" : fmt::format(".v{}", lanes), memory_name(dtype));
}

std::string joined(std::span<const std::string> registers) {
  return registers.size() == 1 ? registers[0] : fmt::format("{{{}}}", fmt::join(registers, ", "));
}

std::string guard(const std::string& gate) { return gate.empty() ? "" : fmt::format("@{} ", gate); }

/// A bool is a byte in memory.
DType stored_as(DType dtype) { return is_bool(dtype) ? DType::uint8 : dtype; }

/// Elements of 16 bits, two a word.
std::vector<std::string> words_of(Emitter& out, std::span<const std::string> halves) {
  std::vector<std::string> words;
  for (size_t i = 0; i < halves.size(); i += 2)
    words.push_back(out.define(DType::uint32, "mov.b32", fmt::format("{{{}, {}}}", halves[i], halves[i + 1])));
  return words;
}

void load_words(Emitter& out, const Place& place, int64_t beyond, std::span<const std::string> halves, const std::string& gate) {
  std::vector<std::string> words;
  if (gate.empty())
    for (size_t i = 0; i < halves.size(); i += 2) words.push_back(out.fresh(RegisterKind::bits32));
  else
    words = words_of(out, halves);
  out.line(fmt::format("{}{} {}, {};", guard(gate), instruction("ld", place, DType::uint32, words.size()), joined(words),
                       address(place, beyond)));
  for (size_t i = 0; i < words.size(); ++i) out.line(fmt::format("mov.b32 {{{}, {}}}, {};", halves[2 * i], halves[2 * i + 1], words[i]));
}

}  // namespace

std::vector<std::string> emit_load(Emitter& out, const Place& place, DType dtype, size_t count, const std::string& gate,
                                   const std::vector<std::string>& other) {
  const DType stored = stored_as(dtype);
  std::vector<std::string> loaded;
  for (size_t i = 0; i < count; ++i) {
    loaded.push_back(out.fresh(kind_of(stored)));
    if (gate.empty()) continue;
    const std::string instead = is_bool(dtype) ? emit_cast(out, {.text = other[i], .dtype = dtype}, stored) : other[i];
    out.line(fmt::format("mov.{} {}, {};", bits_name(stored), loaded.back(), instead));
  }
  for (size_t i = 0, n = 0; i < count; i += n) {
    n = vector_at(place, stored, i, count);
    const auto part = std::span<const std::string>(loaded).subspan(i, n);
    const auto beyond = int64_t(i * itemsize(stored));
    if (n > most_lanes)
      load_words(out, place, beyond, part, gate);
    else
      out.line(fmt::format("{}{} {}, {};", guard(gate), instruction("ld", place, stored, n), joined(part), address(place, beyond)));
  }
  if (is_bool(dtype))
    for (std::string& x : loaded) x = emit_cast(out, {.text = x, .dtype = stored}, dtype);
  return loaded;
}

void emit_store(Emitter& out, const Place& place, DType dtype, const std::vector<std::string>& values, const std::string& gate) {
  const DType stored = stored_as(dtype);
  std::vector<std::string> bytes;
  if (is_bool(dtype))
    for (const std::string& x : values) bytes.push_back(emit_cast(out, {.text = x, .dtype = dtype}, stored));
  const std::vector<std::string>& all = is_bool(dtype) ? bytes : values;
  for (size_t i = 0, n = 0; i < all.size(); i += n) {
    n = vector_at(place, stored, i, all.size());
    const auto part = std::span<const std::string>(all).subspan(i, n);
    const std::string at = address(place, int64_t(i * itemsize(stored)));
    const std::vector<std::string> words = n > most_lanes ? words_of(out, part) : std::vector<std::string>();
    out.line(fmt::format("{}{} {}, {};", guard(gate),
                         instruction("st", place, words.empty() ? stored : DType::uint32, words.empty() ? n : words.size()), at,
                         joined(words.empty() ? part : std::span<const std::string>(words))));
  }
}

// Only whole lines of 16 bytes go past the first cache.
void emit_fetch(Emitter& out, const Place& to, const Place& from, int bytes, const std::string& valid, const std::string& gate) {
  const std::string read = valid.empty() ? "" : ", " + out.define(DType::uint32, "selp.b32", fmt::format("{}, 0, {}", bytes, valid));
  out.line(fmt::format("{}cp.async.{}.shared.global {}, {}, {}{};", guard(gate), bytes == 16 ? "cg" : "ca", address(to, 0),
                       address(from, 0), bytes, read));
}

}  // namespace tinygrad::renderer::ptx
