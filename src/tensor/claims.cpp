#include "tensor/claims.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include <tinygrad/helpers.h>

#include "base/per_process.h"

namespace tinygrad::tensor {

namespace {

struct Waiting {
  std::mutex mutex;
  std::condition_variable released;
  uint64_t releases = 0;  // that somebody may have waited for
  std::atomic<uint32_t> waiters{0};
  std::atomic<int64_t> claims_ns{0}, states_ns{0};

  static Waiting& instance() { return detail::PerProcess<Waiting>::get(); }
};

}  // namespace

Claims::Claims(Claims&& other) noexcept
    : claims_(std::move(other.claims_)),
      is_sorted_(other.is_sorted_),
      writes_any_(other.writes_any_),
      is_held_(std::exchange(other.is_held_, false)) {}

void Claims::add(Buffer& buffer, bool writes) {
  claims_.push_back({&buffer.origin(), writes});
  writes_any_ = writes_any_ || writes;
  is_sorted_ = false;
}

void Claims::add(const Claims& others) {
  claims_.append(others.claims_.begin(), others.claims_.end());
  writes_any_ = writes_any_ || others.writes_any_;
  is_sorted_ = false;
}

void Claims::clear() {
  claims_.clear();
  is_sorted_ = true;
  writes_any_ = false;
}

void Claims::sort() const {
  if (std::exchange(is_sorted_, true)) return;
  std::sort(claims_.begin(), claims_.end(), [](const Claim& a, const Claim& b) {
    return a.memory != b.memory ? std::less<>()(a.memory, b.memory) : a.writes > b.writes;  // the one that writes stays
  });
  const auto same = [](const Claim& a, const Claim& b) { return a.memory == b.memory; };
  claims_.resize(size_t(std::unique(claims_.begin(), claims_.end(), same) - claims_.begin()));
}

const Claims::Claim* Claims::find(const Buffer& buffer) const {
  sort();
  const Buffer* memory = &buffer.origin();
  const auto it = std::lower_bound(claims_.begin(), claims_.end(), memory,
                                   [](const Claim& c, const Buffer* m) { return std::less<const Buffer*>()(c.memory, m); });
  return it != claims_.end() && it->memory == memory ? &*it : nullptr;
}

bool Claims::writes(const Buffer& buffer) const {
  const Claim* found = find(buffer);
  return found && found->writes;
}

bool Claims::has_users() const {
  return std::any_of(claims_.begin(), claims_.end(), [](const Claim& c) { return c.memory->users() > 0; });
}

void Claims::for_each_written(FunctionRef<void(Buffer&)> f) const {
  for (const Claim& c : claims_)
    if (c.writes) f(*c.memory);
}

bool Claims::try_acquire() noexcept {
  sort();
  for (size_t i = 0; i < claims_.size(); ++i) {
    if (claims_[i].memory->try_claim(claims_[i].writes)) continue;
    while (i-- > 0) claims_[i].memory->give_back_claim(claims_[i].writes);
    return false;
  }
  return is_held_ = true;
}

void Claims::acquire() {
  if (!try_acquire()) wait_for_claims([this] { return try_acquire(); });
}

void Claims::release() noexcept {
  if (!std::exchange(is_held_, false)) return;
  for (const Claim& c : claims_) c.memory->give_back_claim(c.writes);
  Waiting& waiting = Waiting::instance();
  if (waiting.waiters.load() == 0) return;  // who begins to wait now has not tried yet, or saw that they were held, and counts already
  const std::lock_guard lock(waiting.mutex);
  ++waiting.releases;
  waiting.released.notify_all();
}

void wait_for_claims(FunctionRef<bool()> succeeds) {
  Waiting& waiting = Waiting::instance();
  struct Waiter {
    Waiting& waiting;
    const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    explicit Waiter(Waiting& w) : waiting(w) { waiting.waiters.fetch_add(1); }
    ~Waiter() {
      waiting.waiters.fetch_sub(1);
      waiting.claims_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
    }
  } waiter(waiting);
  using namespace std::chrono_literals;
  // Who fails had some claims for an instant, and may have been in the way of others, whom nobody tells: so all try again now and then.
  for (auto patience = 1ms;; patience = std::min(2 * patience, 640ms)) {
    uint64_t seen = 0;
    {
      const std::lock_guard lock(waiting.mutex);
      seen = waiting.releases;
    }
    if (succeeds()) return;
    bool released = false;
    const auto moment = std::min(patience, 20ms);  // until it asks whether it was cancelled
    for (auto waited = 0ms; !released && waited < patience; waited += moment) {
      std::unique_lock lock(waiting.mutex);
      released = waiting.released.wait_for(lock, moment, [&] { return waiting.releases != seen; });
      lock.unlock();
      check_interrupt();
    }
  }
}

WaitTimes wait_times() {
  const Waiting& waiting = Waiting::instance();
  return {std::chrono::nanoseconds(waiting.claims_ns.load()), std::chrono::nanoseconds(waiting.states_ns.load())};
}

void note_wait_for_states(std::chrono::nanoseconds waited) { Waiting::instance().states_ns += waited.count(); }

}  // namespace tinygrad::tensor
