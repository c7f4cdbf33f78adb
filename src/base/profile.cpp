#include "base/profile.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/file.h"
#include "base/options.h"

namespace tinygrad {
namespace {

struct ThreadEvents {
  std::mutex mutex;  // against readers only, so almost never waited for
  uint32_t thread = 0;
  std::vector<ProfileEvent> events;
};

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<ThreadEvents>> threads;  // kept after their thread ended
};

Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

std::atomic<void (*)()> collector{nullptr};

ThreadEvents& my_events() {
  thread_local ThreadEvents* const mine = [] {
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    auto& slot = r.threads.emplace_back(std::make_unique<ThreadEvents>());
    slot->thread = static_cast<uint32_t>(r.threads.size() - 1);
    return slot.get();
  }();
  return *mine;
}

}  // namespace

int64_t profile_now_ns() {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point start = Clock::now();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

ProfileSpan::ProfileSpan(std::string_view name, std::string_view category) {
  if (!current_options().profile) return;
  name_ = name;
  category_ = category;
  start_ns_ = profile_now_ns();
}

ProfileSpan::~ProfileSpan() {
  if (start_ns_ < 0) return;
  profile_record({.name = name_, .category = category_, .track = {}, .start_ns = start_ns_, .duration_ns = profile_now_ns() - start_ns_});
}

ProfileSteps::ProfileSteps(std::string_view category) {
  if (!current_options().profile) return;
  category_ = category;
  start_ns_ = profile_now_ns();
}

void ProfileSteps::done(std::string_view name) {
  if (start_ns_ < 0) return;
  const int64_t now = profile_now_ns();
  profile_record({.name = name, .category = category_, .track = {}, .start_ns = start_ns_, .duration_ns = now - start_ns_});
  start_ns_ = now;
}

void profile_record(ProfileEvent event) {
  ThreadEvents& mine = my_events();
  event.thread = mine.thread;
  std::lock_guard lock(mine.mutex);
  mine.events.push_back(event);
}

void set_profile_collector(void (*collect)()) { collector.store(collect); }

std::vector<ProfileEvent> profile_events() {
  if (void (*collect)() = collector.load()) collect();
  std::vector<ProfileEvent> all;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (auto& thread : r.threads) {
    std::lock_guard thread_lock(thread->mutex);
    all.insert(all.end(), thread->events.begin(), thread->events.end());
  }
  // An outer span before the inner ones that began in the same instant.
  std::ranges::sort(all, {}, [](const ProfileEvent& e) { return std::tuple(e.start_ns, -e.duration_ns, e.thread, e.name); });
  return all;
}

void clear_profile() {
  if (void (*collect)() = collector.load()) collect();
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (auto& thread : r.threads) {
    std::lock_guard thread_lock(thread->mutex);
    thread->events.clear();
  }
}

void write_profile(const std::string& path) {
  using nlohmann::json;
  json list = json::array();
  // A device is a "process" of its own in the viewer, beside that of the threads.
  std::map<Symbol, int> processes;
  for (const ProfileEvent& e : profile_events()) {
    auto [process, is_new] = processes.emplace(e.track, static_cast<int>(processes.size()));
    if (is_new) {
      json name = {{"name", e.track.empty() ? "host" : e.track.str()}};
      list.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", process->second}, {"args", std::move(name)}});
    }
    list.push_back({{"name", e.name.str()},
                    {"cat", e.category.str()},
                    {"ph", "X"},
                    {"ts", static_cast<double>(e.start_ns) / 1e3},
                    {"dur", static_cast<double>(e.duration_ns) / 1e3},
                    {"pid", process->second},
                    {"tid", e.thread}});
  }
  json document = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(list)}};
  write_file_atomic(path, document.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace tinygrad
