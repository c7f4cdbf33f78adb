#include "engine/capture.h"

#include <algorithm>

#include <tinygrad/errors.h>

#include "device/device.h"
#include "engine/host_memory.h"
#include "schedule/memory_plan.h"
#include "uop/build.h"

namespace tinygrad::engine {

Capture::Capture(std::vector<CapturedSlot> slots, std::span<const RecordedCall> calls, ListVariables variables, const Options& options,
                 std::vector<uint32_t> looked_at)
    : slots_(std::move(slots)) {
  linear_ = UOp(Op::LINEAR, DType::void_, numbered(calls).calls, LinearArg{0});
  std::vector<RecordedCall> made(calls.begin(), calls.end());
  RankPlan ranks = RankPlan::of(made, list_slots());  // of what is the same on all ranks: each prepares its own constants
  prepared_.prepare(made, slots_, options);
  plan(made, !options.no_memory_planner);
  list_.emplace(made, std::move(ranks), list_slots(), std::move(variables), options, std::move(looked_at));
  for (const schedule::Arena& a : plan_.arenas) arenas_.push_back(&Device::get(a.device.str()));
  for (const CommandList::Use& use : list_->uses()) read_.push_back(use.read);
  for (uint32_t slot : prepared_.sources()) read_[slot] = true;
  if (options.jit != 2) list_->make_batches(options.jit_batch_size);
  note_made({});
}

Capture::~Capture() = default;

/// Calls may have been taken out, and temporaries that are left to none need no memory.
std::vector<bool> Capture::used_slots(std::span<const RecordedCall> calls) const {
  std::vector<bool> used(slots_.size());
  for (const RecordedCall& c : calls)
    for (uint32_t s : c.slots) used[s] = true;
  return used;
}

Capture::Numbered Capture::numbered(std::span<const RecordedCall> calls) const {
  Numbered out;
  const std::vector<bool> used = used_slots(calls);
  std::vector<UOp> params(slots_.size());
  int32_t number = 0;
  for (const bool planned : {false, true}) {
    if (planned) out.first = number;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const CapturedSlot& s = slots_[i];
      if ((s.kind == SlotKind::temporary) != planned || (planned && !used[i])) continue;
      params[i] = param(s.dtype, s.size, {.slot = number++, .device = s.device});
      if (planned) out.temporaries.push_back(params[i]);
    }
  }
  for (const RecordedCall& c : calls) {
    UOps sources{c.body};
    for (uint32_t s : c.slots) sources.push_back(params[s]);
    sources.append(c.bound.begin(), c.bound.end());
    out.calls.push_back(UOp(Op::CALL, DType::void_, sources));
  }
  return out;
}

void Capture::plan(std::span<const RecordedCall> calls, bool reuse) {
  const std::vector<bool> used = used_slots(calls);
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].kind == SlotKind::temporary && used[i]) temporaries_.push_back(uint32_t(i));
  const Numbered n = numbered(calls);
  schedule::plan_memory(n.calls, n.temporaries, n.first, reuse, plan_);
}

std::vector<ListSlot> Capture::list_slots() const {
  std::vector<std::pair<Symbol, Device*>> known;
  std::vector<ListSlot> out;
  for (const CapturedSlot& s : slots_) {
    auto device = std::ranges::find(known, s.device, &std::pair<Symbol, Device*>::first);
    if (device == known.end()) device = known.insert(device, {s.device, &Device::get(s.device.str())});
    out.push_back({device->second, s.kind});
  }
  return out;
}

void Capture::note_made(std::span<const size_t> made) {
  lasting_from_ = list_->first_write([&](uint32_t slot) {
    const SlotKind kind = slots_[slot].kind;
    return kind == SlotKind::fixed || (kind == SlotKind::call && std::ranges::find(made, slot) == made.end());
  });
}

std::unique_ptr<Capture::Lease> Capture::lease() {
  return with_host_memory([&] { return free_or_new_lease(); });
}

std::unique_ptr<Capture::Lease> Capture::free_or_new_lease() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Lease> l = std::move(free_.back());
      free_.pop_back();
      return l;
    }
  }
  auto l = std::make_unique<Lease>();
  std::vector<Buffer*> buffers(slots_.size());
  const auto make = [&](Device& device, int64_t size, DType dtype) {
    l->owned.push_back(Buffer::make(device, size, dtype));
    l->owned.back()->ensure_allocated();
    return l->owned.back().get();
  };
  for (size_t a = 0; a < plan_.arenas.size(); ++a) make(*arenas_[a], std::max<int64_t>(plan_.arenas[a].bytes, 1), DType::uint8);
  for (size_t t = 0; t < temporaries_.size(); ++t) {
    const auto& place = plan_.temporaries[t];
    l->owned.push_back(l->owned[place.arena]->view(place.offset, place.size, place.dtype));
    buffers[temporaries_[t]] = l->owned.back().get();
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    const CapturedSlot& s = slots_[i];
    if (s.kind == SlotKind::lease) buffers[i] = make(device(i), s.size, s.dtype);
    if (s.kind == SlotKind::fixed) buffers[i] = s.buffer.get();
  }
  l->binding = list_->bind(std::move(buffers));
  return l;
}

void Capture::give_back(std::unique_ptr<Lease> lease) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    free_.push_back(std::move(lease));
  } catch (const std::bad_alloc&) {  // then it is not kept
  }
}

void Capture::free_leases() {
  std::vector<std::unique_ptr<Lease>> freed;
  const std::lock_guard lock(mutex_);
  freed.swap(free_);
}

Buffer& Capture::buffer(Lease& lease, size_t slot) { return *lease.binding.buffers[slot]; }

void Capture::run(Lease& lease, std::span<Buffer* const> buffers, std::span<const int64_t> variables,
                  FunctionRef<void(size_t number)> look) {
  with_host_memory([&] {
    list_->bring(lease.binding, buffers, variables);
    prepared_.refresh();
  });
  try {
    with_host_memory([&] {
      list_->run(lease.binding, lasting_from_, look);
      note_writes(buffers);
    });
  } catch (const Cancelled&) {  // before anything that lasts was written
    throw;
  } catch (const IndexError&) {  // of a look: what was written before is whole
    note_writes(buffers);
    throw;
  } catch (const std::exception& e) {
    poison(lease, buffers, e.what());
    throw;
  }
}

void Capture::note_writes(std::span<Buffer* const> buffers) const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!written(i)) continue;
    if (slots_[i].kind == SlotKind::call) buffers[i]->note_write();
    if (slots_[i].kind == SlotKind::fixed) slots_[i].buffer->note_write();
  }
}

/// What has begun to be written.
void Capture::poison(const Lease& lease, std::span<Buffer* const> buffers, const char* reason) {
  const std::string why = joined("a kernel of a jitted function that writes it, or uses what it wrote, failed: ", reason);
  list_->for_each_written(lease.binding.begun, [&](uint32_t slot) {
    const CapturedSlot& s = slots_[slot];
    Buffer* b = s.kind == SlotKind::call ? buffers[slot] : s.kind == SlotKind::fixed ? s.buffer.get() : nullptr;
    if (b) b->poison(why);
  });
}

}  // namespace tinygrad::engine
