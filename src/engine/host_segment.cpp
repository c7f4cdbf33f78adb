#include "engine/host_segment.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <tinygrad/helpers.h>

#include "base/thread_pool.h"

namespace tinygrad::engine {

namespace {

constexpr size_t piece_bytes = size_t(1) << 20;  ///< of copies

HostDevice* host_device(Device* device) { return dynamic_cast<HostDevice*>(device); }

/// Where the host runs a step; null where another device is needed.
HostDevice* device_of(const ListStep& s, std::span<const ListSlot> slots) {
  if (s.is_exchange) return nullptr;
  if (s.program) return dynamic_cast<HostKernel*>(s.kernel) ? host_device(s.device) : nullptr;
  return host_device(slots[s.from].device) ? host_device(slots[s.to].device) : nullptr;
}

MemoryUse use_of(void* memory, size_t offset, size_t bytes, bool writes) {
  const auto begin = reinterpret_cast<uintptr_t>(memory) + offset;
  return {begin, begin + bytes, writes};
}

bool overlap(const MemoryUse& a, const MemoryUse& b) { return a.begin < b.end && b.begin < a.end; }

/// What a copy moves.
struct Copied {
  std::byte *to = nullptr, *from = nullptr;
  size_t bytes = 0;

  Copied(const ListStep& s, std::span<Buffer* const> buffers) {
    Buffer &target = *buffers[s.to], &source = *buffers[s.from];
    const size_t size = itemsize(target.dtype());
    to = static_cast<std::byte*>(target.handle()) + size_t(s.range.to) * size;
    from = static_cast<std::byte*>(source.handle()) + size_t(s.range.from) * size;
    bytes = size_t(s.range.count) * size;
  }
  /// Pieces of memory that overlaps would have to be copied one after another.
  size_t pieces() const {
    const bool is_one = bytes <= piece_bytes || overlap(use_of(to, 0, bytes, true), use_of(from, 0, bytes, false));
    return is_one ? 1 : (bytes + piece_bytes - 1) / piece_bytes;
  }
  void run(size_t begin, size_t end) const {
    const size_t first = begin * piece_bytes, last = end == pieces() ? bytes : end * piece_bytes;
    if (last > first) std::memmove(to + first, from + first, last - first);
  }
};

bool is_all_of(const Buffer& memory, const schedule::CopyRange& range) { return range.to == 0 && range.count == memory.size(); }

}  // namespace

std::vector<HostSegment> HostSegment::find(std::span<const ListStep> steps, std::span<const uint32_t> handle_slots,
                                           std::span<const ListSlot> slots, FunctionRef<bool(size_t step)> is_cut_before) {
  std::vector<HostSegment> out;
  for (size_t i = 0; i < steps.size();) {
    size_t end = i;
    while (end < steps.size() && device_of(steps[end], slots) && (end == i || !is_cut_before(end))) ++end;
    if (end > i) {
      HostSegment segment(steps.subspan(i, end - i), i, handle_slots, slots);
      if (segment.devices_.size() > 1) out.push_back(std::move(segment));
    }
    i = std::max(end, i + 1);
  }
  return out;
}

HostSegment::HostSegment(std::span<const ListStep> steps, size_t first, std::span<const uint32_t> handle_slots,
                         std::span<const ListSlot> slots)
    : first_(first), steps_(steps), handle_slots_(handle_slots), slots_(slots) {
  const auto lane_of = [&](HostDevice* device) {
    const auto lane = uint32_t(std::ranges::find(devices_, device) - devices_.begin());
    if (lane == devices_.size()) devices_.push_back(device);
    return lane;
  };
  std::vector<uint8_t> uses(slots.size()), writes(slots.size());
  for (const ListStep& s : steps) {
    lane_of_.push_back(lane_of(device_of(s, slots)));
    if (!s.program) {
      lane_of(host_device(slots[s.from].device));
      uses[s.to] = writes[s.to] = uses[s.from] = 1;
      continue;
    }
    for (const KernelParam& p : s.program->info.params) {
      const uint32_t slot = handle_slots[s.first_handle + size_t(p.slot)];
      lane_of(host_device(slots[slot].device));
      uses[slot] = 1;
      writes[slot] |= uint8_t(p.written);
    }
  }
  for (uint32_t slot = 0; slot < slots.size(); ++slot)
    if (uses[slot]) (slots[slot].kind == SlotKind::call ? brought_ : fixed_).push_back({slot, writes[slot] != 0});
}

SmallVector<MemoryUse, 8> HostSegment::uses_of(const ListStep& s, const Arguments& arguments) const {
  SmallVector<MemoryUse, 8> out;
  if (!s.program) {
    const Copied copied(s, arguments.buffers);
    out.push_back(use_of(copied.to, 0, copied.bytes, true));
    out.push_back(use_of(copied.from, 0, copied.bytes, false));
    return out;
  }
  for (const KernelParam& p : s.program->info.params) {
    const size_t handle = s.first_handle + size_t(p.slot);
    out.push_back(use_of(arguments.handles[handle], 0, arguments.buffers[handle_slots_[handle]]->nbytes(), p.written));
  }
  return out;
}

/// Then what waits for what is the same wherever that memory is.
bool HostSegment::brings_apart(const Bound& bound, const Arguments& arguments) const {
  SmallVector<MemoryUse, 8> brought;
  for (const auto& [slot, written] : brought_) {
    Buffer& b = *arguments.buffers[slot];
    const MemoryUse use = use_of(b.handle(), 0, b.nbytes(), written);
    const auto collides = [&](const MemoryUse& other) { return overlap(use, other) && (use.writes || other.writes); };
    const auto near = std::ranges::lower_bound(bound.fixed, use.begin, {}, [](const MemoryUse& f) { return f.end - 1; });
    for (auto it = near; it != bound.fixed.end() && it->begin < use.end; ++it)
      if (collides(*it)) return false;
    if (std::ranges::any_of(brought, collides)) return false;
    brought.push_back(use);
  }
  return true;
}

void HostSegment::plan(Bound& bound, const Arguments& arguments) const {
  bound.fixed.clear();
  for (const auto& [slot, written] : fixed_) {
    Buffer& b = *arguments.buffers[slot];
    if (b.nbytes() > 0) bound.fixed.push_back(use_of(b.handle(), 0, b.nbytes(), written));
  }
  std::ranges::sort(bound.fixed, {}, &MemoryUse::begin);
  size_t count = 0;
  for (const MemoryUse& use : bound.fixed) {
    if (count > 0 && use.begin < bound.fixed[count - 1].end) {
      MemoryUse& joined = bound.fixed[count - 1];
      joined.end = std::max(joined.end, use.end);
      joined.writes = joined.writes || use.writes;
    } else {
      bound.fixed[count++] = use;
    }
  }
  bound.fixed.resize(count);
  bound.is_apart = brings_apart(bound, arguments);
  bound.lanes.emplace(devices_.size());
  for (size_t i = 0; i < steps_.size(); ++i) bound.lanes->add(lane_of_[i], uses_of(steps_[i], arguments));
}

void HostSegment::drain() const {
  for (HostDevice* d : devices_) d->drain();
}

void HostSegment::check_copied(const Arguments& arguments, size_t first, size_t end) const {
  for (size_t i = first; i < end; ++i)
    if (!step(i).program && slots_[step(i).from].kind != SlotKind::temporary) arguments.buffers[step(i).from]->check_readable();
}

void HostSegment::note_copied(const Arguments& arguments, size_t first, size_t end) const {
  for (size_t i = first; i < end; ++i) {
    const ListStep& s = step(i);
    if (s.program || slots_[s.to].kind == SlotKind::temporary) continue;
    Buffer& target = *arguments.buffers[s.to];
    if (is_all_of(target, s.range)) target.written_whole();
  }
}

void HostSegment::run(Bound& bound, const Arguments& arguments, size_t first, size_t end, size_t& failed) const {
  if (bound.moved && !(bound.lanes && bound.is_apart && brings_apart(bound, arguments))) plan(bound, arguments);
  bound.moved = false;
  drain();
  check_copied(arguments, first, end);
  const auto variables_of = [&](const ListStep& s) { return arguments.variables.subspan(s.first_variable, s.variable_count); };
  std::vector<uint32_t> chunks(end - first);
  for (size_t i = first; i < end; ++i) {
    const ListStep& s = step(i);
    if (s.program)
      chunks[i - first] = uint32_t(s.dims_known ? s.dims.chunks : s.program->info.launch_dims(variables_of(s)).chunks);
    else
      chunks[i - first] = uint32_t(Copied(s, arguments.buffers).pieces());
  }
  std::atomic<size_t> first_failed{end};
  const auto caller = std::this_thread::get_id();
  const auto work = [&](size_t number, size_t begin, size_t until) {
    const size_t i = number + first_;
    const ListStep& s = step(i);
    try {
      if (std::this_thread::get_id() == caller) check_interrupt();
      if (!s.program)
        Copied(s, arguments.buffers).run(begin, until);
      else if (chunks[i - first] > 0)
        static_cast<HostKernel*>(s.kernel)->run_piece(arguments.handles.subspan(s.first_handle, s.handle_count), variables_of(s), begin,
                                                      until);
    } catch (...) {
      for (size_t known = first_failed.load(); i < known && !first_failed.compare_exchange_weak(known, i);) {}
      throw;
    }
  };
  failed = first;
  try {
    bound.lanes->run(
        first - first_, end - first_, compute_pool(), [&](size_t number) { return size_t(std::max(1u, chunks[number + first_ - first])); },
        work);
  } catch (...) {
    failed = first_failed.load();
    throw;
  }
  note_copied(arguments, first, end);
}

void HostSegment::run_in_order(const Arguments& arguments, size_t first, size_t end, size_t& failed,
                               FunctionRef<void(const ListStep& step)> launch) const {
  check_copied(arguments, first, end);
  for (failed = first; failed < end; ++failed) {
    const ListStep& s = step(failed);
    drain();  // a step may use what another device has just been given to write
    if (s.program) {
      launch(s);
    } else {
      const Copied copied(s, arguments.buffers);
      copied.run(0, copied.pieces());
    }
  }
  note_copied(arguments, first, end);
}

}  // namespace tinygrad::engine
