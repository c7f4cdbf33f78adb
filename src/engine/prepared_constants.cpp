#include "engine/prepared_constants.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <unordered_set>

#include <tinygrad/errors.h>

#include "device/device.h"
#include "device/rank_device.h"
#include "engine/launch.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::engine {

namespace {

std::atomic<int64_t> bytes_of_all{0};

/// Takes the bytes from those that all may keep together.
bool reserve(int64_t bytes, int64_t limit) {
  if (bytes_of_all.fetch_add(bytes) + bytes <= limit) return true;
  bytes_of_all -= bytes;
  return false;
}

/// What calls write.
class Writes {
 public:
  Writes(std::span<const RecordedCall> calls, std::span<const CapturedSlot> slots) : times_(slots.size()) {
    for (const RecordedCall& c : calls) {
      const std::vector<bool> written = written_arguments(c);
      for (size_t i = 0; i < written.size(); ++i) {
        if (!written[i]) continue;
        ++times_[c.slots[i]];
        if (const BufferPtr& b = slots[c.slots[i]].buffer) memories_.insert(&b->origin());
      }
    }
  }
  int times(uint32_t slot) const { return times_[slot]; }
  bool leave(const BufferPtr& b) const { return b && b->content() && !memories_.contains(&b->origin()); }

 private:
  std::vector<int> times_;
  std::unordered_set<const Buffer*> memories_;
};

/// The same each time that it runs on the same arguments, which it only reads or only writes.
bool is_repeatable(const RecordedCall& call, const std::vector<bool>& written) {
  if (!call.body.is(Op::SINK)) return false;
  for (const UOp& u : toposort(call.body)) {
    if (u.is(Op::VAR)) return false;
    if (!u.is(Op::LOAD)) continue;
    const UOp* from = &u.src(0);
    while (!from->is(Op::PARAM) && from->src_count() > 0) from = &from->src(0);
    if (from->is(Op::PARAM) && written[size_t(from->arg_as<ParamArg>().slot)]) return false;
  }
  return true;
}

/// The kernel with numbers for the variables by which places in constant arguments are found, where the call has values of its own for
/// them. Such variables only let kernels share code: copies of what they lead to need that place.
UOp at_places_of(const RecordedCall& call, uint64_t constant) {
  NodeMap<UOp> numbers;
  for (const UOp& u : toposort(call.body)) {
    if (call.bound.empty() || !u.is(Op::LOAD) || !u.src(0).is(Op::INDEX) || !u.src(0).src(0).is(Op::PARAM)) continue;
    const int32_t slot = u.src(0).src(0).arg_as<ParamArg>().slot;
    if (slot >= 64 || !(constant >> slot & 1)) continue;
    for (const UOp& v : toposort(u.src(0)))
      if (v.is(Op::VAR))
        if (const auto number = value_bound_to(v.arg_as<VarArg>().name, call.bound)) numbers[v] = tinygrad::constant(v.dtype(), *number);
  }
  return numbers.size() == 0 ? call.body : substitute(call.body, numbers);
}

}  // namespace

bool PreparedConstants::Step::is_outdated() const {
  return std::ranges::any_of(arguments,
                             [](const Argument& a) { return !a.written && (a.content == 0 || a.content != a.buffer->content()); });
}
void PreparedConstants::Step::run() {
  std::vector<void*> handles;
  std::vector<uint64_t> contents;
  for (const Argument& a : arguments) {
    if (a.written) a.buffer->note_write();  // before: should this or a later step fail, steps that read it are outdated
    contents.push_back(a.buffer->content());
    handles.push_back(a.buffer->handle());
  }
  launch(*program, *device, handles, {});
  for (size_t i = 0; i < arguments.size(); ++i) arguments[i].content = contents[i];
}

PreparedConstants::~PreparedConstants() { bytes_of_all -= bytes_; }

void PreparedConstants::prepare(std::vector<RecordedCall>& calls, std::vector<CapturedSlot>& slots, const Options& options) {
  if (options.pack_memory == 0) return;
  take_out(calls, slots, options.pack_memory);
  pack(calls, slots, options);
  connect(calls, slots);
  std::vector<KernelOn> kernels;
  for (const Step& s : steps_) kernels.push_back({s.kernel, s.device});
  const auto programs = get_programs(kernels, options);
  for (size_t i = 0; i < steps_.size(); ++i) steps_[i].program = programs[i];
}

void PreparedConstants::take_out(std::vector<RecordedCall>& calls, std::vector<CapturedSlot>& slots, int64_t limit) {
  const Writes writes(calls, slots);
  std::erase_if(calls, [&](const RecordedCall& c) {
    const std::vector<bool> written = written_arguments(c);
    bool reads = false;
    for (size_t i = 0; i < written.size(); ++i) {
      const CapturedSlot& s = slots[c.slots[i]];
      if (written[i] ? s.kind != SlotKind::temporary || writes.times(c.slots[i]) != 1 : !writes.leave(s.buffer)) return false;
      reads |= !written[i];
    }
    Device& device = Device::get(slots[c.slots[0]].device.str());
    const auto is_here = [&](uint32_t slot) { return slots[slot].device == device.name(); };
    if (!reads || device.is_async() || is_of_other_rank(device) || !std::ranges::all_of(c.slots, is_here) || !is_repeatable(c, written))
      return false;
    Step step{.kernel = c.body, .device = &device};
    for (size_t i = 0; i < written.size(); ++i) {
      const CapturedSlot& s = slots[c.slots[i]];
      step.arguments.push_back({c.slots[i], written[i] ? Buffer::make(device, s.size, s.dtype) : s.buffer, written[i]});
    }
    const std::vector<Argument> arguments = step.arguments;
    if (!add({std::move(step)}, limit)) return false;
    for (const Argument& a : arguments) {
      if (!a.written) continue;
      slots[a.slot].kind = SlotKind::fixed;
      slots[a.slot].buffer = a.buffer;
    }
    return true;
  });
}

void PreparedConstants::pack(std::span<RecordedCall> calls, std::vector<CapturedSlot>& slots, const Options& options) {
  constexpr size_t most_places = 4;  // at each of which a kernel has code of its own
  const Writes writes(calls, slots);
  struct Known {
    UOp body;
    uint64_t constant;
    std::vector<UOp> at_places;
    std::vector<std::optional<codegen::PackedKernel>> packed;
  };
  std::vector<Known> known;
  std::vector<std::pair<size_t, size_t>> numbers;  // of each call: of its body, and of that at its places
  for (const RecordedCall& c : calls) {
    uint64_t constant = 0;
    for (size_t i = 0; c.body.is(Op::SINK) && i < std::min<size_t>(c.slots.size(), 64); ++i)
      if (writes.leave(slots[c.slots[i]].buffer)) constant |= uint64_t{1} << i;
    auto k = std::ranges::find_if(known, [&](const Known& other) { return other.body == c.body && other.constant == constant; });
    if (k == known.end()) k = known.insert(k, {c.body, constant, {}, {}});
    const UOp body = at_places_of(c, constant);
    auto at = std::ranges::find(k->at_places, body);
    if (at == k->at_places.end()) at = k->at_places.insert(at, body);
    numbers.emplace_back(k - known.begin(), at - k->at_places.begin());
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    RecordedCall& c = calls[i];
    Known& k = known[numbers[i].first];
    if (k.constant == 0 || k.at_places.size() > most_places || is_of_other_rank(Device::get(slots[c.slots[0]].device.str()))) continue;
    if (k.packed.empty()) {
      const Target& target = Device::get(slots[c.slots[0]].device.str()).target();
      for (const UOp& body : k.at_places)
        k.packed.push_back(codegen::pack_constants(body, target, codegen::CodegenOptions::from(options), k.constant));
    }
    const auto& packed = k.packed[numbers[i].second];
    if (packed && add_copies(packed->arguments, c, slots, options.pack_memory)) c.body = packed->sink;
  }
}

bool PreparedConstants::add_copies(std::span<const codegen::PackedArgument> arguments, RecordedCall& call, std::vector<CapturedSlot>& slots,
                                   int64_t limit) {
  std::vector<Step> made;
  std::vector<CapturedSlot> copies;
  RecordedCall changed = call;
  for (const codegen::PackedArgument& a : arguments) {
    uint32_t& slot = changed.slots[size_t(a.slot)];
    const auto same = [&](const Step& s) { return s.kernel == a.pack && s.arguments[1].slot == slot; };
    if (const auto s = std::ranges::find_if(steps_, same); s != steps_.end()) {
      slot = s->arguments[0].slot;
      continue;
    }
    const CapturedSlot& from = slots[slot];
    Device& device = Device::get(from.device.str());
    const auto to = uint32_t(slots.size() + copies.size());
    const BufferPtr packed = Buffer::make(device, a.size, from.dtype);
    made.push_back({.kernel = a.pack, .device = &device, .arguments = {{to, packed, true}, {slot, from.buffer}}});
    copies.push_back({.kind = SlotKind::fixed, .dtype = from.dtype, .size = a.size, .device = from.device, .buffer = packed});
    slot = to;
  }
  if (!add(std::move(made), limit)) return false;
  slots.insert(slots.end(), copies.begin(), copies.end());
  call = std::move(changed);
  return true;
}

bool PreparedConstants::add(std::vector<Step> steps, int64_t limit) {
  int64_t bytes = 0;
  for (const Step& s : steps)
    for (const Argument& a : s.arguments) bytes += a.written ? int64_t(a.buffer->nbytes()) : 0;
  if (!reserve(bytes, limit)) return false;
  bytes_ += bytes;
  try {
    for (const Step& s : steps)
      for (const Argument& a : s.arguments) a.buffer->ensure_allocated();
  } catch (const OutOfMemoryError&) {
    bytes_of_all -= bytes;
    bytes_ -= bytes;
    return false;
  }
  std::ranges::move(steps, std::back_inserter(steps_));
  return true;
}

void PreparedConstants::connect(std::span<const RecordedCall> calls, std::span<const CapturedSlot> slots) {
  std::unordered_set<const Buffer*> needed;
  for (const RecordedCall& c : calls)
    for (const uint32_t slot : c.slots) needed.insert(slots[slot].buffer.get());
  std::unordered_map<const Buffer*, int> writers;
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (Argument& a : steps_[i].arguments) {
      if (a.written) {
        writers[a.buffer.get()] = int(i);
      } else if (const auto w = writers.find(a.buffer.get()); w != writers.end()) {
        a.writer = w->second;
      }
      a.is_passing = (a.written || a.writer >= 0) && !needed.contains(a.buffer.get());
      if (!a.is_passing || !a.written) continue;
      bytes_of_all -= int64_t(a.buffer->nbytes());
      bytes_ -= int64_t(a.buffer->nbytes());
    }
  }
}

std::vector<uint32_t> PreparedConstants::sources() const {
  std::vector<uint32_t> out;
  for (const Step& s : steps_)
    for (const Argument& a : s.arguments)
      if (!a.written) out.push_back(a.slot);
  return out;
}

/// Those that read what was written since, or what others that are due write; and those that write what is passed on to them.
void PreparedConstants::find_due() {
  for (Step& s : steps_) s.is_due = s.is_outdated();
  for (bool changed = true; changed;) {
    changed = false;
    for (Step& s : steps_) {
      for (const Argument& a : s.arguments) {
        if (a.writer < 0) continue;
        bool& writer = steps_[size_t(a.writer)].is_due;
        if (writer == s.is_due || (s.is_due && !a.is_passing)) continue;
        writer = s.is_due = changed = true;
      }
    }
  }
}

void PreparedConstants::refresh() {
  if (steps_.empty()) return;
  const std::lock_guard lock(mutex_);
  if (std::ranges::none_of(steps_, &Step::is_outdated)) return;
  find_due();
  for (Step& s : steps_)
    if (s.is_due) s.run();
  for (Step& s : steps_)
    for (const Argument& a : s.arguments)
      if (a.written && a.is_passing) a.buffer->deallocate();
}

}  // namespace tinygrad::engine
