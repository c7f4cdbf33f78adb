#include <fmt/core.h>
#include <tinygrad/context.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/profile.h"

namespace tinygrad {

template <class T>
T getenv(const char* name, const T& default_value) {
  const char* text = std::getenv(name);
  if (!text || !*text) return default_value;
  T value{};
  if (parse_value(text, value)) return value;
  std::string_view expected = std::is_same_v<T, bool> ? "0 or 1" : std::is_integral_v<T> ? "an integer" : "a number";
  throw ValueError(fmt::format("{}: got '{}', expected {}", name, text, expected));
}

template bool getenv(const char*, const bool&);
template int getenv(const char*, const int&);
template int64_t getenv(const char*, const int64_t&);
template double getenv(const char*, const double&);
template std::string getenv(const char*, const std::string&);

struct ThreadInterrupts {
  int uninterruptible = 0;
  const SharedStop* stop = nullptr;
};

namespace {
std::atomic<void (*)()> interrupt_check{nullptr};
constinit thread_local ThreadInterrupts of_thread;

}  // namespace

Uninterruptible::Uninterruptible() noexcept { ++of_thread.uninterruptible; }
Uninterruptible::~Uninterruptible() { --of_thread.uninterruptible; }

SharedStop::SharedStop() noexcept : outer_(of_thread.stop) {}
SharedStop::Scope::Scope(const SharedStop& stop) noexcept : previous_(std::exchange(of_thread.stop, &stop)) {}
SharedStop::Scope::~Scope() { of_thread.stop = previous_; }

void set_interrupt_check(void (*check)()) noexcept { interrupt_check = check; }

namespace {
void check_process() {
  if (void (*check)() = interrupt_check.load(std::memory_order_relaxed)) check();
}
void throw_if(bool cancelled) {
  if (cancelled) throw Cancelled("cancelled; all tensors are as they were");
}
bool is_stopped(const ThreadInterrupts& thread) { return thread.stop && thread.stop->requested(); }
}  // namespace

void check_interrupt() {
  const ThreadInterrupts& mine = of_thread;
  if (mine.uninterruptible != 0) return;
  check_process();
  throw_if(is_stopped(mine) || current_options().cancel.stop_requested());
}

InterruptCheck::InterruptCheck() noexcept : mine_(of_thread), cancel_(current_options().cancel) {}
void InterruptCheck::operator()() const {
  if (mine_.uninterruptible != 0) return;
  check_process();
  throw_if(is_stopped(mine_) || cancel_.stop_requested());
}

Timing::Timing(std::string prefix, bool enabled) : prefix_(std::move(prefix)), enabled_(enabled), start_ns_(profile_now_ns()) {}

Timing::~Timing() {
  if (enabled_) log_line(fmt::format("{}{:6.2f} ms", prefix_, elapsed_ms()));
}

double Timing::elapsed_ms() const { return static_cast<double>(profile_now_ns() - start_ns_) / 1e6; }

struct Profiling::State {
  ProfilingArgs args;
  int64_t start_ns = profile_now_ns();
  Context context{{.profile = true}};
};

Profiling::Profiling(ProfilingArgs args) {
  if (!args.enabled) return;
  state_ = std::make_unique<State>();
  state_->args = std::move(args);
}

namespace {
struct Row {
  std::string name;
  int64_t calls = 0, total_ns = 0;
};

/// The spans since `start_ns`, those that took longest in all first.
std::vector<Row> rows_since(int64_t start_ns) {
  std::map<std::string, Row> by_name;
  for (const ProfileEvent& e : profile_events()) {
    if (e.start_ns < start_ns) continue;
    std::string name = fmt::format("{}: {}", e.category.str(), e.name.str());
    Row& row = by_name[name];
    row.name = std::move(name);
    row.calls++;
    row.total_ns += e.duration_ns;
  }
  std::vector<Row> rows;
  for (auto& [name, row] : by_name) rows.push_back(std::move(row));
  std::ranges::sort(rows, {}, [](const Row& row) { return std::pair(-row.total_ns, std::string_view(row.name)); });
  return rows;
}
}  // namespace

Profiling::~Profiling() {
  if (!state_) return;
  try {
    std::vector<Row> rows = rows_since(state_->start_ns);
    rows.resize(std::min(rows.size(), static_cast<size_t>(std::max(state_->args.rows, 0))));
    for (const Row& row : rows)
      log_line(fmt::format("{:10.2f} ms {:7} x  {}", static_cast<double>(row.total_ns) / 1e6, row.calls, row.name));
    if (!state_->args.path.empty()) write_profile(state_->args.path);
  } catch (const std::exception& e) {
    log_line(fmt::format("Profiling: {}", e.what()));  // a destructor must not throw
  }
}

}  // namespace tinygrad
