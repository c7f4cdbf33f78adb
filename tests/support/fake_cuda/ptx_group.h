#pragma once
/// What the parts of the machine share: a work-group while it runs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/fake_cuda/ptx_machine.h"

namespace tinygrad::test {

[[noreturn]] inline void fail(int line, const std::string& what) { throw std::runtime_error(fmt::format("PTX, line {}: {}", line, what)); }

inline uint64_t cut(uint64_t bits, int width) { return width >= 64 ? bits : bits & ((uint64_t{1} << width) - 1); }

inline constexpr size_t tensor_rows = 128, tensor_columns = 512;

struct PtxMachine::Group {
  std::vector<Item> items;
  std::vector<std::byte> shared;
  std::vector<uint8_t> hidden;  ///< bytes that were written and that tensor cores do not see yet
  unsigned id[3] = {0, 0, 0};

  /// The memory of tensor cores, of 128 rows, and who has which of its columns.
  std::vector<uint32_t> sums = {};
  size_t first_column = 0, columns = 0;
  /// What products put there, once they are done, and of those that a barrier in shared memory tells of; then that barrier's phase.
  std::map<size_t, uint32_t> under_way = {};
  struct Done {
    int phase = 0;
    bool is_expected = false;
    std::map<size_t, uint32_t> sums = {};
  };
  std::map<uint64_t, Done> done = {};
  bool is_under_way(size_t place) const {
    return under_way.contains(place) || std::ranges::any_of(done, [&](const auto& d) { return d.second.sums.contains(place); });
  }
};

}  // namespace tinygrad::test
