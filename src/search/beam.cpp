#include "search/beam.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>
#include <tinygrad/progress.h>

#include "base/cpu.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "codegen/decomp/emulate_dtypes.h"
#include "codegen/opt/parse_opts.h"
#include "program/program.h"
#include "search/accuracy.h"
#include "search/candidates.h"
#include "search/exact_kernel.h"
#include "search/program_cost.h"
#include "search/search_record.h"
#include "search/trials.h"
#include "uop/graph.h"

namespace tinygrad::search {
namespace {

using Opts = std::vector<Opt>;
using Clock = std::chrono::steady_clock;

constexpr size_t most_generations = 8;
constexpr size_t first_candidates = 8, more_candidates = 4;  // a generation tries so many, and so many for each kernel of the beam
constexpr size_t most_instructions = 6000;                   // of a linear program: what compiling may cost
constexpr double worth_compiling = 2, worth_a_look = 8;      // times the cost of the cheapest; in the first generation
constexpr double worth_going_on = 0.99, worth_changing = 0.99;
constexpr double too_short = 3e-6;  // seconds of a kernel: there is nothing to win
constexpr uint64_t most_trial_bytes = uint64_t{6} << 30;

/// A way to optimize the kernel, and what is known of it.
struct Candidate {
  Winner how;
  TrialKernel kernel = {};
  std::string source = {};
  ContentKey code = {};
  double cost = 0;
  Verdict verdict = {};
};

UOp optimized(const UOp& sink, const Winner& how) {
  if (how.heuristic) return sink;
  KernelArg arg = sink.arg_as<KernelArg>();
  arg.opts = how.opts;
  arg.optimized = how.opts.empty();
  return sink.with_arg(arg);
}

bool faster(const Candidate& a, const Candidate& b) { return a.verdict.seconds < b.verdict.seconds; }

class Search {
 public:
  Search(const UOp& sink, Device& device, const Options& options, std::string worker, const SearchRecord& record, const BeamHooks& hooks,
         BeamStatistics& statistics)
      : sink_(sink),
        device_(device),
        options_(options),
        worker_(std::move(worker)),
        record_(record),
        hooks_(hooks),
        statistics_(statistics) {}

  Winner run() {
    Candidate first{.how = {}};
    if (!prepare(first)) return {};
    compile(first);
    if (!set_up(first)) return {};
    beam_.push_back(std::move(first));
    grow();
    Winner winner = decide();
    if (cut_off_) winner.budget_s = options_.beam_budget_s;
    statistics_.seconds = elapsed();
    return winner;
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool out_of_time() {
    check_interrupt();
    cut_off_ = cut_off_ || time_left() <= 0;
    return cut_off_;
  }
  double time_left() const { return options_.beam_budget_s > 0 ? options_.beam_budget_s - elapsed() : 1e9; }

  // The heuristics' kernel: its time, its results and how exact they are.

  bool set_up(Candidate& first) {
    for (const UOp& u : toposort(sink_))
      if (const auto* v = std::get_if<VarArg>(&u.arg()); v && u.is(Op::VAR)) {
        largest_.emplace_back(v->name, v->max);
        representative_.emplace_back(v->name, v->min + (v->max - v->min + 1) / 2);
      }
    const std::vector<int64_t> most = values_of(first.kernel.info, largest_);
    if (trial_bytes(first.kernel.info, most) > most_trial_bytes) return false;
    memory_ = std::make_unique<TrialMemory>(first.kernel.info, most);
    trials_ = std::make_unique<Trials>(worker_, *memory_, setup(*memory_), representative_);
    const WorkerResult result = trials_->run(first.kernel, {.enough_s = 0.1});
    if (!result.ran()) return false;
    first.verdict.seconds = baseline_ = median_seconds(result.seconds);
    if (baseline_ < too_short) return false;
    const std::unique_ptr<TrialMemory> exact = exact_results(first.kernel.info);
    accuracy_ = std::make_unique<Accuracy>(*memory_, exact.get());
    return true;
  }

  WorkerSetup setup(const TrialMemory& memory) const {
    const uint64_t other = uint64_t(std::clamp<int64_t>(2 * device_.target().l2_bytes, 1 << 20, 1 << 26));
    return memory.setup(uint32_t(cpu_thread_count(options_)), other);
  }

  static std::vector<int64_t> values_of(const KernelInfo& info, const std::vector<std::pair<Symbol, int64_t>>& values) {
    std::vector<int64_t> out;
    for (Symbol name : info.variables)
      for (const auto& [known, value] : values)
        if (known == name) out.push_back(value);
    return out;
  }

  /// Null where there is no float64 version of the kernel, or it does not work.
  std::unique_ptr<TrialMemory> exact_results(const KernelInfo& info) const {
    const std::optional<UOp> exact = exact_kernel(sink_);
    if (!exact) return nullptr;
    try {
      RenderedProgram p = render_program(*exact, device_, options_);
      const TrialKernel kernel{.info = std::move(p.info), .object = device_.compile(p.source)};
      if (trial_bytes(kernel.info, values_of(kernel.info, largest_)) > 2 * most_trial_bytes ||
          kernel.info.buffer_count() != info.buffer_count())
        return nullptr;
      auto memory = std::make_unique<TrialMemory>(kernel.info, values_of(kernel.info, largest_), *memory_);
      Trials trials(worker_, *memory, setup(*memory), representative_);
      return trials.run(kernel, {.repetitions = 0}).ran() ? std::move(memory) : nullptr;
    } catch (const Error&) {
      return nullptr;
    }
  }

  // Candidates, on their way from opts to a time.

  /// False for one that does not fit, or is too long.
  bool prepare(Candidate& c) const {
    try {
      RenderedProgram p = lower_program(optimized(sink_, c.how), device_, options_);
      if (!c.how.heuristic && p.linear.src_count() > most_instructions) return false;
      c.cost = program_cost(p.linear, device_.target());
      render_source(p, device_);
      c.kernel.info = std::move(p.info);
      c.source = std::move(p.source);
      c.code = content_key(c.source);
      return true;
    } catch (const ValueError&) {
    } catch (const CompileError&) {}
    return false;
  }

  void compile(Candidate& c) const {
    try {
      c.kernel.object = device_.compile(c.source);
    } catch (const CompileError& e) {
      if (c.how.heuristic) throw;
      c.verdict.bad = "the compiler refuses it";
    }
  }

  /// Those of the lists that are new and fit.
  std::vector<Candidate> prepare(const std::vector<Opts>& lists) {
    std::vector<Candidate> all;
    for (const Opts& opts : lists)
      if (seen_opts_.insert(codegen::to_string(opts)).second) all.push_back({.how = {.heuristic = false, .opts = opts}});
    std::vector<char> fits(all.size());
    task_pool().parallel_for(all.size(), [&](size_t i) { fits[i] = prepare(all[i]); });
    std::vector<Candidate> out;
    for (size_t i = 0; i < all.size(); ++i) {
      statistics_.prepared += size_t(fits[i]);
      if (fits[i] && seen_code_.insert(all[i].code).second) out.push_back(std::move(all[i]));
    }
    return out;
  }

  static bool cheaper(const Candidate& a, const Candidate& b) { return a.cost < b.cost; }

  /// What there is time for. The first generation comes in an order that better costs gave it.
  void choose(std::vector<Candidate>& c, bool first) const {
    if (c.empty()) return;
    const double most = std::ranges::min_element(c, cheaper)->cost * (first ? worth_a_look : worth_compiling);
    std::erase_if(c, [&](const Candidate& x) { return x.cost > most; });
    if (!first) std::ranges::stable_sort(c, cheaper);
    if (const size_t many = first_candidates + more_candidates * size_t(options_.beam); c.size() > many) c.resize(many);
  }

  void try_all(std::vector<Candidate> candidates) {
    for (Candidate& c : candidates)
      if (std::optional<Verdict> known = record_.verdict(c.code)) c.verdict = *known;
    const auto is_new = [](const Candidate& c) { return c.verdict.seconds == 0 && c.verdict.bad.empty(); };
    task_pool().parallel_for(candidates.size(), [&](size_t i) {
      if (is_new(candidates[i]) && time_left() > 0) compile(candidates[i]);
    });
    for (Candidate& c : candidates) {
      if (out_of_time()) return;
      if (is_new(c)) time(c);
      bar_.update();
      if (c.verdict.bad.empty()) enter(std::move(c));
    }
  }

  void time(Candidate& c) {
    std::string object = std::move(c.kernel.object);
    if (hooks_.object) object = hooks_.object(statistics_.compiled, std::move(object));
    c.kernel.object = std::move(object);
    ++statistics_.compiled;
    ++statistics_.timed;
    const TrialLimits look = limits();
    const WorkerResult result = trials_->run(c.kernel, look);
    if (result.ran()) {
      c.verdict.seconds = median_seconds(result.seconds);
      c.verdict.bad = accuracy_->complaint(*memory_);
    } else {
      c.verdict.bad = result.error;
    }
    statistics_.bad += size_t(!c.verdict.bad.empty());
    const bool ran_out = result.kind == WorkerResult::Kind::endless && look.limit_s < limit_seconds();  // of the search's time
    if (!ran_out) record_.set_verdict(c.code, c.verdict);
    if (log_enabled(3)) {
      log_line(fmt::format("BEAM {:>10.1f} us {} {}", c.verdict.seconds * 1e6, codegen::to_string(c.how.opts), c.verdict.bad));
    }
  }

  TrialLimits limits() const {
    TrialLimits out{.enough_s = std::min(0.05, 4 * baseline_), .hopeless_s = 1.1 * beam_.back().verdict.seconds};
    if (beam_.size() < size_t(options_.beam)) out.hopeless_s = 2 * baseline_;
    out.limit_s = std::min(limit_seconds(), std::max(0.1, time_left()));
    return out;
  }
  double limit_seconds() const { return 0.25 + 20 * baseline_; }

  /// Keeps the best.
  void enter(Candidate c) {
    beam_.insert(std::upper_bound(beam_.begin(), beam_.end(), c, faster), std::move(c));
    if (beam_.size() > size_t(options_.beam)) beam_.resize(size_t(options_.beam));
    bar_.set_postfix(fmt::format("{:.1f} -> {:.1f} us", baseline_ * 1e6, beam_.front().verdict.seconds * 1e6));
  }

  void grow() {
    bar_ = ProgressBar(
        {.description = fmt::format("BEAM {}", sink_.arg_as<KernelArg>().name.str()), .unit = "kernels", .disable = !log_enabled(1)});
    const UOp kernel = codegen::simplified_kernel(sink_);
    const Target target = codegen::without_dtypes(device_.target(), options_.emulated_dtypes);
    heuristic_ = beam_.front();
    seen_code_.insert(heuristic_.code);
    heuristic_.how.opts = codegen::heuristic_opts(kernel, target);
    seen_opts_.insert(codegen::to_string(heuristic_.how.opts));
    beam_.front().how.opts = heuristic_.how.opts;
    std::vector<Opts> lists = codegen::ranked_opts(kernel, target, 2 * first_candidates + more_candidates * size_t(options_.beam));
    lists.push_back({});
    for (size_t generation = 0; generation < most_generations && !out_of_time(); ++generation) {
      const double before = beam_.front().verdict.seconds;
      std::vector<Candidate> candidates = prepare(lists);
      choose(candidates, generation == 0);
      try_all(std::move(candidates));
      if (generation > 0 && beam_.front().verdict.seconds > before * worth_going_on) break;
      lists.clear();
      for (const Candidate& c : beam_)
        for (Opts& opts : neighbours(kernel, c.how.opts, target)) lists.push_back(std::move(opts));
    }
  }

  // The end: the best one and the heuristics' in turns, since machines change their speed.

  Winner decide() {
    if (beam_.front().how.heuristic) return {};
    Candidate& best = beam_.front();
    if (best.kernel.object.empty()) compile(best);
    const uint32_t repetitions = baseline_ > 0.1 ? 1 : 4;
    std::vector<double> ours{0}, theirs{0};  // median_seconds() leaves the first out
    for (int round = 0; round < (baseline_ > 0.1 ? 3 : 7); ++round)
      for (auto [candidate, times] : {std::pair(&heuristic_, &theirs), std::pair(&best, &ours)}) {
        const WorkerResult r = trials_->run(candidate->kernel, {.repetitions = repetitions, .enough_s = 1, .limit_s = 1 + 40 * baseline_});
        if (!r.ran() || (candidate == &best && !accuracy_->complaint(*memory_).empty())) return {};
        times->push_back(median_seconds(r.seconds));
      }
    statistics_.heuristic_s = median_seconds(theirs);
    statistics_.winner_s = median_seconds(ours);
    bar_.set_postfix(fmt::format("{:.1f} -> {:.1f} us: {}", statistics_.heuristic_s * 1e6, statistics_.winner_s * 1e6,
                                 codegen::to_string(best.how.opts)));
    return statistics_.winner_s < statistics_.heuristic_s * worth_changing ? best.how : Winner{};
  }

  const UOp sink_;
  Device& device_;
  const Options& options_;
  const std::string worker_;
  const SearchRecord& record_;
  const BeamHooks& hooks_;
  BeamStatistics& statistics_;
  ProgressBar bar_{{.disable = true}};
  const Clock::time_point start_ = Clock::now();
  bool cut_off_ = false;

  std::vector<std::pair<Symbol, int64_t>> largest_, representative_;  ///< values of variables
  std::unique_ptr<TrialMemory> memory_;
  std::unique_ptr<Trials> trials_;
  std::unique_ptr<Accuracy> accuracy_;
  double baseline_ = 0;
  Candidate heuristic_ = {};
  std::vector<Candidate> beam_;  ///< the fastest first
  std::unordered_set<std::string> seen_opts_;
  std::unordered_set<ContentKey> seen_code_;
};

/// What this process knows already, by SearchRecord::key(). Never destroyed, as programs.
struct Known {
  std::mutex mutex, search;
  std::unordered_map<ContentKey, Winner> winners;

  static Known& instance() {
    static Known* known = new Known;
    return *known;
  }
  std::optional<Winner> find(const SearchRecord& record) {
    {
      std::lock_guard lock(mutex);
      if (const auto it = winners.find(record.key()); it != winners.end()) return it->second;
    }
    std::optional<Winner> w = record.winner();
    if (w) add(record, *w);
    return w;
  }
  void add(const SearchRecord& record, const Winner& w) {
    std::lock_guard lock(mutex);
    winners.insert_or_assign(record.key(), w);
  }
};

bool may_search(const UOp& sink, const Device& device, const Options& options) {
  if (options.beam == 0 || options.noopt || !device.runs_in_worker()) return false;
  const KernelArg& kernel = sink.arg_as<KernelArg>();
  return !kernel.optimized && kernel.opts.empty();
}

void complain_once(const std::string& why) {
  static std::once_flag once;
  std::call_once(once, [&] { log_line("BEAM: kernels are not searched for, heuristics choose their opts: " + why); });
}

}  // namespace

UOp searched(const UOp& sink, Device& device, const Options& options, const BeamHooks& hooks, BeamStatistics* statistics) {
  if (!may_search(sink, device, options)) return sink;
  const SearchRecord record(sink, device, options);
  Known& known = Known::instance();
  if (const auto w = known.find(record)) return optimized(sink, *w);
  std::string why;
  const std::string worker = find_worker(options.worker_path, why);
  if (worker.empty()) {
    complain_once(why);
    return sink;
  }
  std::lock_guard turn(known.search);
  if (const auto w = known.find(record)) return optimized(sink, *w);
  BeamStatistics unused;
  try {
    const Winner winner = Search(sink, device, options, worker, record, hooks, statistics ? *statistics : unused).run();
    known.add(record, winner);
    record.set_winner(winner);
    return optimized(sink, winner);
  } catch (const DeviceError& e) {
    complain_once(e.what());
  } catch (const OutOfMemoryError& e) {
    complain_once(e.what());
  }
  return sink;
}

UOp known_best(const UOp& sink, const Device& device, const Options& options) {
  if (!may_search(sink, device, options)) return sink;
  const auto w = Known::instance().find(SearchRecord(sink, device, options));
  return w ? optimized(sink, *w) : sink;
}

}  // namespace tinygrad::search
