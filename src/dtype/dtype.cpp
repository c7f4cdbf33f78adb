#include <tinygrad/dtype.h>

#include <array>
#include <bit>
#include <string>
#include <utility>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "dtype/visit.h"

namespace tinygrad {

namespace {

constexpr std::pair<std::string_view, DType> spellings[] = {
    {"void", DType::void_},
    {"bool", DType::bool_},
    {"index", DType::index},
    {"int8", DType::int8},
    {"int16", DType::int16},
    {"int32", DType::int32},
    {"int64", DType::int64},
    {"uint8", DType::uint8},
    {"uint16", DType::uint16},
    {"uint32", DType::uint32},
    {"uint64", DType::uint64},
    {"fp8e4m3", DType::fp8e4m3},
    {"fp8e5m2", DType::fp8e5m2},
    {"fp8e4m3fnuz", DType::fp8e4m3fnuz},
    {"fp8e5m2fnuz", DType::fp8e5m2fnuz},
    {"float16", DType::float16},
    {"bfloat16", DType::bfloat16},
    {"float32", DType::float32},
    {"float64", DType::float64},
    {"half", DType::float16},
    {"float", DType::float32},
    {"double", DType::float64},
    {"char", DType::int8},
    {"short", DType::int16},
    {"int", DType::int32},
    {"long", DType::int64},
    {"uchar", DType::uint8},
    {"ushort", DType::uint16},
    {"uint", DType::uint32},
    {"ulong", DType::uint64},
};

// The lattice has one element that no data has: what a signed integer and uint64 promote to, which is "some float".
// A node's bit is its place in tinygrad's order of priority, so the preferred type of a set is its lowest bit.
constexpr int some_float = 10;
constexpr int node_count = 19;

constexpr int node_of(DType d) {
  const int place = priority(d);
  if (is_fp8_fnuz(d)) return place + 3;  // after the OCP fp8
  return place < some_float ? place : place < priority(DType::float16) ? place + 1 : place + 3;
}

struct Edge {
  int from, to;
};

constexpr Edge edge(DType from, DType to) { return {node_of(from), node_of(to)}; }

constexpr Edge promotions[] = {
    edge(DType::bool_, DType::index),          edge(DType::index, DType::int8),           edge(DType::index, DType::uint8),
    edge(DType::int8, DType::int16),           edge(DType::int16, DType::int32),          edge(DType::int32, DType::int64),
    edge(DType::uint8, DType::int16),          edge(DType::uint8, DType::uint16),         edge(DType::uint16, DType::int32),
    edge(DType::uint16, DType::uint32),        edge(DType::uint32, DType::int64),         edge(DType::uint32, DType::uint64),
    {node_of(DType::int64), some_float},       {node_of(DType::uint64), some_float},      {some_float, node_of(DType::fp8e4m3)},
    {some_float, node_of(DType::fp8e5m2)},     edge(DType::fp8e4m3, DType::float16),      edge(DType::fp8e4m3, DType::bfloat16),
    edge(DType::fp8e5m2, DType::float16),      edge(DType::fp8e5m2, DType::bfloat16),     edge(DType::float16, DType::float32),
    edge(DType::bfloat16, DType::float32),     edge(DType::float32, DType::float64),      {some_float, node_of(DType::fp8e4m3fnuz)},
    {some_float, node_of(DType::fp8e5m2fnuz)}, edge(DType::fp8e4m3fnuz, DType::float16),  edge(DType::fp8e4m3fnuz, DType::bfloat16),
    edge(DType::fp8e5m2fnuz, DType::float16),  edge(DType::fp8e5m2fnuz, DType::bfloat16),
};

// For each node the set of nodes it promotes to, itself included. Every edge leads to a higher node, so going down once is enough.
constexpr std::array<uint32_t, node_count> upper_sets = [] {
  std::array<uint32_t, node_count> sets{};
  for (int node = node_count - 1; node >= 0; --node) {
    sets[static_cast<size_t>(node)] = uint32_t{1} << node;
    for (const Edge& e : promotions) {
      if (e.from == node) sets[static_cast<size_t>(node)] |= sets[static_cast<size_t>(e.to)];
    }
  }
  return sets;
}();

constexpr std::array<DType, node_count> dtype_of_node = [] {
  std::array<DType, node_count> types{};
  for (int i = 1; i < dtype_count; ++i) types[static_cast<size_t>(node_of(static_cast<DType>(i)))] = static_cast<DType>(i);
  return types;
}();

// Bits that the magnitude of every value of an integer type fits in; -2^n takes no more bits of a mantissa than 1 does.
constexpr int magnitude_bits(DType d) { return is_signed(d) ? bitsize(d) - 1 : bitsize(d); }

constexpr bool float_holds_float(DType to, DType from) {
  const FloatInfo t = finfo(to), f = finfo(from);
  if (is_fp8(to)) return false;  // not even another fp8: their ends or their biases differ
  return t.exponent_bits >= f.exponent_bits && t.mantissa_bits >= f.mantissa_bits;
}

}  // namespace

namespace detail {

void throw_not_a_float(DType d) {
  throw DTypeError(fmt::format("finfo: got {}, expects a floating-point dtype such as dtypes.float32", repr(d)));
}

void throw_no_values(DType d) {
  throw DTypeError(fmt::format("{} has no values: use a dtype that data can have, such as dtypes.float32", repr(d)));
}

}  // namespace detail

DType parse_dtype(std::string_view text) {
  std::string word(text);
  for (char& c : word) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  constexpr std::string_view prefix = "dtypes.";
  if (word.starts_with(prefix)) word.erase(0, prefix.size());
  for (const auto& [spelling, dtype] : spellings) {
    if (spelling == word) return dtype;
  }
  throw DTypeError(fmt::format("parse_dtype: unknown dtype '{}', expects a name such as float32, half, int64, uint8 or bool", text));
}

DType least_upper_dtype(std::span<const DType> ds, DType default_float) {
  if (ds.empty()) throw DTypeError("least_upper_dtype: got no dtypes, expects at least one");
  uint32_t common = ~uint32_t{0};
  bool any_void = false, all_void = true;
  for (DType d : ds) {
    if (d == DType::void_)
      any_void = true;
    else {
      all_void = false;
      common &= upper_sets[static_cast<size_t>(node_of(d))];
    }
  }
  if (all_void) return DType::void_;
  if (any_void) throw DTypeError("least_upper_dtype: dtypes.void does not promote to a type with values; remove it from the operands");
  const int least = std::countr_zero(common);
  return least == some_float ? default_float : dtype_of_node[static_cast<size_t>(least)];
}

DType least_upper_float(DType d, DType default_float) { return is_float(d) ? d : least_upper_dtype({d, default_float}); }

DType sum_acc_dtype(DType d, DType float_acc) {
  if (d == DType::index) return d;  // already unbounded
  if (is_unsigned(d)) return least_upper_dtype(d, DType::uint32);
  if (is_int(d) || is_bool(d)) return least_upper_dtype(d, DType::int32);
  return least_upper_dtype(d, float_acc);
}

bool can_lossless_cast(DType from, DType to) {
  if (from == to) return true;
  if (from == DType::void_ || to == DType::void_) return false;
  if (is_bool(from)) return true;
  if (is_bool(to) || from == DType::index) return false;
  if (is_float(from)) return is_float(to) && float_holds_float(to, from);
  if (is_float(to)) return magnitude_bits(from) <= finfo(to).mantissa_bits + 1;
  return (is_unsigned(from) || is_signed(to)) && magnitude_bits(from) <= magnitude_bits(to);
}

}  // namespace tinygrad
