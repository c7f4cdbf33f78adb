#include "renderer/tile_numbers.h"

#include <algorithm>

#include <fmt/format.h>
#include <tinygrad/errors.h>

#include "kernel/accessed_memory.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::renderer {

std::array<uint64_t, 8> tile_configuration() {
  std::array<uint64_t, 8> words{1};                                        // bytes 0 to 15: the palette, and where to begin
  words[2] = words[3] = 0x0001'0001'0001'0001 * uint64_t(tile_row_bytes);  // 16 to 31: bytes of a row, 16 bits each
  words[6] = 0x0101'0101'0101'0101 * uint64_t(tile_rows);                  // 48 to 55: rows, 8 bits each
  return words;
}

TileNumbers::TileNumbers(const UOp& linear) {
  for (size_t i = 0; i < linear.src_count(); ++i) {
    const UOp& u = linear.src(i);
    if (!is_address(u) || !is_tensor_memory(u)) continue;
    const auto [number, is_new] = number_of_span_.insert(u.src(0), spans_.size());
    if (is_new) spans_.push_back({u.src(0), i, i});
    spans_[*number].last = i + 1;  // the access that the address is for
  }
}

void TileNumbers::enter(const UOp& u, size_t place) {
  const auto forget = [&](auto&& is) {
    for (UOp& address : held_)
      if (address && is(address)) address = UOp();
  };
  if (u.is(Op::RANGE) || u.is(Op::END) || u.is(Op::IF) || u.is(Op::ENDIF)) forget([](const UOp&) { return true; });
  if (u.is(Op::STORE)) forget([&](const UOp& address) { return memory_of(address) == memory_of(u.src(0)); });
  for (const Span& s : spans_) {
    if (s.last + 1 == place && sums_.contains(s.tile)) is_sum_[size_t(*sums_.find(s.tile))] = false;
    if (s.first != place) continue;
    // The register that no factor was in for the longest time.
    int number = none;
    for (int i = 0; i < tile_registers; ++i)
      if (!is_sum_[size_t(i)] && (number == none || used_[size_t(i)] < used_[size_t(number)])) number = i;
    if (number == none) throw InternalError("tiles: a program keeps more sums than there are registers");
    sums_[s.tile] = number;
    is_sum_[size_t(number)] = true;
    held_[size_t(number)] = UOp();
  }
}

int TileNumbers::of_sums(const UOp& tile) const {
  const int* number = sums_.find(tile);
  if (!number) throw InternalError(fmt::format("tiles: {} has no register", print_expr(tile)));
  return *number;
}

TileNumbers::Factor TileNumbers::of_factor(const UOp& address, int other) {
  const auto use = [&](int number, bool is_loaded) {
    used_[size_t(number)] = ++now_;
    held_[size_t(number)] = address;
    return Factor{number, is_loaded};
  };
  for (int i = 0; i < tile_registers; ++i)
    if (held_[size_t(i)] == address) return use(i, true);
  int oldest = none;
  for (int i = 0; i < tile_registers; ++i)
    if (i != other && !is_sum_[size_t(i)] && (oldest == none || used_[size_t(i)] < used_[size_t(oldest)])) oldest = i;
  if (oldest == none) throw InternalError("tiles: there is no register for a factor");
  return use(oldest, false);
}

}  // namespace tinygrad::renderer
