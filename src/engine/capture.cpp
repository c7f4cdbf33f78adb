#include "engine/capture.h"

#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/counters.h>
#include <tinygrad/errors.h>

#include "base/log.h"
#include "engine/launch.h"
#include "runtime/backends.h"
#include "schedule/memory_plan.h"
#include "search/searched.h"
#include "uop/build.h"

namespace tinygrad::engine {

Capture::Capture(std::vector<CapturedSlot> slots, std::span<const RecordedCall> calls,
                 std::vector<std::pair<Symbol, std::optional<int64_t>>> variables, const Options& options)
    : slots_(std::move(slots)), variables_(std::move(variables)), uses_(slots_.size()) {
  plan(calls, !options.no_memory_planner);
  std::vector<KernelOn> kernels;
  for (const RecordedCall& c : calls) kernels.push_back({c.body, &runtime::open_device(slots_[c.slots[0]].device.str())});
  auto programs = search::searched_programs(kernels, options);
  for (size_t i = 0; i < calls.size(); ++i) {
    note_uses(calls[i], programs[i].get());
    add_step(calls[i], std::move(programs[i]));
  }
}

Capture::~Capture() = default;

void Capture::plan(std::span<const RecordedCall> calls, bool reuse) {
  std::vector<UOp> params(slots_.size()), temporaries;
  int32_t number = 0;
  const auto make = [&](size_t i) {
    const CapturedSlot& s = slots_[i];
    params[i] = param(s.dtype, s.size, {.slot = number++, .device = s.device});
  };
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].kind != SlotKind::temporary) make(i);
  const int32_t first = number;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].kind == SlotKind::temporary) {
      make(i);
      temporaries_.push_back(uint32_t(i));
      temporaries.push_back(params[i]);
    }
  std::vector<UOp> list;
  for (const RecordedCall& c : calls) {
    UOps sources{c.body};
    for (uint32_t s : c.slots) sources.push_back(params[s]);
    list.push_back(UOp(Op::CALL, DType::void_, sources));
  }
  plan_.input_count = size_t(first);
  plan_.linear = UOp(Op::LINEAR, DType::void_, list, LinearArg{0});
  schedule::plan_memory(list, temporaries, first, reuse, plan_);
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
void Capture::add_variable(Symbol name, Step& step) {
  uint32_t number = 0;
  for (const auto& [known, value] : variables_) {
    if (known == name) {
      if (!value) variable_patches_.push_back({uint32_t(variable_values_.size()), number});
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
  if (!program) {
    step.to = call.slots[0];
    step.from = call.slots[1];
    has_copies_ = true;
    return;
  }
  step.program = std::move(program);
  step.kernel = step.program->kernel.get();
  step.first_handle = uint32_t(handle_slots_.size());
  step.handle_count = uint32_t(call.slots.size());
  for (uint32_t slot : call.slots) {
    if (slots_[slot].kind == SlotKind::call) handle_patches_.push_back({uint32_t(handle_slots_.size()), slot});
    handle_slots_.push_back(slot);
  }
  const KernelInfo& info = step.program->info;
  step.first_variable = uint32_t(variable_values_.size());
  step.variable_count = uint32_t(info.variables.size());
  for (Symbol name : info.variables) add_variable(name, step);
  ++kernels_;
  if (!step.dims_known) return;
  const std::span<const int64_t> values(variable_values_.data() + step.first_variable, step.variable_count);
  step.dims = info.launch_dims(values);
  ++known_kernels_;
  ops_ += uint64_t(info.flops.evaluate(values));
  bytes_ += uint64_t(info.bytes.evaluate(values));
}

BufferPtr Capture::make_buffer(Symbol device, int64_t size, DType dtype) const {
  BufferPtr b = Buffer::make(runtime::open_device(device.str()), size, dtype);
  b->ensure_allocated();
  return b;
}

std::unique_ptr<Capture::Lease> Capture::lease() {
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
  return l;
}

void Capture::give_back(std::unique_ptr<Lease> lease) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(lease));
}

void Capture::free_leases() {
  std::vector<std::unique_ptr<Lease>> freed;
  const std::lock_guard lock(mutex_);
  freed.swap(free_);
}

Buffer& Capture::buffer(Lease& lease, size_t slot) { return *lease.buffers[slot]; }

void Capture::run(Lease& lease, std::span<Buffer* const> buffers, std::span<const int64_t> variables) {
  for (const Patch& p : handle_patches_) lease.handles[p.index] = buffers[p.source]->handle();
  for (const Patch& p : variable_patches_) lease.variables[p.index] = variables[p.source];
  if (has_copies_)
    for (size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].kind == SlotKind::call) lease.buffers[i] = buffers[i];
  try {
    run_steps(lease, log_enabled(2));
  } catch (const std::exception& e) {
    poison(buffers, e.what());
    throw;
  }
}

void Capture::run_steps(Lease& lease, bool log) const {
  for (const Step& s : steps_) {
    if (!s.kernel) {
      lease.buffers[s.to]->copy_from(*lease.buffers[s.from]);
      continue;
    }
    const std::span<void* const> handles(lease.handles.data() + s.first_handle, s.handle_count);
    const std::span<const int64_t> values(lease.variables.data() + s.first_variable, s.variable_count);
    if (log || !s.dims_known)
      launch(*s.program, slots_[handle_slots_[s.first_handle]].device, handles, values);
    else
      s.kernel->launch(handles, values, s.dims);
  }
  if (log) return;
  GlobalCounters::global_ops += ops_;
  GlobalCounters::global_mem += bytes_;
  GlobalCounters::kernel_count += known_kernels_;
}

void Capture::poison(std::span<Buffer* const> buffers, const char* reason) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!uses_[i].written) continue;
    Buffer* b = slots_[i].kind == SlotKind::call ? buffers[i] : slots_[i].kind == SlotKind::fixed ? slots_[i].buffer.get() : nullptr;
    if (b) b->poison(fmt::format("a kernel of a jitted function that writes it, or uses what it wrote, failed: {}", reason));
  }
}

}  // namespace tinygrad::engine
