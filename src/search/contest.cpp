#include "search/contest.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include <tinygrad/errors.h>

#include "base/cpu.h"
#include "program/program.h"
#include "search/exact_kernel.h"
#include "uop/graph.h"

namespace tinygrad::search {
namespace {

constexpr double copied_a_second = 1e9;  // bytes, at least
constexpr double long_s = 0.05;          // of a kernel: fewer repetitions tell as much

/// For the buffers of a kernel: what is filled lies in the program's memory and in the worker's, once more in float64.
uint64_t most_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (uint64_t kib = 0; std::sscanf(line.c_str(), "MemAvailable: %" SCNu64, &kib) == 1) return kib * 1024 / 8;
  return uint64_t{1} << 28;
}

}  // namespace

Contest::Contest(const UOp& sink, Device& device, const Options& options, std::string worker)
    : sink_(sink), device_(device), options_(options), worker_(std::move(worker)) {
  choose_variables();
}

void Contest::choose_variables() {
  for (const UOp& u : toposort(sink_)) {
    const auto* v = std::get_if<VarArg>(&u.arg());
    if (!v || !u.is(Op::VAR)) continue;
    largest_.emplace_back(v->name, v->max);
    representative_.emplace_back(v->name, v->min + (v->max - v->min + 1) / 2);
  }
}

WorkerSetup Contest::setup(const TrialMemory& memory) const {
  // What other kernels leave in a near cache is something else.
  const auto cold_bytes = uint64_t(std::clamp<int64_t>(2 * device_.target().l2_bytes, 1 << 20, 1 << 26));
  return memory.setup(uint32_t(cpu_thread_count(options_)), cold_bytes);
}

bool Contest::begin(const TrialKernel& heuristic, double too_short_s) {
  const std::vector<int64_t> most = values_of(heuristic.info, largest_);
  bytes_ = trial_bytes(heuristic.info, most);
  if (bytes_ > most_bytes()) return false;
  memory_ = std::make_unique<TrialMemory>(heuristic.info, most);
  trials_ = std::make_unique<Trials>(worker_, *memory_, setup(*memory_), representative_);
  const WorkerResult result = trials_->run(heuristic, {.enough_s = 0.1});
  if (!result.ran()) throw DeviceError("tg-worker: the heuristics' kernel did not run: " + result.error);
  baseline_ = median_seconds(result.seconds);
  if (baseline_ < too_short_s) return false;
  const std::unique_ptr<TrialMemory> exact = exact_results(heuristic.info);
  accuracy_ = std::make_unique<Accuracy>(*memory_, exact.get());
  return true;
}

/// Null where there is no float64 version of the kernel, or it does not work.
std::unique_ptr<TrialMemory> Contest::exact_results(const KernelInfo& info) const {
  const std::optional<UOp> exact = exact_kernel(sink_);
  if (!exact) return nullptr;
  try {
    RenderedProgram p = render_program(*exact, device_, options_);
    const TrialKernel kernel{.info = std::move(p.info), .object = device_.compile(p.source)};
    const std::vector<int64_t> most = values_of(kernel.info, largest_);
    if (trial_bytes(kernel.info, most) > 2 * most_bytes() || kernel.info.buffer_count() != info.buffer_count()) return nullptr;
    auto memory = std::make_unique<TrialMemory>(kernel.info, most, *memory_);
    Trials trials(worker_, *memory, setup(*memory), representative_);
    return trials.run(kernel, {.repetitions = 0}).ran() ? std::move(memory) : nullptr;
  } catch (const Cancelled&) {
    throw;
  } catch (const Error&) {
    return nullptr;
  }
}

/// The worker fills what is written before a run, and copies it behind it; what is only read it compares.
double Contest::limit_s() const { return 0.25 + 20 * baseline_ + 2 * double(bytes_) / copied_a_second; }

std::optional<Verdict> Contest::time(const TrialKernel& kernel, double hopeless_s, double time_left_s) {
  const double limit = std::min(limit_s(), std::max(0.1, time_left_s));
  const WorkerResult r = trials_->run(kernel, {.enough_s = std::min(0.05, 4 * baseline_), .hopeless_s = hopeless_s, .limit_s = limit});
  if (r.kind == WorkerResult::Kind::endless && limit < limit_s()) return std::nullopt;
  if (!r.ran()) return Verdict{.seconds = 0, .bad = r.error};
  return Verdict{.seconds = median_seconds(r.seconds), .bad = accuracy_->complaint(*memory_)};
}

std::optional<std::pair<double, double>> Contest::compare(const TrialKernel& heuristic, const TrialKernel& other) {
  const int rounds = baseline_ > long_s ? 3 : 5;
  const TrialLimits look{.repetitions = baseline_ > long_s ? 1u : 3u, .enough_s = 1, .limit_s = 1 + 4 * limit_s()};
  std::vector<double> seconds[2] = {{0}, {0}};  // median_seconds() leaves the first out
  for (int round = 0; round < rounds; ++round)
    for (const int i : {0, 1}) {
      const WorkerResult r = trials_->run(i ? other : heuristic, look);
      if (!i && !r.ran()) throw DeviceError("tg-worker: the heuristics' kernel did not run again: " + r.error);
      if (!r.ran() || (i && !accuracy_->complaint(*memory_).empty())) return std::nullopt;
      seconds[i].push_back(median_seconds(r.seconds));
    }
  return std::pair(median_seconds(seconds[0]), median_seconds(seconds[1]));
}

}  // namespace tinygrad::search
