#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/cpu.h"
#include "base/first_error.h"
#include "base/options.h"
#include "base/pause.h"
#include "base/per_process.h"
#include "base/thread_pool.h"

namespace tinygrad {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);
constexpr size_t kCacheLine = 64;

// Set while a thread works for a pool, which makes its own calls of run() run in place.
constinit thread_local bool inside_job = false;

/// Returns the first value that differs from `old`, spinning for a while before the thread sleeps.
uint32_t wait_for_change(const std::atomic<uint32_t>& word, uint32_t old, bool spin) {
  auto start = std::chrono::steady_clock::now();
  while (spin && std::chrono::steady_clock::now() - start < kSpin) {
    for (int i = 0; i < 32; i++) {
      if (uint32_t now = word.load(std::memory_order_acquire); now != old) return now;
      pause_cpu();
    }
  }
  for (;;) {
    if (uint32_t now = word.load(std::memory_order_acquire); now != old) return now;
    word.wait(old, std::memory_order_acquire);
  }
}

/// The chunks that one thread starts with; others may take from them.
struct alignas(kCacheLine) Share {
  std::atomic<size_t> next{0};
  size_t end = 0;
};

struct alignas(kCacheLine) Worker {
  std::atomic<uint32_t> bell{0};  // counts the jobs that the worker was asked to join
  std::thread thread;
};

}  // namespace

struct ComputePool::State {
  explicit State(size_t threads);

  size_t slot_of_caller(size_t slots) const;
  void open(size_t chunks, size_t slots);
  void call_workers(size_t slots, size_t caller);
  void work(size_t slot, size_t slots, bool is_caller);
  void check_caller();
  void close();
  bool enter();
  void leave();
  void worker_loop(size_t slot);
  void end_workers();

  // Workers inside the job, and a bit that is set while it takes more. A worker that comes late finds it closed (or helps
  // with the next job), so the end of a job waits for nobody who has not begun.
  static constexpr uint32_t kOpen = 1u << 31;
  std::atomic<uint32_t> gate{0};

  const FunctionRef<void(size_t, size_t)>* fn = nullptr;
  size_t used = 0, grain = 1;
  FirstError error;

  std::vector<int> cpus;  // of the slots
  std::vector<Share> shares;
  std::vector<Worker> workers;
  std::mutex turn;  // one job at a time
  std::atomic<bool> stop{false};
  bool spin = true;
};

ComputePool::State::State(size_t threads) : shares(threads), workers(threads) {
  std::vector<int> allowed = allowed_cpus();
  for (size_t i = 0; i < threads; i++) cpus.push_back(allowed[i % allowed.size()]);
  size_t quota = cpu_quota();
  spin = threads <= (quota ? std::min(quota, allowed.size()) : allowed.size());
}

bool ComputePool::State::enter() {
  uint32_t g = gate.load(std::memory_order_acquire);
  while (g & kOpen)
    if (gate.compare_exchange_weak(g, g + 1, std::memory_order_acquire)) return true;
  return false;
}

void ComputePool::State::leave() {
  if (gate.fetch_sub(1, std::memory_order_acq_rel) == 1) gate.notify_one();
}

/// Where the caller stands in: for the worker that is pinned to the CPU the caller is on.
size_t ComputePool::State::slot_of_caller(size_t slots) const {
  auto found = std::find(cpus.begin(), cpus.begin() + static_cast<std::ptrdiff_t>(slots), sched_getcpu());
  return std::min(static_cast<size_t>(found - cpus.begin()), slots - 1);
}

void ComputePool::State::open(size_t chunks, size_t slots) {
  used = slots;
  grain = std::max<size_t>(1, chunks / (slots * 8));
  for (size_t i = 0; i < slots; i++) {
    shares[i].next.store(chunks * i / slots, std::memory_order_relaxed);
    shares[i].end = chunks * (i + 1) / slots;
  }
  gate.store(kOpen, std::memory_order_release);
}

void ComputePool::State::call_workers(size_t slots, size_t caller) {
  for (size_t i = 0; i < slots; i++) {
    if (i == caller) continue;
    workers[i].bell.fetch_add(1);  // sequentially consistent: notify_one must not look for sleepers before it
    workers[i].bell.notify_one();
  }
}

/// Lets no more pieces begin if the caller is cancelled.
void ComputePool::State::check_caller() {
  try {
    check_interrupt();
  } catch (...) {
    for (Share& share : shares) share.next.store(share.end, std::memory_order_relaxed);
    throw;
  }
}

void ComputePool::State::work(size_t slot, size_t slots, bool is_caller) {
  inside_job = true;
  bool is_first = true;
  for (size_t k = 0; k < slots; k++) {
    Share& share = shares[(slot + k) % slots];
    for (;;) {
      size_t begin = share.next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= share.end) break;
      error.guard(begin, [&] {
        if (is_caller && !std::exchange(is_first, false)) check_caller();
        (*fn)(begin, std::min(begin + grain, share.end));
      });
    }
  }
  inside_job = false;
}

void ComputePool::State::close() {
  uint32_t inside = gate.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  while (inside != 0) inside = wait_for_change(gate, inside, spin);
}

void ComputePool::State::worker_loop(size_t slot) {
  pthread_setname_np(pthread_self(), "tg-compute");
  pin_current_thread(cpus[slot]);  // where that is refused the thread works all the same
  for (uint32_t heard = 0;;) {
    heard = wait_for_change(workers[slot].bell, heard, spin);
    if (stop.load(std::memory_order_acquire)) return;
    if (!enter()) continue;
    work(slot % used, used, false);
    leave();
  }
}

void ComputePool::State::end_workers() {
  stop.store(true, std::memory_order_release);
  call_workers(workers.size(), workers.size());
  for (Worker& w : workers)
    if (w.thread.joinable()) w.thread.join();
}

ComputePool::ComputePool(size_t threads) : state_(std::make_unique<State>(std::max<size_t>(threads, 1))) {
  if (threads <= 1) return;
  size_t started = 0;
  try {
    for (; started < threads; started++)
      state_->workers[started].thread = std::thread([this, slot = started] { state_->worker_loop(slot); });
  } catch (const std::system_error& e) {
    state_->end_workers();
    throw DeviceError(fmt::format("CPU: of {} threads {} could be started: {}; set NUM_CPU_THREADS to fewer", threads, started, e.what()));
  }
}

ComputePool::~ComputePool() { state_->end_workers(); }

size_t ComputePool::threads() const noexcept { return state_->workers.size(); }

void ComputePool::run(size_t chunks, FunctionRef<void(size_t, size_t)> fn) {
  if (chunks == 0) return;
  if (chunks == 1 || threads() == 1 || inside_job) return fn(0, chunks);
  State& s = *state_;
  std::lock_guard turn(s.turn);
  size_t slots = std::min(chunks, threads()), caller = s.slot_of_caller(slots);
  s.fn = &fn;
  s.error.reset();
  s.open(chunks, slots);
  s.call_workers(slots, caller);
  s.work(caller, slots, true);
  s.close();
  s.error.rethrow();
}

ComputePool& compute_pool() {
  return detail::PerProcess<ComputePool>::get([] { return cpu_thread_count(current_options()); });
}

}  // namespace tinygrad
