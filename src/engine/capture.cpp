#include "engine/capture.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include <tinygrad/counters.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/interrupt.h"

#include "base/log.h"
#include "engine/host_memory.h"
#include "engine/launch.h"
#include "runtime/backends.h"
#include "schedule/memory_plan.h"
#include "search/searched.h"
#include "uop/build.h"

namespace tinygrad::engine {

Capture::Capture(std::vector<CapturedSlot> slots, std::span<const RecordedCall> calls,
                 std::vector<std::pair<Symbol, std::optional<int64_t>>> variables, const Options& options, std::vector<uint32_t> looked_at)
    : slots_(std::move(slots)), variables_(std::move(variables)), looked_at_(std::move(looked_at)) {
  linear_ = UOp(Op::LINEAR, DType::void_, numbered(calls).calls, LinearArg{0});
  std::vector<RecordedCall> made(calls.begin(), calls.end());
  prepared_.prepare(made, slots_, options);
  plan(made, !options.no_memory_planner);
  uses_.resize(slots_.size());
  for (uint32_t slot : prepared_.sources()) uses_[slot].read = true;
  std::vector<KernelOn> kernels;
  for (const RecordedCall& c : made) kernels.push_back({c.body, &runtime::open_device(slots_[c.slots[0]].device.str())});
  auto programs = search::searched_programs(kernels, options);
  for (size_t i = 0; i < made.size(); ++i) {
    note_uses(made[i], programs[i].get());
    add_step(made[i], std::move(programs[i]));
  }
  place_looks();
  if (options.jit != 2) make_batches(options.jit_batch_size);
  note_async_writes();
  note_made({});
}

Capture::~Capture() = default;

Capture::Numbered Capture::numbered(std::span<const RecordedCall> calls) const {
  Numbered out;
  std::vector<UOp> params(slots_.size());
  int32_t number = 0;
  for (const bool planned : {false, true}) {
    if (planned) out.first = number;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const CapturedSlot& s = slots_[i];
      if ((s.kind == SlotKind::temporary) != planned) continue;
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
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].kind == SlotKind::temporary) temporaries_.push_back(uint32_t(i));
  const Numbered n = numbered(calls);
  schedule::plan_memory(n.calls, n.temporaries, n.first, reuse, plan_);
}

void Capture::note_uses(const RecordedCall& call, const Program* program) {
  if (!program) {
    uses_[call.slots[0]].written = true;
    uses_[call.slots[1]].read = true;
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
void Capture::add_variable(Symbol name, const RecordedCall& call, Step& step) {
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
  throw JitError(fmt::format("jit: variable {} has no value; use bind()", name.str()));
}

void Capture::add_step(const RecordedCall& call, std::shared_ptr<const Program> program) {
  Step& step = steps_.emplace_back();
  step.part = call.part;
  if (!program) {
    step.to = call.slots[0];
    step.from = call.slots[1];
    has_copies_ = true;
    return;
  }
  step.program = std::move(program);
  step.kernel = step.program->kernel.get();
  step.device = &runtime::open_device(slots_[call.slots[0]].device.str());
  step.first_handle = uint32_t(handle_slots_.size());
  step.handle_count = uint32_t(call.slots.size());
  for (uint32_t slot : call.slots) {
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

bool Capture::writes(const Step& s, FunctionRef<bool(uint32_t slot)> which) const {
  if (!s.program) return which(s.to);
  return std::ranges::any_of(s.program->info.params,
                             [&](const KernelParam& p) { return p.written && which(handle_slots_[s.first_handle + size_t(p.slot)]); });
}

/// As late as what the host looks at allows, so that it waits for a device once and not for each of them.
void Capture::place_looks() {
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

/// Runs of kernels on one device that has graphs: the first graph has at most `first_size` launches, so that the device can begin while the
/// host goes on, and each later one twice as many; 0 is no limit. One launch alone is no graph.
void Capture::make_batches(int first_size) {
  size_t most = first_size ? size_t(first_size) : steps_.size();
  const auto is_looked_before = [&](size_t step) { return std::ranges::any_of(looks_, [&](const Look& l) { return l.step == step; }); };
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

void Capture::note_made(std::span<const size_t> made) {
  const auto lasts = [&](uint32_t slot) {
    const SlotKind kind = slots_[slot].kind;
    return kind == SlotKind::fixed || (kind == SlotKind::call && std::ranges::find(made, slot) == made.end());
  };
  lasting_from_ = size_t(std::ranges::find_if(steps_, [&](const Step& s) { return writes(s, lasts); }) - steps_.begin());
}

void Capture::note_async_writes() {
  for (const Step& s : steps_) {
    if (!s.device || !s.device->is_async()) continue;
    for (const KernelParam& p : s.program->info.params) {
      const uint32_t slot = handle_slots_[s.first_handle + size_t(p.slot)];
      if (p.written && slots_[slot].kind != SlotKind::temporary) async_writes_.emplace_back(s.device, slot);
    }
  }
}

BufferPtr Capture::make_buffer(Symbol device, int64_t size, DType dtype) const {
  BufferPtr b = Buffer::make(runtime::open_device(device.str()), size, dtype);
  b->ensure_allocated();
  return b;
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
  l->buffers.resize(slots_.size());
  for (const auto& a : plan_.arenas) l->owned.push_back(make_buffer(a.device, std::max<int64_t>(a.bytes, 1), DType::uint8));
  for (size_t t = 0; t < temporaries_.size(); ++t) {
    const auto& place = plan_.temporaries[t];
    l->owned.push_back(l->owned[place.arena]->view(place.offset, place.size, place.dtype));
    l->buffers[temporaries_[t]] = l->owned.back().get();
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    const CapturedSlot& s = slots_[i];
    if (s.kind == SlotKind::lease) l->buffers[i] = l->owned.emplace_back(make_buffer(s.device, s.size, s.dtype)).get();
    if (s.kind == SlotKind::fixed) l->buffers[i] = s.buffer.get();
  }
  for (uint32_t slot : handle_slots_) l->handles.push_back(l->buffers[slot] ? l->buffers[slot]->handle() : nullptr);
  l->variables = variable_values_;
  l->graphs.resize(batches_.size());
  if (!batches_.empty()) l->changed.assign(steps_.size(), 1);
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

Buffer& Capture::buffer(Lease& lease, size_t slot) { return *lease.buffers[slot]; }

void Capture::patch(Lease& lease, std::span<Buffer* const> buffers, std::span<const int64_t> variables) const {
  const bool graphs = !batches_.empty();
  for (const Patch& p : handle_patches_) {
    void* handle = buffers[p.source]->handle();
    if (graphs && lease.handles[p.index] != handle) lease.changed[p.step] = 1;
    lease.handles[p.index] = handle;
  }
  for (const Patch& p : variable_patches_) {
    if (graphs && lease.variables[p.index] != variables[p.source]) lease.changed[p.step] = 1;
    lease.variables[p.index] = variables[p.source];
  }
  if (!has_copies_ && async_writes_.empty()) return;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].kind == SlotKind::call) lease.buffers[i] = buffers[i];
}

void Capture::run(Lease& lease, std::span<Buffer* const> buffers, std::span<const int64_t> variables,
                  FunctionRef<void(size_t number)> look) {
  lease.step = steps_.size();
  with_host_memory([&] {
    patch(lease, buffers, variables);
    prepared_.refresh();
  });
  try {
    with_host_memory([&] {
      run_all(lease, look);
      note_writes(buffers);
    });
  } catch (const Cancelled&) {  // before anything that lasts was written
    throw;
  } catch (const IndexError&) {  // of a look: what was written before is whole
    note_writes(buffers);
    throw;
  } catch (const std::exception& e) {
    poison(buffers, e.what());
    throw;
  }
}

Capture::Failed Capture::failed(const Lease& lease) const {
  if (lease.step >= steps_.size()) return {};
  const Step& s = steps_[lease.step];
  return {s.program ? s.program->info.name : std::string(), s.part};
}

/// It can be cancelled until it writes what lasts.
void Capture::run_all(Lease& lease, FunctionRef<void(size_t number)> look) const {
  std::optional<Uninterruptible> to_the_end;
  const InterruptCheck check;
  const auto begin = [&](size_t end) {
    if (to_the_end) return;
    check();
    if (end > lasting_from_) to_the_end.emplace();
  };
  begin(0);
  std::vector<std::unique_ptr<LaunchScope>> scopes;
  const Device* last = nullptr;
  for (const auto& [device, slot] : async_writes_) {
    if (device != std::exchange(last, device)) scopes.push_back(std::make_unique<LaunchScope>(*device));
    lease.buffers[slot]->written_by(scopes.back()->number());
  }
  const bool timed = times_launches();
  auto batch = batches_.begin();
  auto next = looks_.begin();
  const auto look_before = [&](size_t step) {
    if (next == looks_.end() || next->step != step) return;
    for (uint32_t k = next->first; k < next->end; ++k) look(look_order_[k]);
    ++next;
  };
  for (size_t i = 0; i < steps_.size();) {
    look_before(i);
    lease.step = i;
    if (!timed && batch != batches_.end() && batch->first == i) {
      begin(i + batch->count);
      run_batch(lease, *batch, lease.graphs[size_t(batch - batches_.begin())]);
      i += batch->count;
      ++batch;
    } else {
      begin(i + 1);
      run_step(steps_[i++], lease, timed);
    }
  }
  look_before(steps_.size());
  if (timed) return;
  for (const Known& k : known_) count_launches(*k.device, k.kernels, k.ops, k.bytes);
}

void Capture::run_step(const Step& s, Lease& lease, bool timed) const {
  if (!s.kernel) return lease.buffers[s.to]->copy_from(*lease.buffers[s.from]);
  const auto handles = handles_of(s, lease);
  const auto values = variables_of(s, lease);
  if (timed || !s.dims_known)
    launch(*s.program, *s.device, handles, values);
  else
    s.kernel->launch(handles, values, s.dims);
}

std::span<void* const> Capture::handles_of(const Step& s, const Lease& lease) {
  return {lease.handles.data() + s.first_handle, s.handle_count};
}

std::span<const int64_t> Capture::variables_of(const Step& s, const Lease& lease) {
  return {lease.variables.data() + s.first_variable, s.variable_count};
}

void Capture::run_batch(Lease& lease, const Batch& batch, LeasedGraph& leased) const {
  const auto steps = std::span(steps_).subspan(batch.first, batch.count);
  const auto changed = std::span(lease.changed).subspan(batch.first, batch.count);
  if (leased.launches.empty()) {
    make_graph(lease, steps, leased);
    std::ranges::fill(changed, uint8_t{0});  // it was made with what there is now
  }
  if (!leased.graph) {
    for (const Step& s : steps) run_step(s, lease, false);
    return;
  }
  std::vector<uint32_t> numbers;
  for (uint32_t i = 0; i < batch.count; ++i) {
    const Step& s = steps[i];
    if (changed[i]) numbers.push_back(i);
    if (s.dims_known) continue;
    const auto values = variables_of(s, lease);
    if (changed[i]) leased.launches[i].dims = s.program->info.launch_dims(values);
    count_launch(*s.device, s.program->info, values);
  }
  leased.graph->launch(leased.launches, numbers);
  std::ranges::fill(changed, uint8_t{0});
}

void Capture::make_graph(Lease& lease, std::span<const Step> steps, LeasedGraph& leased) {
  std::vector<GraphLaunch> launches;
  for (const Step& s : steps) {
    const auto values = variables_of(s, lease);
    launches.push_back({.kernel = s.kernel,
                        .info = &s.program->info,
                        .buffers = handles_of(s, lease),
                        .variables = values,
                        .dims = s.program->info.launch_dims(values)});
  }
  leased.graph = steps[0].device->make_graph(launches);
  leased.launches = std::move(launches);
}

void Capture::note_writes(std::span<Buffer* const> buffers) const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!uses_[i].written) continue;
    if (slots_[i].kind == SlotKind::call) buffers[i]->note_write();
    if (slots_[i].kind == SlotKind::fixed) slots_[i].buffer->note_write();
  }
}

void Capture::poison(std::span<Buffer* const> buffers, const char* reason) {
  const std::string why = joined("a kernel of a jitted function that writes it, or uses what it wrote, failed: ", reason);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!uses_[i].written) continue;
    Buffer* b = slots_[i].kind == SlotKind::call ? buffers[i] : slots_[i].kind == SlotKind::fixed ? slots_[i].buffer.get() : nullptr;
    if (b) b->poison(why);
  }
}

}  // namespace tinygrad::engine
