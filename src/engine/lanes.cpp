#include "engine/lanes.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/first_error.h"
#include "base/pause.h"

namespace tinygrad::engine {

// Which steps wait for which.

/// Makes a run of bytes begin at `at`, if one goes over it. The first that ends behind it.
Lanes::Memory::iterator Lanes::split(uintptr_t at) {
  auto next = memory_.lower_bound(at);
  if (next == memory_.begin()) return next;
  Users& before = std::prev(next)->second;
  if (before.end <= at) return next;
  next = memory_.emplace_hint(next, at, before);
  before.end = at;
  return next;
}

void Lanes::note_use(const MemoryUse& use, const Wait& user, std::vector<uint32_t>& needed) {
  if (use.begin >= use.end) return;
  const auto need = [&](const Wait& w) { needed[w.lane] = std::max(needed[w.lane], w.steps); };
  split(use.end);
  auto it = split(use.begin);
  for (uintptr_t at = use.begin; at < use.end; at = it++->second.end) {
    if (it == memory_.end() || it->first > at) {  // nobody has used it yet
      const uintptr_t end = it == memory_.end() ? use.end : std::min(use.end, it->first);
      it = memory_.emplace_hint(it, at, Users{.end = end, .writer = {}, .readers = {}});
    }
    Users& users = it->second;
    for (const Wait& w : users.writer) need(w);
    if (use.writes) {
      for (const Wait& w : users.readers) need(w);
      users.writer = {user};
      users.readers = {};
      continue;
    }
    const auto mine = std::ranges::find(users.readers, user.lane, &Wait::lane);
    if (mine == users.readers.end())
      users.readers.push_back(user);
    else
      mine->steps = user.steps;
  }
}

void Lanes::add(size_t lane, std::span<const MemoryUse> uses) {
  const size_t count = lanes_.size();
  Step step{.lane = uint32_t(lane), .number = uint32_t(lanes_[lane].size()), .first_wait = uint32_t(waits_.size())};
  // What has run by then: what has by the step before it in its lane, and by those that it waits for.
  std::vector<uint32_t> known(count), needed(count);
  const auto learn = [&](uint32_t of_lane, uint32_t steps) {
    const uint32_t* theirs = known_.data() + size_t(lanes_[of_lane][steps - 1]) * count;
    for (size_t l = 0; l < count; ++l) known[l] = std::max(known[l], theirs[l]);
    known[of_lane] = std::max(known[of_lane], steps);
  };
  if (step.number > 0) learn(step.lane, step.number);
  for (const MemoryUse& use : uses) note_use(use, {step.lane, step.number + 1}, needed);
  for (uint32_t l = 0; l < count; ++l) {
    if (l == lane || needed[l] <= known[l]) continue;
    waits_.push_back({l, needed[l]});
    learn(l, needed[l]);
  }
  step.wait_count = uint32_t(waits_.size()) - step.first_wait;
  lanes_[lane].push_back(uint32_t(steps_.size()));
  known_.insert(known_.end(), known.begin(), known.end());
  steps_.push_back(step);
}

std::span<const Lanes::Wait> Lanes::waits_of(size_t step) const {
  return std::span(waits_).subspan(steps_[step].first_wait, steps_[step].wait_count);
}

// Running them.

namespace {

constexpr size_t cache_line = 64;
constexpr int own_lanes_first = 64;  ///< tries before a thread takes from the lanes of others
constexpr int busy_tries = 1 << 13;  ///< before it lets others have the processor

}  // namespace

/// Threads take pieces of the step that each lane is at. The one that ends the last piece brings the lane to its next step. No thread waits
/// for one that has not begun: whatever may run is there for all of them.
class Lanes::Run {
 public:
  Run(const Lanes& lanes, size_t first, size_t end, size_t threads, FunctionRef<size_t(size_t)> pieces,
      FunctionRef<void(size_t, size_t, size_t)> work)
      : lanes_(lanes), threads_(threads), first_(first), work_(work), states_(lanes.lanes_.size()) {
    for (size_t step = first; step < end; ++step) pieces_.push_back(uint32_t(pieces(step)));
    for (size_t l = 0; l < states_.size(); ++l) {
      const auto& steps = lanes.lanes_[l];
      const auto number_of = [&](size_t step) { return uint32_t(std::ranges::lower_bound(steps, step) - steps.begin()); };
      states_[l].end = number_of(end);
      begin_step(l, number_of(first));
    }
  }

  /// Until no lane has anything to begin.
  void operator()(size_t thread) {
    const size_t home = thread * states_.size() / threads_;
    for (int tries = 0; !stop_.load(std::memory_order_relaxed);) {
      size_t ended = 0;
      bool worked = false;
      for (size_t k = 0; k < states_.size() && !worked; ++k) {
        const size_t lane = (home + k) % states_.size();
        if (tries < own_lanes_first && lane * threads_ / states_.size() != thread && home != lane) continue;
        const Took took = take(lane);
        worked = took == Took::piece;
        ended += took == Took::end;
      }
      if (worked) {
        tries = 0;
        continue;
      }
      if (ended == states_.size()) return;
      if (++tries < busy_tries)
        pause_cpu();
      else
        std::this_thread::yield();
    }
  }

  void rethrow() { error_.rethrow(); }

 private:
  enum class Took { nothing, piece, end };
  struct alignas(cache_line) State {
    std::atomic<uint64_t> next{0};  ///< the step's number in the lane, and its first piece that nobody has taken, in the low half
    std::atomic<uint32_t> left{0};  ///< pieces of it that have not run
    std::atomic<uint32_t> run{0};   ///< steps that have
    uint32_t end = 0;
  };

  uint32_t pieces_of(size_t step) const { return pieces_[step - first_]; }

  void begin_step(size_t lane, uint32_t number) {
    State& s = states_[lane];
    if (number < s.end) s.left.store(pieces_of(lanes_.lanes_[lane][number]), std::memory_order_relaxed);
    s.run.store(number, std::memory_order_release);
    s.next.store(uint64_t(number) << 32, std::memory_order_release);
  }

  bool may_begin(size_t step) const {
    return std::ranges::all_of(lanes_.waits_of(step),
                               [&](const Wait& w) { return states_[w.lane].run.load(std::memory_order_acquire) >= w.steps; });
  }

  Took take(size_t lane) {
    State& s = states_[lane];
    uint64_t next = s.next.load(std::memory_order_acquire);
    const auto number = uint32_t(next >> 32);
    if (number >= s.end) return Took::end;
    const size_t step = lanes_.lanes_[lane][number];
    const uint32_t begin = uint32_t(next), count = pieces_of(step);
    if (begin >= count || (begin == 0 && !may_begin(step))) return Took::nothing;
    const uint32_t end = std::min(count, begin + std::max(1u, count / uint32_t(threads_ * 8)));
    if (!s.next.compare_exchange_strong(next, (uint64_t(number) << 32) | end, std::memory_order_acq_rel)) return Took::nothing;
    error_.guard(step, [&] {
      try {
        work_(step, begin, end);
      } catch (...) {
        stop_.store(true, std::memory_order_relaxed);
        throw;
      }
    });
    if (s.left.fetch_sub(end - begin, std::memory_order_acq_rel) == end - begin) begin_step(lane, number + 1);
    return Took::piece;
  }

  const Lanes& lanes_;
  const size_t threads_, first_;
  std::vector<uint32_t> pieces_;  // of the steps from the first on
  const FunctionRef<void(size_t, size_t, size_t)> work_;
  std::vector<State> states_;
  std::atomic<bool> stop_{false};
  FirstError error_;
};

void Lanes::run(size_t first, size_t end, ComputePool& pool, FunctionRef<size_t(size_t)> pieces,
                FunctionRef<void(size_t, size_t, size_t)> work) const {
  Run run(*this, first, end, pool.threads(), pieces, work);
  pool.run(pool.threads(), [&](size_t begin, size_t) { run(begin); });
  run.rethrow();
}

}  // namespace tinygrad::engine
