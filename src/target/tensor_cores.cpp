#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "target/target.h"
#include "target/tensor_cores/families.h"

namespace tinygrad {

namespace {

using namespace tensor_core_families;

int64_t gather(const Bits& from, int64_t item, int64_t element) {
  int64_t out = 0;
  for (size_t i = 0; i < from.size(); ++i) out |= ((from[i].of_element ? element : item) >> from[i].n & 1) << i;
  return out;
}

const std::vector<Family>& families() {
  static const auto& all = *[] {
    auto* joined = new std::vector<Family>;
    for (const auto& vendor : {nvidia, amd, apple, intel, x86, arm, small})
      for (Family& f : vendor()) joined->push_back(std::move(f));
    return joined;
  }();
  return all;
}

}  // namespace

int TensorCore::Layout::elements() const {
  int count = 1;
  for (const Bits* side : {&row, &column})
    for (const Bit& bit : *side) count <<= bit.of_element;
  return count;
}
int64_t TensorCore::Layout::row_of(int64_t item, int64_t element) const { return gather(row, item, element); }
int64_t TensorCore::Layout::column_of(int64_t item, int64_t element) const { return gather(column, item, element); }

const std::vector<TensorCore>& tensor_cores(std::string_view family) {
  std::vector<std::string_view> known;
  for (const Family& f : families()) {
    if (f.name == family) return f.cores;
    known.push_back(f.name);
  }
  throw ValueError(fmt::format("tensor cores: unknown family '{}'; known are {}", family, fmt::join(known, ", ")));
}

const TensorCore* find_tensor_core(Symbol name) {
  for (const Family& f : families())
    for (const TensorCore& core : f.cores)
      if (core.name == name) return &core;
  return nullptr;
}

}  // namespace tinygrad
