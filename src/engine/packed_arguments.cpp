#include "engine/packed_arguments.h"

#include <algorithm>
#include <atomic>
#include <unordered_set>

#include <tinygrad/errors.h>

#include "engine/launch.h"
#include "runtime/backends.h"

namespace tinygrad::engine {

namespace {

std::atomic<int64_t> bytes_of_all{0};

/// Takes the bytes from those that all copies may have together.
bool reserve(int64_t bytes, int64_t limit) {
  if (bytes_of_all.fetch_add(bytes) + bytes <= limit) return true;
  bytes_of_all -= bytes;
  return false;
}

std::unordered_set<const Buffer*> written_memories(std::span<const RecordedCall> calls, std::span<const CapturedSlot> slots) {
  std::unordered_set<const Buffer*> out;
  for (const RecordedCall& c : calls) {
    const std::vector<bool> written = written_arguments(c);
    for (size_t i = 0; i < written.size(); ++i)
      if (const BufferPtr& b = slots[c.slots[i]].buffer; b && written[i]) out.insert(&b->origin());
  }
  return out;
}

}  // namespace

PackedArguments::~PackedArguments() { bytes_of_all -= bytes_; }

void PackedArguments::pack(std::span<RecordedCall> calls, std::vector<CapturedSlot>& slots, const Options& options) {
  if (options.pack_memory == 0) return;
  const auto written = written_memories(calls, slots);
  const auto is_constant = [&](const BufferPtr& b) { return b && b->content() && !written.contains(&b->origin()); };
  struct Known {
    UOp body;
    uint64_t constant;
    std::optional<codegen::PackedKernel> packed;
  };
  std::vector<Known> known;
  for (RecordedCall& c : calls) {
    if (!c.body.is(Op::SINK)) continue;
    uint64_t constant = 0;
    for (size_t i = 0; i < std::min<size_t>(c.slots.size(), 64); ++i)
      if (is_constant(slots[c.slots[i]].buffer)) constant |= uint64_t{1} << i;
    if (constant == 0) continue;
    auto k = std::ranges::find_if(known, [&](const Known& other) { return other.body == c.body && other.constant == constant; });
    if (k == known.end()) {
      const Target& target = runtime::open_device(slots[c.slots[0]].device.str()).target();
      k = known.insert(k, {c.body, constant, codegen::pack_constants(c.body, target, codegen::CodegenOptions::from(options), constant)});
    }
    if (k->packed && add_copies(k->packed->arguments, c, slots, options.pack_memory)) c.body = k->packed->sink;
  }
  std::vector<KernelOn> kernels;
  for (const Copy& c : copies_) kernels.push_back({c.kernel, c.device});
  const auto programs = get_programs(kernels, options);
  for (size_t i = 0; i < copies_.size(); ++i) copies_[i].program = programs[i];
}

bool PackedArguments::add_copies(std::span<const codegen::PackedArgument> arguments, RecordedCall& call, std::vector<CapturedSlot>& slots,
                                 int64_t limit) {
  std::vector<Copy> made;
  RecordedCall changed = call;
  int64_t bytes = 0;
  for (const codegen::PackedArgument& a : arguments) {
    uint32_t& slot = changed.slots[size_t(a.slot)];
    const auto same = [&](const Copy& c) { return c.from == slot && c.kernel == a.pack; };
    if (const auto c = std::ranges::find_if(copies_, same); c != copies_.end()) {
      slot = c->to;
      continue;
    }
    const CapturedSlot& from = slots[slot];
    Device& device = runtime::open_device(from.device.str());
    made.push_back({.kernel = a.pack, .device = &device, .from = slot, .to = uint32_t(slots.size() + made.size()), .source = from.buffer});
    made.back().packed = Buffer::make(device, a.size, from.dtype);
    bytes += int64_t(made.back().packed->nbytes());
    slot = made.back().to;
  }
  if (!reserve(bytes, limit)) return false;
  bytes_ += bytes;
  try {
    for (const Copy& c : made) c.packed->ensure_allocated();
  } catch (const OutOfMemoryError&) {
    bytes_of_all -= bytes;
    bytes_ -= bytes;
    return false;
  }
  for (Copy& c : made) {
    const CapturedSlot from = slots[c.from];
    slots.push_back({.kind = SlotKind::fixed, .dtype = from.dtype, .size = c.packed->size(), .device = from.device, .buffer = c.packed});
    copies_.push_back(std::move(c));
  }
  call = std::move(changed);
  return true;
}

std::vector<uint32_t> PackedArguments::sources() const {
  std::vector<uint32_t> out;
  for (const Copy& c : copies_) out.push_back(c.from);
  return out;
}

void PackedArguments::refresh() {
  if (copies_.empty()) return;
  const std::lock_guard lock(mutex_);
  for (Copy& c : copies_) {
    const uint64_t content = c.source->content();
    if (content && content == c.content) continue;
    void* const handles[] = {c.packed->handle(), c.source->handle()};
    launch(*c.program, *c.device, handles, {});
    c.content = content;
  }
}

}  // namespace tinygrad::engine
