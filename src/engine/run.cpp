#include "engine/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/per_process.h"
#include "base/recently_used.h"
#include "base/thread_pool.h"
#include "device/buffer.h"
#include "device/device.h"
#include "engine/command_list.h"
#include "engine/host_memory.h"
#include "engine/recorded_call.h"
#include "program/program.h"
#include "search/searched.h"
#include "uop/node_map.h"

namespace tinygrad::engine {

namespace {

int64_t value_of(Symbol variable, const UOp& call, const schedule::Schedule& s) {
  if (const auto own = value_bound_to(variable, call.src())) return *own;
  for (const auto& [var, value] : s.variables)
    if (var.arg_as<VarArg>().name == variable) return value;
  throw ValueError(fmt::format("realize: variable {} has no value; use bind()", variable.str()));
}

/// The calls of a plan, whose slots are the inputs, then the temporaries.
std::vector<RecordedCall> calls_of(const schedule::Plan& plan) {
  std::vector<RecordedCall> calls;
  for (const UOp& call : plan.linear.src()) {
    RecordedCall& c = calls.emplace_back(RecordedCall{.body = call.src(0), .slots = {}});
    for (const UOp& a : call.src().subspan(1)) {
      if (a.is(Op::PARAM)) c.slots.push_back(uint32_t(a.arg_as<ParamArg>().slot));
      if (a.is(Op::BIND)) c.bound.push_back(a);
    }
  }
  return calls;
}

/// Throws ValueError for a variable of a call, even one that its kernel has no use for.
void check_variables(const schedule::Schedule& s) {
  for (const UOp& call : s.plan->linear.src())
    for (const UOp& a : call.src().subspan(1))
      if (a.is(Op::VAR)) value_of(a.arg_as<VarArg>().name, call, s);
}

/// A plan's list, for the devices that its memory is on.
struct PlannedList {
  std::vector<Device*> arenas;
  CommandList list;

  PlannedList(const schedule::Schedule& s, std::span<Device* const> inputs, const Options& options)
      : PlannedList(s, calls_of(*s.plan), inputs, devices_of_arenas(*s.plan), options) {}

 private:
  PlannedList(const schedule::Schedule& s, const std::vector<RecordedCall>& calls, std::span<Device* const> inputs, std::vector<Device*> a,
              const Options& options)
      : arenas(std::move(a)),
        list(calls, RankPlan::of(calls, slots_of(*s.plan, inputs, arenas)), slots_of(*s.plan, inputs, arenas), variables_of(s), options) {}

  static std::vector<Device*> devices_of_arenas(const schedule::Plan& plan) {
    std::vector<Device*> out;
    for (const schedule::Arena& a : plan.arenas) out.push_back(&Device::get(a.device.str()));
    return out;
  }
  static std::vector<ListSlot> slots_of(const schedule::Plan& plan, std::span<Device* const> inputs, std::span<Device* const> arenas) {
    std::vector<ListSlot> out;
    for (Device* d : inputs) out.push_back({d, SlotKind::call});
    for (const schedule::Temporary& t : plan.temporaries) out.push_back({arenas[t.arena], SlotKind::temporary});
    return out;
  }
  static ListVariables variables_of(const schedule::Schedule& s) {
    ListVariables out;
    for (const auto& [var, value] : s.variables) out.emplace_back(var.arg_as<VarArg>().name, std::nullopt);
    return out;
  }
};

/// The lists of the plans that ran last, so that a loop of realizes looks no kernel up. Each keeps its programs.
class PlannedLists {
 public:
  static PlannedLists& instance() { return detail::PerProcess<PlannedLists>::get(); }

  std::shared_ptr<const PlannedList> get(const schedule::Schedule& s, const Options& options) {
    Key key{s.plan, options.code_key(), {}};
    for (const UOp& b : s.inputs) key.inputs.push_back(&buffer_of(b).device());
    const bool keeps = s.plan->linear.src_count() <= most_calls && options.beam == 0;  // what a search finds may get better
    if (keeps) {
      const std::lock_guard lock(mutex_);
      if (const auto* known = lists_.find(key)) return *known;
    }
    check_variables(s);
    auto made = std::make_shared<const PlannedList>(s, key.inputs, options);
    if (!keeps) return made;
    Lists::Dropped dropped;  // kernels may wait for their devices when they go
    const std::lock_guard lock(mutex_);
    dropped = lists_.add(key, made);
    return made;
  }

 private:
  struct Key {
    std::shared_ptr<const schedule::Plan> plan;
    ContentKey code;
    std::vector<Device*> inputs;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const { return hash_combine(std::hash<const void*>()(k.plan.get()), k.code.lo); }
  };
  static constexpr size_t most_lists = 64, most_calls = 64;
  using Lists = RecentlyUsed<Key, std::shared_ptr<const PlannedList>, Hash>;
  std::mutex mutex_;
  Lists lists_{most_lists};
};

/// The memory behind the slots of a plan.
struct Memory {
  std::vector<BufferPtr> arenas, temporaries;
  std::vector<Buffer*> slots;

  Memory(const schedule::Schedule& s, std::span<Device* const> devices) {
    for (const UOp& b : s.inputs) slots.push_back(&buffer_of(b));
    for (size_t i = 0; i < devices.size(); ++i)
      arenas.push_back(Buffer::make(*devices[i], std::max<int64_t>(s.plan->arenas[i].bytes, 1), DType::uint8));
    for (const auto& t : s.plan->temporaries) {
      temporaries.push_back(arenas[t.arena]->view(t.offset, t.size, t.dtype));
      slots.push_back(temporaries.back().get());
    }
  }
};

/// The device that a call runs on, known without memory: that of its first buffer.
Device& device_of_call(const UOp& call, const schedule::Schedule& s) {
  const auto slot = size_t(call.src(1).arg_as<ParamArg>().slot);
  if (slot < s.inputs.size()) return Device::get(s.inputs[slot].arg_as<BufferArg>().device.str());
  return Device::get(s.plan->arenas[s.plan->temporaries[slot - s.inputs.size()].arena].device.str());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

const Target& target_of(Symbol device) { return Device::get(device.str()).target(); }

namespace {

/// It can be cancelled until it changes memory that was there before.
void run_list(const schedule::Schedule& s, const Options& options) {
  const std::shared_ptr<const PlannedList> planned = PlannedLists::instance().get(s, options);
  const CommandList& list = planned->list;
  Memory memory(s, planned->arenas);
  const size_t lasting_from = list.first_write([&](uint32_t slot) { return memory.slots[slot]->is_allocated(); });
  const auto uses = list.uses();
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].written) memory.slots[i]->ensure_allocated();
    if (uses[i].read) memory.slots[i]->check_readable();
  }
  SmallVector<int64_t, 4> values;
  for (const auto& [var, value] : s.variables) values.push_back(value);
  CommandList::Binding binding = list.bind(memory.slots, values);
  try {
    list.run(binding, lasting_from, [](size_t) {});
  } catch (const Cancelled&) {
    throw;
  } catch (const std::exception& e) {
    const std::string reason = joined("a kernel that writes it, or uses what it wrote, failed: ", e.what());
    list.for_each_written(binding.begun, [&](uint32_t slot) { memory.slots[slot]->poison(reason); });
    throw;
  }
  for (size_t i = 0; i < uses.size(); ++i)
    if (uses[i].written) memory.slots[i]->note_write();
}

}  // namespace

void run_schedule(const schedule::Schedule& s, const Options& options) {
  with_host_memory([&] { run_list(s, options); });
}

void compile_schedule(const schedule::Schedule& s, const Options& options) {
  std::vector<KernelOn> kernels;
  for (const UOp& call : s.plan->linear.src())
    if (call.src(0).is(Op::SINK))
      kernels.push_back({search::known_best(call.src(0), device_of_call(call, s), options), &device_of_call(call, s)});
  get_programs(kernels, options);
}

RenderReport render_schedule(const schedule::Schedule& s, const Options& options, bool opts) {
  RenderReport report;
  NodeMap<size_t> numbers;
  std::vector<std::pair<UOp, Device*>> kernels;
  std::vector<std::pair<size_t, const UOp*>> launches;  // the kernel of each, and its call
  for (const UOp& call : s.plan->linear.src()) {
    const UOp& body = call.src(0);
    if (!body.is(Op::SINK)) continue;
    if (numbers.insert(body, kernels.size()).second) kernels.emplace_back(body, &device_of_call(call, s));
    launches.emplace_back(numbers[body], &call);
  }
  report.kernels = launches.size();
  std::vector<RenderedProgram>& programs = report.programs;
  programs.resize(kernels.size());
  if (opts) report.opts.resize(kernels.size());
  auto start = std::chrono::steady_clock::now();
  task_pool().parallel_for(kernels.size(), [&](size_t i) {
    std::vector<codegen::Step> steps;
    const auto& [kernel, device] = kernels[i];
    programs[i] = lower_program(search::known_best(kernel, *device, options), device->target(), options, opts ? &steps : nullptr);
    if (opts) report.opts[i] = opts_of(steps);
  });
  report.lower_s = seconds_since(start);
  for (const auto& [i, call] : launches) {
    SmallVector<int64_t, 4> values;
    for (Symbol v : programs[i].info.variables) values.push_back(value_of(v, *call, s));
    report.bytes += programs[i].info.bytes.evaluate(values);
  }
  start = std::chrono::steady_clock::now();
  task_pool().parallel_for(kernels.size(), [&](size_t i) { render_source(programs[i], *kernels[i].second); });
  report.render_s = seconds_since(start);
  return report;
}

}  // namespace tinygrad::engine
