#include "engine/rank_plan.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <unordered_set>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/hash.h"
#include "base/per_process.h"
#include "comm/group.h"
#include "device/rank_device.h"
#include "engine/lanes.h"
#include "uop/devices.h"
#include "uop/graph.h"

namespace tinygrad::engine {

namespace {

constexpr std::string_view comparing = "comparing programs";
constexpr int most_kinds = 32000;

int rank_of(const Device& device) { return tinygrad::rank_of(device.name()); }

}  // namespace

RankPart rank_part(const RecordedCall& call, std::span<const ListSlot> slots) {
  const Device& to = *slots[call.slots[0]].device;
  const auto here_if_mine = [&] { return is_of_other_rank(to) ? RankPart::elsewhere : RankPart::here; };
  if (call.body.is(Op::SINK)) return here_if_mine();
  const Device& from = *slots[call.slots[1]].device;
  if (rank_of(from) < 0 || rank_of(from) == rank_of(to)) return here_if_mine();
  if (rank_of(to) < 0) return comm::group().size() > 1 ? RankPart::exchange : RankPart::here;  // to all of them
  return is_of_other_rank(from) && is_of_other_rank(to) ? RankPart::elsewhere : RankPart::exchange;
}

RankPlan RankPlan::of(std::span<const RecordedCall> calls, std::span<const ListSlot> slots) {
  RankPlan out;
  const auto is_of_one = [&](uint32_t slot) { return rank_of(*slots[slot].device) >= 0; };
  if (std::ranges::none_of(calls, [&](const RecordedCall& c) { return std::ranges::any_of(c.slots, is_of_one); })) return out;
  for (const RecordedCall& c : calls) {
    uint64_t key = content_key(c.body).lo;
    std::string devices;
    for (const uint32_t slot : c.slots) {
      const std::string_view name = slots[slot].device->name().str();
      key = hash_all(key, slot, name);
      if (devices.size() < 64) devices += fmt::format("{}{}", devices.empty() ? "" : ", ", name);
    }
    for (const UOp& b : c.bound) key = hash_combine(key, content_key(b).lo);
    out.keys_.push_back(key);
    const std::string what = c.body.is(Op::SINK) ? std::string(c.body.arg_as<KernelArg>().name.str())
                                                 : fmt::format("copy of {} elements", schedule::range_of_copy(c.body).count);
    out.texts_.push_back(fmt::format("{} on {}", what, devices));
    out.key_ = hash_combine(out.key_, key);
  }
  return out;
}

int RankPlan::kind(std::span<const int64_t> variables) const {
  return comm::first_of_lists + int(hash_combine(key_, hash_range(variables)) % most_kinds);
}

void RankPlan::compare(const Options& options) const {
  if (comm::group().size() == 1) return;
  struct Compared {
    std::mutex mutex;
    std::unordered_set<uint64_t> plans;
  };
  auto& compared = tinygrad::detail::PerProcess<Compared>::get();
  {
    const std::lock_guard lock(compared.mutex);
    if (compared.plans.contains(key_)) return;
  }
  compare_calls(options);
  const std::lock_guard lock(compared.mutex);
  compared.plans.insert(key_);
}

void RankPlan::compare_calls(const Options& options) const {
  const auto count = size_t(comm::group().size());
  const double timeout_s = options.comm_timeout;
  std::array<uint64_t, 2> mine{key_, keys_.size()};
  const auto plans =
      comm::said_by_all(std::span<uint64_t>(mine), std::vector<size_t>(count, 2), comm::about_programs, comparing, timeout_s);
  const auto other = std::ranges::find_if(plans, [&](const auto& p) { return p != plans[0]; });
  if (other == plans.end()) return;
  const auto second = size_t(other - plans.begin());
  std::vector<size_t> counts;
  for (const auto& p : plans) counts.push_back(p[1]);
  std::vector<uint64_t> own_keys = keys_;
  const auto keys = comm::said_by_all(std::span(own_keys), counts, comm::about_programs, comparing, timeout_s);
  const size_t first = size_t(std::ranges::mismatch(keys[0], keys[second]).in1 - keys[0].begin());
  std::string text = describe(first);
  text.resize(256);
  const auto texts =
      comm::said_by_all(std::span(text), std::vector<size_t>(count, text.size()), comm::about_programs, comparing, timeout_s);
  const bool look_alike = texts[0] == texts[second];
  throw CommError(fmt::format("ranks run different programs: call {} is {} on rank 0, and {}{} on rank {}", first, texts[0].data(),
                              look_alike ? "another " : "", texts[second].data(), second));
}

std::string RankPlan::describe(size_t call) const { return call < texts_.size() ? texts_[call].substr(0, 255) : std::string("none"); }

namespace {

/// A part of memory that the host can send from, or receive into.
class Part {
 public:
  Part(Buffer& memory, int64_t begin, int64_t count)
      : memory_(begin == 0 && count == memory.size() ? BufferPtr(&memory)
                                                     : memory.view(begin * int64_t(itemsize(memory.dtype())), count, memory.dtype())) {}

  std::span<std::byte> to_send() {
    memory_->check_readable();
    memory_->device().wait();
    if (std::byte* host = host_memory()) return {host, memory_->nbytes()};
    copy_.resize(memory_->nbytes());
    memory_->copyout(copy_);
    return copy_;
  }
  std::span<std::byte> to_receive() {
    memory_->device().wait();
    if (std::byte* host = host_memory()) return {host, memory_->nbytes()};
    copy_.resize(memory_->nbytes());
    return copy_;
  }
  void copy_in(std::span<const std::byte> bytes) { memory_->copyin(bytes); }
  void received() {
    if (copy_.empty())
      memory_->written_whole();
    else
      memory_->copyin(copy_);
  }

  /// Of memory that the host does not reach, all that was allocated together is as one byte.
  MemoryUse use(bool writes) {
    const auto at = reinterpret_cast<uintptr_t>(host_memory());
    const auto whole = reinterpret_cast<uintptr_t>(&memory_->origin());
    return at ? MemoryUse{at, at + memory_->nbytes(), writes} : MemoryUse{whole, whole + 1, writes};
  }

 private:
  std::byte* host_memory() { return memory_->device().allocator().host_pointer(memory_->handle()); }

  BufferPtr memory_;
  std::vector<std::byte> copy_;
};

/// Messages that are under way at the same time, as long as none uses memory that another one writes: slots that are not needed at the same
/// time may have the same memory.
class Exchange {
 public:
  Exchange(int kind, double timeout_s) : kind_(kind), timeout_s_(timeout_s) {}

  void add(const RankCopy& copy) {
    const auto& [to, from, range] = copy;
    const int source = rank_of(from->device()), target = rank_of(to->device());
    const bool sends = source == group_.rank(), is_for_all = target < 0;
    Part written(*to, range.to, range.count), read(*from, range.from, range.count);
    SmallVector<MemoryUse, 2> uses;
    if (sends) uses.push_back(read.use(false));
    if (!sends || is_for_all) uses.push_back(written.use(true));
    if (std::ranges::any_of(uses, [&](const MemoryUse& u) { return is_in_the_way(u); })) finish();
    uses_.insert(uses_.end(), uses.begin(), uses.end());
    if (!sends) {
      messages_.push_back({source, false, received_.emplace_back(std::move(written)).to_receive()});
      return;
    }
    const auto bytes = sent_.emplace_back(std::move(read)).to_send();
    for (int r = 0; r < group_.size(); ++r)
      if (r != source && (is_for_all || target == r)) messages_.push_back({r, true, bytes});
    if (is_for_all) written.copy_in(bytes);
  }

  void finish() {
    group_.exchange(messages_, kind_, "copying between ranks", timeout_s_);
    for (Part& p : received_) p.received();
    messages_.clear();
    uses_.clear();
    sent_.clear();
    received_.clear();
  }

 private:
  bool is_in_the_way(const MemoryUse& use) const {
    return std::ranges::any_of(
        uses_, [&](const MemoryUse& other) { return (use.writes || other.writes) && use.begin < other.end && other.begin < use.end; });
  }

  comm::Group& group_ = comm::group();
  const int kind_;
  const double timeout_s_;
  std::deque<Part> sent_, received_;  // they stay where they are
  std::vector<comm::Message> messages_;
  std::vector<MemoryUse> uses_;
};

}  // namespace

void exchange(std::span<const RankCopy> copies, int kind, const Options& options) {
  Exchange messages(kind, options.comm_timeout);
  for (const RankCopy& c : copies) messages.add(c);
  messages.finish();
}

}  // namespace tinygrad::engine
