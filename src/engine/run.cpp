#include "engine/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "device/buffer.h"
#include "engine/host_memory.h"
#include "engine/launch.h"
#include "engine/recorded_call.h"
#include "program/program.h"
#include "runtime/backends.h"
#include "search/searched.h"
#include "uop/node_map.h"

namespace tinygrad::engine {

namespace {

/// One call with everything it needs.
struct Job {
  std::shared_ptr<const Program> program;  // null: a copy
  SmallVector<Buffer*, 8> buffers;
  SmallVector<int64_t, 4> variables;  // those that the program has: simplification may have removed some of the call's

  SmallVector<Buffer*, 8> written() const { return used_as(&KernelParam::written, 0); }
  SmallVector<Buffer*, 8> read() const { return used_as(&KernelParam::read, 1); }

 private:
  SmallVector<Buffer*, 8> used_as(bool KernelParam::* use, size_t copy_slot) const {
    if (!program) return {buffers[copy_slot]};
    SmallVector<Buffer*, 8> out;
    for (const KernelParam& p : program->info.params)
      if (p.*use) out.push_back(buffers[size_t(p.slot)]);
    return out;
  }
};

/// The memory behind the slots of a plan: the inputs, then the temporaries.
struct Memory {
  std::vector<BufferPtr> arenas, temporaries;
  std::vector<Buffer*> slots;

  Memory(const schedule::Schedule& s) {
    for (const UOp& b : s.inputs) slots.push_back(&buffer_of(b));
    for (const auto& a : s.plan->arenas)
      arenas.push_back(Buffer::make(runtime::open_device(a.device.str()), std::max<int64_t>(a.bytes, 1), DType::uint8));
    for (const auto& t : s.plan->temporaries) {
      temporaries.push_back(arenas[t.arena]->view(t.offset, t.size, t.dtype));
      slots.push_back(temporaries.back().get());
    }
  }
};

int64_t value_of(Symbol variable, const UOp& call, const schedule::Schedule& s) {
  if (const auto own = value_bound_to(variable, call.src())) return *own;
  for (const auto& [var, value] : s.variables)
    if (var.arg_as<VarArg>().name == variable) return value;
  throw ValueError(fmt::format("realize: variable {} has no value; use bind()", variable.str()));
}

Job bind(const UOp& call, const Memory& memory, const schedule::Schedule& s) {
  Job job;
  for (const UOp& a : call.src().subspan(1)) {
    if (a.is(Op::PARAM))
      job.buffers.push_back(memory.slots[size_t(a.arg_as<ParamArg>().slot)]);
    else if (a.is(Op::VAR))
      value_of(a.arg_as<VarArg>().name, call, s);  // that it has one
  }
  return job;
}

std::vector<Job> prepare_jobs(const schedule::Schedule& s, const Memory& memory, const Options& options) {
  const auto calls = s.plan->linear.src();
  std::vector<Job> jobs;
  for (const UOp& c : calls) jobs.push_back(bind(c, memory, s));
  std::vector<KernelOn> kernels;
  for (size_t i = 0; i < jobs.size(); ++i) kernels.push_back({calls[i].src(0), &jobs[i].buffers[0]->device()});
  const auto programs = search::searched_programs(kernels, options);
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!programs[i]) continue;
    jobs[i].program = programs[i];
    for (Symbol v : programs[i]->info.variables) jobs[i].variables.push_back(value_of(v, calls[i], s));
  }
  return jobs;
}

void run_job(const Job& job) {
  if (!job.program) {
    job.buffers[0]->copy_from(*job.buffers[1]);
    return;
  }
  SmallVector<void*, 8> handles;
  for (Buffer* b : job.buffers) handles.push_back(b->handle());
  Device& device = job.buffers[0]->device();
  if (!device.is_async()) return launch(*job.program, device, handles, job.variables);
  const LaunchScope scope(device);
  launch(*job.program, device, handles, job.variables);
  for (Buffer* b : job.written()) b->written_by(scope.number());
}

/// The device that a call runs on, known without memory: that of its first buffer.
Device& device_of_call(const UOp& call, const schedule::Schedule& s) {
  const auto slot = size_t(call.src(1).arg_as<ParamArg>().slot);
  if (slot < s.inputs.size()) return runtime::open_device(s.inputs[slot].arg_as<BufferArg>().device.str());
  return runtime::open_device(s.plan->arenas[s.plan->temporaries[slot - s.inputs.size()].arena].device.str());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

const Target& target_of(Symbol device) { return runtime::open_device(device.str()).target(); }

namespace {

/// Whether it writes to memory that something is in already, which a part of a run would leave changed.
bool changes_memory(const Job& job) {
  return std::ranges::any_of(job.written(), [](const Buffer* b) { return b->is_allocated(); });
}

void poison_written(std::span<const Job> begun, const char* why) {
  const std::string reason = joined("a kernel that writes it, or uses what it wrote, failed: ", why);
  for (const Job& job : begun)
    for (Buffer* b : job.written()) b->poison(reason);
}

/// It can be cancelled until it changes memory that was there before.
void run_jobs(const schedule::Schedule& s, const Options& options) {
  Memory memory(s);
  const std::vector<Job> jobs = prepare_jobs(s, memory, options);
  std::vector<char> changes;
  for (const Job& job : jobs) changes.push_back(changes_memory(job));
  for (const Job& job : jobs) {
    for (Buffer* b : job.written()) b->ensure_allocated();
    for (Buffer* b : job.read()) b->check_readable();
  }
  std::optional<Uninterruptible> to_the_end;
  for (size_t i = 0; i < jobs.size(); ++i) {
    check_interrupt();
    if (changes[i] && !to_the_end) to_the_end.emplace();
    try {
      run_job(jobs[i]);
      for (Buffer* b : jobs[i].written()) b->note_write();
    } catch (const Cancelled&) {
      throw;
    } catch (const std::exception& e) {
      poison_written(std::span(jobs).first(i + 1), e.what());
      throw;
    }
  }
}

}  // namespace

void run_schedule(const schedule::Schedule& s, const Options& options) {
  with_host_memory([&] { run_jobs(s, options); });
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
