#include "search/trial_memory.h"

#include <algorithm>

#include "dtype/convert.h"

namespace tinygrad::search {
namespace {

constexpr uint64_t page = 4096;

std::vector<TrialMemory::Slot> lay_out(const KernelInfo& info, std::span<const int64_t> variables) {
  std::vector<TrialMemory::Slot> slots(info.buffer_count());
  uint64_t end = 0;
  const auto take = [&](uint64_t bytes) {
    const uint64_t begin = end;
    end += (bytes + page - 1) / page * page;
    return begin;
  };
  for (const KernelParam& p : info.params) {
    TrialMemory::Slot& s = slots[size_t(p.slot)];
    s.dtype = p.dtype;
    s.count = uint64_t(std::max<int64_t>(p.size.evaluate(variables), 0));
    const uint64_t bytes = s.count * itemsize(p.dtype);
    s.place = {.bytes = bytes, .content = take(bytes), .written = p.written, .result = 0};
    if (p.written) s.place.result = take(bytes);
  }
  return slots;
}

uint64_t size_of(const std::vector<TrialMemory::Slot>& slots) {
  uint64_t end = 0;
  for (const auto& s : slots) end = std::max({end, s.place.content + s.place.bytes, s.place.written ? s.place.result + s.place.bytes : 0});
  return end;
}

/// A generator of Marsaglia's (xorshift64*): quick, and the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Du >> 32;
  }

 private:
  uint64_t state_;
};

void fill(const TrialMemory::Slot& slot, std::byte* to, uint64_t seed) {
  constexpr uint64_t block = 4096;
  Random random(seed);
  const bool real = is_float(slot.dtype);
  float values[block];
  for (uint64_t done = 0; done < slot.count; done += block) {
    const uint64_t n = std::min(block, slot.count - done);
    for (uint64_t i = 0; i < n; ++i) values[i] = real ? float(random.next()) * 0x1p-31f - 1 : float(random.next() & 3);
    convert_array(slot.dtype, to + done * itemsize(slot.dtype), DType::float32, values, n);
  }
}

}  // namespace

TrialMemory::TrialMemory(const KernelInfo& info, std::span<const int64_t> variables)
    : slots_(lay_out(info, variables)), file_(size_of(slots_)) {
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].count) fill(slots_[i], content(slots_[i]).data(), i + 1);
}

TrialMemory::TrialMemory(const KernelInfo& info, std::span<const int64_t> variables, const TrialMemory& same)
    : slots_(lay_out(info, variables)), file_(size_of(slots_)) {
  for (size_t i = 0; i < std::min(slots_.size(), same.slots_.size()); ++i) {
    const Slot &to = slots_[i], &from = same.slots_[i];
    const uint64_t n = std::min(to.count, from.count);
    if (n) convert_array(to.dtype, content(to).data(), from.dtype, same.content(from).data(), n);
  }
}

WorkerSetup TrialMemory::setup(uint32_t threads, uint64_t cold_bytes) const {
  WorkerSetup s{.threads = threads, .cold_bytes = cold_bytes, .buffers = {}};
  for (const Slot& slot : slots_) s.buffers.push_back(slot.place);
  return s;
}

uint64_t trial_bytes(const KernelInfo& info, std::span<const int64_t> variables) { return size_of(lay_out(info, variables)); }

}  // namespace tinygrad::search
