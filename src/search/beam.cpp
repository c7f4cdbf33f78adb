#include "search/beam.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>
#include <unordered_set>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>
#include <tinygrad/progress.h>

#include "base/log.h"
#include "base/thread_pool.h"
#include "codegen/opt/parse_opts.h"
#include "program/program.h"
#include "search/candidates.h"
#include "search/contest.h"
#include "search/program_cost.h"
#include "search/search_record.h"

namespace tinygrad::search {
namespace {

using Opts = std::vector<Opt>;
using Clock = std::chrono::steady_clock;

constexpr size_t first_candidates = 8, more_candidates = 4;  // a generation tries so many, and so many for each kernel of the beam
constexpr size_t most_generations = 3;                       // all of them together try so many times as many
constexpr double worth_compiling = 2, worth_a_look = 8;      // times the cost of the cheapest; in the first generation
constexpr double too_short_s = 5e-6;                         // of the heuristics' kernel
constexpr double about_the_same = 1.25;                      // of costs, which are rough
constexpr double worth_going_on = 0.97, worth_changing = 0.99;
constexpr double short_program = 1000, times_as_long = 2;  // instructions, and times the heuristics': what compiling may cost

/// A way to optimize the kernel, and what is known of it.
struct Candidate {
  Winner how = {};
  TrialKernel kernel = {};
  std::string source = {};
  ContentKey code = {};
  ProgramCost cost = {};
  Verdict verdict = {};
};

bool faster(const Candidate& a, const Candidate& b) { return a.verdict.seconds < b.verdict.seconds; }

class Search {
 public:
  Search(const UOp& sink, Device& device, const Options& options, std::string worker, const SearchRecord& record, const BeamHooks& hooks,
         BeamStatistics& statistics)
      : sink_(sink),
        simplified_(codegen::simplified_kernel(sink)),
        device_(device),
        target_(codegen::choices(device.target(), codegen::CodegenOptions::from(options), simplified_)),
        options_(options),
        record_(record),
        hooks_(hooks),
        statistics_(statistics),
        contest_(sink, device, options, std::move(worker)) {}

  Winner run() {
    if (!begin()) return {};
    grow();
    Winner winner = decide();
    if (cut_off_) winner.budget_s = options_.beam_budget_s;
    statistics_.seconds = elapsed();
    return winner;
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double time_left() const { return options_.beam_budget_s > 0 ? options_.beam_budget_s - elapsed() : 1e9; }
  bool out_of_time() {
    check_interrupt();
    cut_off_ = cut_off_ || time_left() <= 0;
    return cut_off_;
  }

  /// Begins with the heuristics' kernel.
  bool begin() {
    if (!prepare(heuristic_)) return false;
    compile(heuristic_);
    seen_objects_.insert(content_key(heuristic_.kernel.object));
    if (!contest_.begin(heuristic_.kernel, hooks_.too_short_s.value_or(too_short_s))) return false;
    heuristic_.verdict.seconds = contest_.baseline_s();
    heuristic_.how.opts = codegen::heuristic_opts(simplified_, target_, options_.tc_opt == 2);
    see(heuristic_);
    beam_.push_back(heuristic_);
    return true;
  }

  // Candidates, on their way from opts to a time.

  /// False for one that does not fit, or is too long.
  bool prepare(Candidate& c) const {
    try {
      RenderedProgram p = lower_program(optimized(sink_, c.how), device_.target(), options_);
      c.cost = program_cost(p.linear, target_);
      if (!c.how.heuristic && c.cost.size > std::max(short_program, times_as_long * heuristic_.cost.size)) return false;
      render_source(p, device_);
      c.kernel.info = std::move(p.info);
      c.source = std::move(p.source);
      c.code = content_key(c.source);
      return true;
    } catch (const ValueError&) {
    } catch (const CompileError&) {
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& e) {
      if (c.how.heuristic || options_.spec > 0) throw;
      if (log_enabled(1)) log_line(fmt::format("BEAM: {} with {}: {}", name(), codegen::to_string(c.how.opts), e.what()));
    }
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

  size_t a_generation() const { return first_candidates + more_candidates * size_t(options_.beam); }

  void see(const Candidate& c) {
    seen_opts_.insert(codegen::to_string(c.how.opts));
    seen_code_.insert(c.code);
  }

  /// The lists of opts that are new and fit the kernel; of those that give the same code, one.
  std::vector<Candidate> prepare(const std::vector<Opts>& lists) {
    std::vector<Candidate> all;
    std::unordered_set<std::string> opts_here = seen_opts_;
    for (const Opts& opts : lists)
      if (opts_here.insert(codegen::to_string(opts)).second) all.push_back({.how = {.heuristic = false, .opts = opts}});
    std::vector<char> fits(all.size());
    task_pool().parallel_for(all.size(), [&](size_t i) { fits[i] = time_left() > 0 && prepare(all[i]); });
    std::vector<Candidate> out;
    std::unordered_set<ContentKey> code_here = seen_code_;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!fits[i]) continue;
      ++statistics_.prepared;
      if (code_here.insert(all[i].code).second)
        out.push_back(std::move(all[i]));
      else
        ++statistics_.duplicates;
    }
    return out;
  }

  /// What there is time for. The first generation comes in an order that better costs gave it; of others the cheapest, and of those that
  /// are about as cheap some of each kind, which come one after another.
  std::vector<Candidate> choose(std::vector<Candidate> from, bool first) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Candidate& c : from) least = std::min(least, c.cost.run);
    std::erase_if(from, [&](const Candidate& c) { return c.cost.run > least * (first ? worth_a_look : worth_compiling); });
    const size_t many = std::min(a_generation(), most_generations * a_generation() - tried_);
    if (from.size() <= many) return from;
    const auto is_cheap = [&](const Candidate& c) { return first || c.cost.run < least * about_the_same; };
    const auto others = std::stable_partition(from.begin(), from.end(), is_cheap);
    std::stable_sort(others, from.end(), [](const Candidate& a, const Candidate& b) { return a.cost.run < b.cost.run; });
    const auto cheap = size_t(others - from.begin());
    if (first || cheap <= many) {
      from.resize(many);
      return from;
    }
    std::vector<Candidate> out;
    for (size_t i = 0; i < many; ++i) out.push_back(std::move(from[i * cheap / many]));
    return out;
  }

  void try_all(std::vector<Candidate> candidates) {
    for (Candidate& c : candidates)
      if (std::optional<Verdict> known = record_.verdict(c.code)) {
        c.verdict = *known;
        ++statistics_.known;
      }
    const auto is_new = [](const Candidate& c) { return c.verdict.seconds == 0 && c.verdict.bad.empty(); };
    task_pool().parallel_for(candidates.size(), [&](size_t i) {
      if (is_new(candidates[i]) && time_left() > 0) compile(candidates[i]);
    });
    for (Candidate& c : candidates) {
      if (out_of_time()) return;
      bar_.update();
      if (is_new(c) && !seen_objects_.insert(content_key(c.kernel.object)).second) {  // of other code the compiler made the same
        ++statistics_.duplicates;
        continue;
      }
      if (is_new(c)) time(c);
      if (c.verdict.bad.empty()) enter(std::move(c));
    }
  }

  void time(Candidate& c) {
    if (hooks_.object) c.kernel.object = hooks_.object(statistics_.timed, std::move(c.kernel.object));
    ++statistics_.timed;
    const bool full = beam_.size() == size_t(options_.beam);
    const double hopeless_s = full ? 1.1 * beam_.back().verdict.seconds : 2 * contest_.baseline_s();
    const std::optional<Verdict> verdict = contest_.time(c.kernel, hopeless_s, time_left());
    c.verdict = verdict.value_or(Verdict{.seconds = 0, .bad = "there was no time left"});
    if (verdict) record_.set_verdict(c.code, *verdict);
    statistics_.bad += size_t(!c.verdict.bad.empty());
    if (log_enabled(3))
      log_line(fmt::format("BEAM {:>10.1f} us {} {}", c.verdict.seconds * 1e6, codegen::to_string(c.how.opts), c.verdict.bad));
  }

  /// Keeps the best.
  void enter(Candidate c) {
    beam_.insert(std::upper_bound(beam_.begin(), beam_.end(), c, faster), std::move(c));
    if (beam_.size() > size_t(options_.beam)) beam_.resize(size_t(options_.beam));
    bar_.set_postfix(fmt::format("{:.1f} -> {:.1f} us", contest_.baseline_s() * 1e6, beam_.front().verdict.seconds * 1e6));
  }

  void grow() {
    bar_ = ProgressBar({.description = fmt::format("BEAM {}", name()), .unit = "kernels", .disable = !log_enabled(1)});
    std::vector<Opts> lists = codegen::ranked_opts(simplified_, target_, first_candidates + a_generation());
    lists.push_back({});
    size_t in_vain = 0;
    for (size_t generation = 0; !out_of_time(); ++generation) {
      const double before = beam_.front().verdict.seconds;
      std::vector<Candidate> candidates = choose(prepare(lists), generation == 0);
      if (candidates.empty() && generation > 0) return;
      tried_ += candidates.size();
      for (const Candidate& c : candidates) see(c);
      try_all(std::move(candidates));
      const bool better = beam_.front().verdict.seconds < before * worth_going_on;
      in_vain = better || generation == 0 ? 0 : in_vain + 1;
      if (in_vain > 0 && in_vain >= size_t(options_.beam) / 2) return;
      lists.clear();
      for (const Candidate& c : beam_)
        for (Opts& opts : neighbours(simplified_, c.how.opts, target_)) lists.push_back(std::move(opts));
    }
  }

  std::string_view name() const { return sink_.arg_as<KernelArg>().name.str(); }

  Winner decide() {
    Candidate& best = beam_.front();
    if (best.how.heuristic) return {};
    if (best.kernel.object.empty()) compile(best);
    const auto seconds = contest_.compare(heuristic_.kernel, best.kernel);
    if (!seconds) return {};
    std::tie(statistics_.heuristic_s, statistics_.winner_s) = *seconds;
    bar_.set_postfix(
        fmt::format("{:.1f} -> {:.1f} us: {}", seconds->first * 1e6, seconds->second * 1e6, codegen::to_string(best.how.opts)));
    return seconds->second < seconds->first * worth_changing ? best.how : Winner{};
  }

  const UOp sink_, simplified_;
  Device& device_;
  const Target target_;
  const Options& options_;
  const SearchRecord& record_;
  const BeamHooks& hooks_;
  BeamStatistics& statistics_;
  Contest contest_;
  ProgressBar bar_{{.disable = true}};
  const Clock::time_point start_ = Clock::now();
  bool cut_off_ = false;
  size_t tried_ = 0;

  Candidate heuristic_ = {};
  std::vector<Candidate> beam_;  ///< the fastest first
  std::unordered_set<std::string> seen_opts_;
  std::unordered_set<ContentKey> seen_code_, seen_objects_;
};

}  // namespace

UOp optimized(const UOp& sink, const Winner& how) {
  if (how.heuristic) return sink;
  KernelArg arg = sink.arg_as<KernelArg>();
  arg.opts = how.opts;
  arg.optimized = how.opts.empty();
  return sink.with_arg(arg);
}

Winner beam_search(const UOp& sink, Device& device, const Options& options, const std::string& worker, const SearchRecord& record,
                   const BeamHooks& hooks, BeamStatistics& statistics) {
  return Search(sink, device, options, worker, record, hooks, statistics).run();
}

}  // namespace tinygrad::search
