#include "engine/command_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/interrupt.h"
#include "device/rank_device.h"
#include "engine/launch.h"
#include "search/searched.h"

namespace tinygrad::engine {

CommandList::CommandList(std::span<const RecordedCall> calls, RankPlan plan, std::vector<ListSlot> slots, ListVariables variables,
                         const Options& options, std::vector<uint32_t> looked_at)
    : plan_(std::move(plan)),
      slots_(std::move(slots)),
      variables_(std::move(variables)),
      looked_at_(std::move(looked_at)),
      uses_(slots_.size()) {
  std::vector<RankPart> parts;
  std::vector<KernelOn> kernels;
  for (const RecordedCall& c : calls) {
    parts.push_back(plan_.empty() ? RankPart::here : rank_part(c, slots_));
    if (parts.back() == RankPart::here) kernels.push_back({c.body, slots_[c.slots[0]].device});
  }
  auto programs = search::searched_programs(kernels, options);
  auto program = programs.begin();
  for (size_t i = 0; i < calls.size(); ++i) {
    const RecordedCall& c = calls[i];
    if (parts[i] == RankPart::here) {
      note_uses(c, program->get());
      add_step(c, std::move(*program++));
      continue;
    }
    const std::vector<bool> written = written_arguments(c);
    for (size_t k = 0; k < written.size(); ++k) note_use(c.slots[k], written[k]);
    if (parts[i] == RankPart::elsewhere) continue;
    add_step(c, nullptr);
    steps_.back().is_exchange = true;
  }
  place_looks();
  find_segments();
  find_exchanges();
  note_async_writes();
}

void CommandList::note_use(uint32_t slot, bool written) { (written ? uses_[slot].written : uses_[slot].read) = true; }

void CommandList::note_uses(const RecordedCall& call, const Program* program) {
  if (!program) {
    note_use(call.slots[0], true);
    note_use(call.slots[1], false);
    return;
  }
  for (const KernelParam& p : program->info.params) {
    Use& use = uses_[call.slots[size_t(p.slot)]];
    use.read = use.read || p.read;
    use.written = use.written || p.written;
    use.alignment = std::max({use.alignment, p.align, uint16_t(itemsize(p.dtype))});
  }
}

/// A variable of a launch: its value, or where each run puts one.
void CommandList::add_variable(Symbol name, const RecordedCall& call, Step& step) {
  if (const auto own = value_bound_to(name, call.bound)) {
    variable_values_.push_back(*own);
    return;
  }
  uint32_t number = 0;
  for (const auto& [known, value] : variables_) {
    if (known == name) {
      if (!value) variable_patches_.push_back({uint32_t(variable_values_.size()), number, uint32_t(steps_.size() - 1)});
      step.dims_known = step.dims_known && value;
      variable_values_.push_back(value.value_or(0));
      return;
    }
    if (!value) ++number;
  }
  throw ValueError(fmt::format("variable {} has no value; use bind()", name.str()));
}

/// A kernel gets memory of its own device, or of one whose memory it reaches.
void CommandList::check_reaches(const Step& step, uint32_t slot) const {
  const Device &mine = *step.device, &other = *slots_[slot].device;
  if (&mine == &other || (mine.target().shares_memory && other.target().shares_memory && !is_of_other_rank(other))) return;
  throw InternalError(fmt::format("kernel {} on {} has an argument on {}", step.program->info.name, mine.name().str(), other.name().str()));
}

void CommandList::add_step(const RecordedCall& call, std::shared_ptr<const Program> program) {
  Step& step = steps_.emplace_back();
  step.part = call.part;
  if (!program) {
    step.to = call.slots[0];
    step.from = call.slots[1];
    step.range = schedule::range_of_copy(call.body);
    has_copies_ = true;
    return;
  }
  step.program = std::move(program);
  step.kernel = step.program->kernel.get();
  step.device = slots_[call.slots[0]].device;
  step.first_handle = uint32_t(handle_slots_.size());
  step.handle_count = uint32_t(call.slots.size());
  for (uint32_t slot : call.slots) {
    check_reaches(step, slot);
    if (slots_[slot].kind == SlotKind::call) handle_patches_.push_back({uint32_t(handle_slots_.size()), slot, uint32_t(steps_.size() - 1)});
    handle_slots_.push_back(slot);
  }
  const KernelInfo& info = step.program->info;
  step.first_variable = uint32_t(variable_values_.size());
  step.variable_count = uint32_t(info.variables.size());
  for (Symbol name : info.variables) add_variable(name, call, step);
  ++kernels_;
  if (!step.dims_known) return;
  const std::span<const int64_t> values(variable_values_.data() + step.first_variable, step.variable_count);
  step.dims = info.launch_dims(values);
  auto known = std::ranges::find(known_, step.device, &Known::device);
  if (known == known_.end()) known = known_.insert(known, {.device = step.device});
  ++known->kernels;
  known->ops += uint64_t(info.flops.evaluate(values));
  known->bytes += uint64_t(info.bytes.evaluate(values));
}

bool CommandList::writes(const Step& s, FunctionRef<bool(uint32_t slot)> which) const {
  if (!s.program) return which(s.to);
  return std::ranges::any_of(s.program->info.params,
                             [&](const KernelParam& p) { return p.written && which(handle_slots_[s.first_handle + size_t(p.slot)]); });
}

size_t CommandList::first_write(FunctionRef<bool(uint32_t slot)> which) const {
  return size_t(std::ranges::find_if(steps_, [&](const Step& s) { return writes(s, which); }) - steps_.begin());
}

void CommandList::for_each_written(size_t steps, FunctionRef<void(uint32_t slot)> f) const {
  for (const Step& s : std::span(steps_).first(std::min(steps, steps_.size())))
    writes(s, [&](uint32_t slot) {
      f(slot);
      return false;
    });
}

/// As late as what the host looks at allows, so that it waits for a device once and not for each of them.
void CommandList::place_looks() {
  if (looked_at_.empty()) return;
  const auto outlasts = [&](uint32_t slot) { return slots_[slot].kind == SlotKind::fixed || slots_[slot].kind == SlotKind::call; };
  uint32_t first = 0;
  const auto look_before = [&](size_t step) {
    const auto end = uint32_t(look_order_.size());
    if (end > first) looks_.push_back({uint32_t(step), std::exchange(first, end), end});
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (writes(steps_[i], outlasts)) look_before(i);
    for (uint32_t number = 0; number < looked_at_.size(); ++number)
      if (writes(steps_[i], [&](uint32_t slot) { return slot == looked_at_[number]; })) look_order_.push_back(number);
  }
  look_before(steps_.size());
}

bool CommandList::is_looked_before(size_t step) const {
  return std::ranges::any_of(looks_, [&](const Look& l) { return l.step == step; });
}

void CommandList::find_segments() {
  segments_ = HostSegment::find(steps_, handle_slots_, slots_, [&](size_t step) { return is_looked_before(step); });
}

/// Those that follow one another.
void CommandList::find_exchanges() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i].is_exchange) continue;
    Batch* last = exchanges_.empty() ? nullptr : &exchanges_.back();
    if (last && last->first + last->count == i && !is_looked_before(i))
      ++last->count;
    else
      exchanges_.push_back({uint32_t(i), 1});
  }
}

/// Runs of kernels on one device that has graphs: the first graph has at most `first_size` launches, so that the device can begin while the
/// host goes on, and each later one twice as many; 0 is no limit. One launch alone is no graph.
void CommandList::make_batches(int first_size) {
  size_t most = first_size ? size_t(first_size) : steps_.size();
  for (size_t i = 0; i < steps_.size();) {
    Device* device = steps_[i].device;
    size_t end = i + 1;
    while (device && device->has_graphs() && end < steps_.size() && end - i < most && steps_[end].device == device &&
           !is_looked_before(end))
      ++end;
    if (end - i > 1) {
      batches_.push_back({uint32_t(i), uint32_t(end - i)});
      most *= 2;
    }
    i = end;
  }
}

void CommandList::note_async_writes() {
  std::vector<bool> is_in_segment(steps_.size());  // whose steps have run when a run returns
  for (const HostSegment& segment : segments_)
    for (size_t i = segment.first(); i < segment.end(); ++i) is_in_segment[i] = true;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    if (!s.device || !s.device->is_async() || is_in_segment[i]) continue;
    for (const KernelParam& p : s.program->info.params) {
      const uint32_t slot = handle_slots_[s.first_handle + size_t(p.slot)];
      if (p.written && slots_[slot].kind != SlotKind::temporary) async_writes_.emplace_back(s.device, slot);
    }
  }
}

/// Those that are the same in each run, then those of a run.
void CommandList::note_values(Binding& binding, std::span<const int64_t> variables) const {
  if (plan_.empty()) return;
  binding.values.clear();
  for (const auto& [name, value] : variables_)
    if (value) binding.values.push_back(*value);
  binding.values.insert(binding.values.end(), variables.begin(), variables.end());
}

CommandList::Binding CommandList::bind(std::vector<Buffer*> buffers, std::span<const int64_t> variables) const {
  Binding b{.buffers = std::move(buffers), .variables = variable_values_};
  b.handles.reserve(handle_slots_.size());
  for (uint32_t slot : handle_slots_) b.handles.push_back(b.buffers[slot] ? b.buffers[slot]->handle() : nullptr);
  if (!variables.empty())
    for (const Patch& p : variable_patches_) b.variables[p.index] = variables[p.source];
  note_values(b, variables);
  b.graphs.resize(batches_.size());
  if (!batches_.empty()) b.changed.assign(steps_.size(), 1);
  b.segments.resize(segments_.size());
  return b;
}

void CommandList::bring(Binding& binding, std::span<Buffer* const> buffers, std::span<const int64_t> variables) const {
  binding.step = steps_.size();
  binding.begun = 0;
  note_values(binding, variables);
  const bool graphs = !batches_.empty();
  bool moved = has_copies_;  // whose memory is not among the handles
  for (const Patch& p : handle_patches_) {
    void* handle = buffers[p.source]->handle();
    if (binding.handles[p.index] == handle) continue;
    if (graphs) binding.changed[p.step] = 1;
    binding.handles[p.index] = handle;
    moved = true;
  }
  if (moved)
    for (HostSegment::Bound& s : binding.segments) s.moved = true;
  for (const Patch& p : variable_patches_) {
    if (graphs && binding.variables[p.index] != variables[p.source]) binding.changed[p.step] = 1;
    binding.variables[p.index] = variables[p.source];
  }
  if (!has_copies_ && async_writes_.empty() && segments_.empty()) return;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].kind == SlotKind::call) binding.buffers[i] = buffers[i];
}

CommandList::Failed CommandList::failed(const Binding& binding) const {
  if (binding.step >= steps_.size()) return {};
  const Step& s = steps_[binding.step];
  return {s.program ? s.program->info.name : std::string(), s.part};
}

/// It can be cancelled until it writes what lasts.
void CommandList::run(Binding& binding, size_t lasting_from, FunctionRef<void(size_t number)> look) const {
  std::optional<Uninterruptible> to_the_end;
  const InterruptCheck check;
  const auto begin = [&](size_t end) {
    if (to_the_end) return;
    check();
    if (end > lasting_from || !plan_.empty()) to_the_end.emplace();  // other ranks go on, and wait for this one
  };
  begin(0);
  std::vector<std::unique_ptr<LaunchScope>> scopes;
  const Device* last = nullptr;
  for (const auto& [device, slot] : async_writes_) {
    if (device != std::exchange(last, device)) scopes.push_back(std::make_unique<LaunchScope>(*device));
    binding.buffers[slot]->written_by(scopes.back()->number());
  }
  if (!plan_.empty()) plan_.compare(current_options());
  const bool timed = times_launches();
  auto batch = batches_.begin();
  auto messages = exchanges_.begin();
  auto segment = segments_.begin();
  auto next = looks_.begin();
  const auto look_before = [&](size_t step) {
    if (next == looks_.end() || next->step != step) return;
    for (uint32_t k = next->first; k < next->end; ++k) look(look_order_[k]);
    ++next;
  };
  for (size_t i = 0; i < steps_.size();) {
    look_before(i);
    binding.step = i;
    if (!timed && batch != batches_.end() && batch->first == i) {
      begin(i + batch->count);
      binding.begun = i + batch->count;
      run_batch(binding, *batch, binding.graphs[size_t(batch - batches_.begin())]);
      i += batch->count;
      ++batch;
    } else if (messages != exchanges_.end() && messages->first == i) {
      begin(i + messages->count);
      binding.begun = i + messages->count;
      run_exchange(binding, *messages);
      i += messages->count;
      ++messages;
    } else if (segment != segments_.end() && i >= segment->first()) {
      // What may be cancelled is run first.
      const size_t end = i < lasting_from ? std::min(segment->end(), lasting_from) : segment->end();
      begin(end);
      binding.begun = end;
      run_segment(binding, *segment, binding.segments[size_t(segment - segments_.begin())], i, end);
      i = end;
      if (end == segment->end()) ++segment;
    } else {
      begin(i + 1);
      binding.begun = i + 1;
      run_step(steps_[i++], binding, timed);
    }
  }
  look_before(steps_.size());
  if (timed) return;
  for (const Known& k : known_) count_launches(*k.device, k.kernels, k.ops, k.bytes);
}

namespace {

BufferPtr part_of(Buffer& memory, int64_t begin, int64_t count) {
  const bool is_all = begin == 0 && count == memory.size();
  return is_all ? BufferPtr(&memory) : memory.view(begin * int64_t(itemsize(memory.dtype())), count, memory.dtype());
}

}  // namespace

void CommandList::copy(const Step& s, const Binding& binding) {
  const BufferPtr to = part_of(*binding.buffers[s.to], s.range.to, s.range.count);
  to->copy_from(*part_of(*binding.buffers[s.from], s.range.from, s.range.count));
}

void CommandList::run_step(const Step& s, Binding& binding, bool timed) const {
  if (!s.kernel) return copy(s, binding);
  const auto handles = handles_of(s, binding);
  const auto values = variables_of(s, binding);
  if (timed || !s.dims_known)
    launch(*s.program, *s.device, handles, values);
  else
    s.kernel->launch(handles, values, s.dims);
}

void CommandList::run_exchange(Binding& binding, const Batch& batch) const {
  std::vector<RankCopy> copies;
  for (const Step& s : std::span(steps_).subspan(batch.first, batch.count))
    copies.push_back({binding.buffers[s.to], binding.buffers[s.from], s.range});
  exchange(copies, plan_.kind(binding.values), current_options());
}

void CommandList::run_segment(Binding& binding, const HostSegment& segment, HostSegment::Bound& bound, size_t first, size_t end) const {
  const HostSegment::Arguments arguments{binding.buffers, binding.handles, binding.variables};
  if (times_launches())
    return segment.run_in_order(arguments, first, end, binding.step, [&](const Step& s) { run_step(s, binding, true); });
  segment.run(bound, arguments, first, end, binding.step);
  for (const Step& s : std::span(steps_).subspan(first, end - first))
    if (s.kernel && !s.dims_known) count_launch(*s.device, s.program->info, variables_of(s, binding));
}

std::span<void* const> CommandList::handles_of(const Step& s, const Binding& binding) {
  return {binding.handles.data() + s.first_handle, s.handle_count};
}

std::span<const int64_t> CommandList::variables_of(const Step& s, const Binding& binding) {
  return {binding.variables.data() + s.first_variable, s.variable_count};
}

void CommandList::run_batch(Binding& binding, const Batch& batch, BoundGraph& bound) const {
  const auto steps = std::span(steps_).subspan(batch.first, batch.count);
  const auto changed = std::span(binding.changed).subspan(batch.first, batch.count);
  if (bound.launches.empty()) {
    make_graph(binding, steps, bound);
    std::ranges::fill(changed, uint8_t{0});  // it was made with what there is now
  }
  if (!bound.graph) {
    for (const Step& s : steps) run_step(s, binding, false);
    return;
  }
  std::vector<uint32_t> numbers;
  for (uint32_t i = 0; i < batch.count; ++i) {
    const Step& s = steps[i];
    if (changed[i]) numbers.push_back(i);
    if (s.dims_known) continue;
    const auto values = variables_of(s, binding);
    if (changed[i]) bound.launches[i].dims = s.program->info.launch_dims(values);
    count_launch(*s.device, s.program->info, values);
  }
  bound.graph->launch(bound.launches, numbers);
  std::ranges::fill(changed, uint8_t{0});
}

void CommandList::make_graph(Binding& binding, std::span<const Step> steps, BoundGraph& bound) {
  std::vector<GraphLaunch> launches;
  for (const Step& s : steps) {
    const auto values = variables_of(s, binding);
    launches.push_back({.kernel = s.kernel,
                        .info = &s.program->info,
                        .buffers = handles_of(s, binding),
                        .variables = values,
                        .dims = s.program->info.launch_dims(values)});
  }
  bound.graph = steps[0].device->make_graph(launches);
  bound.launches = std::move(launches);
}

}  // namespace tinygrad::engine
