#include "search/searched.h"

#include <mutex>
#include <new>
#include <unordered_map>

#include <tinygrad/errors.h>

#include "base/log.h"
#include "base/per_process.h"
#include "search/search_record.h"
#include "search/worker.h"

namespace tinygrad::search {
namespace {

/// What this process knows already, by SearchRecord::key().
struct Known {
  std::mutex mutex, search;
  std::once_flag complained;
  std::unordered_map<ContentKey, Winner> winners;

  static Known& instance() { return detail::PerProcess<Known>::get(); }

  std::optional<Winner> find(const SearchRecord& record) {
    {
      std::lock_guard lock(mutex);
      if (const auto it = winners.find(record.key()); it != winners.end() && record.accepts(it->second)) return it->second;
    }
    std::optional<Winner> w = record.winner();
    if (w) add(record, *w);
    return w;
  }
  void add(const SearchRecord& record, const Winner& w) {
    std::lock_guard lock(mutex);
    winners.insert_or_assign(record.key(), w);
  }
  /// A search that failed is remembered by the process alone: not each realize() repeats it.
  void give_up(const SearchRecord& record, const std::string& why) {
    std::call_once(complained, [&] { log_line("BEAM: kernels are not searched for, heuristics choose their opts: " + why); });
    add(record, {});
  }
};

bool may_search(const UOp& sink, const Device& device, const Options& options) {
  if (options.beam == 0 || options.noopt || !device.runs_in_worker()) return false;
  const KernelArg& kernel = sink.arg_as<KernelArg>();
  return !kernel.optimized && kernel.opts.empty();
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
    known.give_up(record, why);
    return sink;
  }
  std::lock_guard turn(known.search);
  if (const auto w = known.find(record)) return optimized(sink, *w);
  BeamStatistics unused;
  try {
    const Winner winner = beam_search(sink, device, options, worker, record, hooks, statistics ? *statistics : unused);
    known.add(record, winner);
    record.set_winner(winner);
    return optimized(sink, winner);
  } catch (const DeviceError& e) {
    known.give_up(record, e.what());
  } catch (const OutOfMemoryError& e) {
    known.give_up(record, e.what());
  } catch (const std::bad_alloc& e) {
    known.give_up(record, e.what());
  }
  return sink;
}

std::vector<std::shared_ptr<const Program>> searched_programs(std::span<const KernelOn> kernels, const Options& options) {
  std::vector<KernelOn> with_opts(kernels.begin(), kernels.end());
  for (KernelOn& k : with_opts)
    if (k.sink.is(Op::SINK)) k.sink = searched(k.sink, *k.device, options);
  return get_programs(with_opts, options);
}

UOp known_best(const UOp& sink, const Device& device, const Options& options) {
  if (!may_search(sink, device, options)) return sink;
  const auto w = Known::instance().find(SearchRecord(sink, device, options));
  return w ? optimized(sink, *w) : sink;
}

}  // namespace tinygrad::search
