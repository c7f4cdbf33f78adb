#include "renderer/ptx/memory.h"

#include <algorithm>
#include <bit>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::renderer::ptx {
namespace {

/// How many of the elements from `first` on one access takes: 1, 2 or 4.
size_t vector_at(const Place& place, DType dtype, size_t first, size_t count) {
  const int64_t each = int64_t(itemsize(dtype)), at = place.offset + int64_t(first) * each;
  for (size_t n : {4, 2}) {
    const int64_t bytes = int64_t(n) * each;
    if (first + n <= count && bytes <= 16 && place.alignment % bytes == 0 && at % bytes == 0) return n;
  }
  return 1;
}

std::string address(const Place& place, int64_t beyond) {
  const int64_t offset = place.offset + beyond;
  return offset == 0 ? fmt::format("[{}]", place.pointer) : fmt::format("[{}{:+}]", place.pointer, offset);
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

}  // namespace

int64_t known_divisor(const UOp& root, int64_t most) {
  NodeMap<int64_t> divisors;
  const auto of_number = [&](int64_t n) { return n == 0 ? most : std::min(most, int64_t{1} << std::countr_zero(uint64_t(n))); };
  for (const UOp& u : toposort(root)) {
    int64_t d = 1;
    if (const Scalar* c = const_value(u)) {
      d = of_number(c->as_int());
    } else if (u.is(Op::ADD) || u.is(Op::SUB) || u.is(Op::MAX)) {
      d = std::min(divisors[u.src(0)], divisors[u.src(1)]);
    } else if (u.is(Op::WHERE)) {
      d = std::min(divisors[u.src(1)], divisors[u.src(2)]);
    } else if (u.is(Op::MUL)) {
      d = std::min(most, divisors[u.src(0)] * divisors[u.src(1)]);
    } else if (u.is(Op::MULACC)) {
      d = std::min(std::min(most, divisors[u.src(0)] * divisors[u.src(1)]), divisors[u.src(2)]);
    } else if (u.is(Op::AND)) {
      d = std::max(divisors[u.src(0)], divisors[u.src(1)]);
    } else if (u.is(Op::SHL) && const_value(u.src(1))) {
      d = const_value(u.src(1))->as_uint() >= 62 ? most : std::min(most, divisors[u.src(0)] << const_value(u.src(1))->as_uint());
    } else if (u.is(Op::CAST) && is_int(u.dtype()) && is_int(u.src(0).dtype())) {
      d = divisors[u.src(0)];
    }
    divisors[u] = std::max<int64_t>(d, 1);
  }
  return divisors[root];
}

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
    out.line(fmt::format("{}{} {}, {};", guard(gate), instruction("ld", place, stored, n), joined(std::span(loaded).subspan(i, n)),
                         address(place, int64_t(i * itemsize(stored)))));
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
    out.line(fmt::format("{}{} {}, {};", guard(gate), instruction("st", place, stored, n), address(place, int64_t(i * itemsize(stored))),
                         joined(std::span(all).subspan(i, n))));
  }
}

}  // namespace tinygrad::renderer::ptx
