#include "device/launch_log.h"

#include <algorithm>

namespace tinygrad {

void LaunchLog::passed(uint64_t mark) {
  uint64_t known = good_.load();
  while (known < mark && !good_.compare_exchange_weak(known, mark)) {}
}

void LaunchLog::failed(std::string why) {
  const std::lock_guard lock(mutex_);
  const uint64_t last = last_.load();
  const uint64_t after = good_.exchange(last);
  if (after >= last) return;
  losses_.push_back({after, last, std::move(why)});
  has_losses_.store(true, std::memory_order_release);
}

std::string LaunchLog::why_lost(uint64_t number) const {
  if (!has_losses_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(losses_, [&](const Loss& l) { return number > l.after && number <= l.last; });
  return found == losses_.end() ? std::string() : found->why;
}

}  // namespace tinygrad
