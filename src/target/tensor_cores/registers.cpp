#include "target/tensor_cores/registers.h"

#include <algorithm>
#include <iterator>

namespace tinygrad {
namespace {

struct Row {
  std::string_view core;
  bool shifts_a = false;
  CoreCosts costs = {};
};

// VPMADDWD has a product of its own, which another instruction adds. A vector of two rows is read from two places, to two registers. LLVM's
// models of Neoverse N2, V1 and V2 start products of matrices as often as dot products, for half of the sums.
constexpr Row kRows[] = {
    {"vpmaddwd_256", false, {.temporaries = 1}},
    {"vpmaddwd_512", false, {.temporaries = 1}},
    {"vpdpbusd_u8_s8", true},
    {"vpdpbusd_s8_u8", true},
    {"vpdpbusd_u8_s8_256", true},
    {"vpdpbusd_s8_u8_256", true},
    {"sdot", true},
    {"udot", true},
    {"smmla", false, {.temporaries = 2}},
    {"ummla", false, {.temporaries = 2}},
    {"usmmla_u8_s8", false, {.temporaries = 2}},
    {"usmmla_s8_u8", false, {.temporaries = 2}},
    {"bfmmla", false, {.temporaries = 2}},
};

const Row* row_of(const TensorCore& core) {
  const auto* at = std::ranges::find(kRows, core.name.str(), &Row::core);
  return at == std::end(kRows) ? nullptr : at;
}

}  // namespace

CoreCosts costs_of(const TensorCore& core) {
  const Row* row = row_of(core);
  return row ? row->costs : CoreCosts{};
}

bool shifts_a(const TensorCore& core) {
  const Row* row = row_of(core);
  return row && row->shifts_a;
}

std::vector<int64_t> distinct_elements(const TensorCore& core, const TensorCore::Layout& factor) {
  int64_t moved_by = 0;  // the bits of an item's number
  for (const auto* side : {&factor.row, &factor.column})
    for (const TensorCore::Bit& bit : *side)
      if (!bit.of_element) moved_by |= int64_t{1} << bit.n;
  std::vector<int64_t> out;
  const int64_t each = factor.elements();
  for (int64_t item = 0; item < core.items; ++item)
    for (int64_t i = 0; i < each && (item & ~moved_by) == 0; ++i) out.push_back(item * each + i);
  return out;
}

}  // namespace tinygrad
