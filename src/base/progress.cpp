#include "base/progress.h"

#include <fmt/core.h>
#include <tinygrad/progress.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/log.h"

namespace tinygrad {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr int kWidestBar = 40;

/// 1:05, 2:00:09.
std::string clock_text(double seconds) {
  auto s = static_cast<int64_t>(std::clamp(seconds, 0.0, 3.6e9));
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60) : fmt::format("{}:{:02}", s / 60, s % 60);
}

/// Below one step a second the inverse reads better.
std::string rate_text(double rate, std::string_view unit) {
  if (rate <= 0) return fmt::format("?{}/s", unit);
  return rate >= 1 ? fmt::format("{:.{}f}{}/s", rate, rate < 100 ? 2 : 0, unit) : fmt::format("{:.2f}s/{}", 1 / rate, unit);
}

/// Full blocks, and one in eighths.
std::string bar_text(double fraction, int cells) {
  constexpr const char* kEighths[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  auto eighths = static_cast<int>(fraction * cells * 8);
  std::string bar;
  for (int i = 0; i < cells; i++, eighths -= 8) bar += eighths >= 8 ? "█" : kEighths[std::max(eighths, 0)];
  return bar;
}

int width_of(std::string_view utf8) {
  return static_cast<int>(std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string detail::progress_line(const ProgressView& v, int columns) {
  std::string head = v.description.empty() ? "" : fmt::format("{}: ", v.description);
  double rate = v.seconds > 0 ? static_cast<double>(v.done) / v.seconds : 0;
  std::string tail = v.postfix.empty() ? "" : fmt::format(" {}", v.postfix);
  if (v.total < 0) return fmt::format("{}{} {} [{}, {}]{}", head, v.done, v.unit, clock_text(v.seconds), rate_text(rate, v.unit), tail);

  double fraction = v.total > 0 ? std::clamp(static_cast<double>(v.done) / static_cast<double>(v.total), 0.0, 1.0) : 1;
  std::string left = rate > 0 ? clock_text(static_cast<double>(std::max<int64_t>(v.total - v.done, 0)) / rate) : "?";
  head += fmt::format("{:3}%|", static_cast<int>(fraction * 100));
  tail = fmt::format("| {}/{} [{}<{}, {}]{}", v.done, v.total, clock_text(v.seconds), left, rate_text(rate, v.unit), tail);
  int cells = std::clamp(columns - width_of(head) - width_of(tail), 0, kWidestBar);
  return head + bar_text(fraction, cells) + tail;
}

struct ProgressBar::State {
  std::mutex mutex;
  ProgressArgs args;
  std::string postfix;
  int64_t done = 0;
  bool closed = false;
  const bool terminal = log_is_terminal();
  const Clock::time_point start = Clock::now();
  Clock::time_point drawn{};

  std::string line() const {
    detail::ProgressView view{.description = args.description, .unit = args.unit, .postfix = postfix};
    view.done = done;
    view.total = args.total;
    view.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return detail::progress_line(view, terminal ? log_columns() - 1 : 80);
  }
  void draw() {
    if (!terminal || closed || Clock::now() - drawn < kRedraw) return;
    log_status(line());
    drawn = Clock::now();
  }
};

ProgressBar::ProgressBar(ProgressArgs args) {
  if (args.disable) return;
  state_ = std::make_unique<State>();
  state_->args = std::move(args);
}

ProgressBar::~ProgressBar() { close(); }
ProgressBar::ProgressBar(ProgressBar&&) noexcept = default;

ProgressBar& ProgressBar::operator=(ProgressBar&& other) noexcept {
  close();
  state_ = std::move(other.state_);
  return *this;
}

void ProgressBar::update(int64_t steps) {
  if (!state_) return;
  std::lock_guard lock(state_->mutex);
  state_->done += steps;
  state_->draw();
}

void ProgressBar::set_description(std::string text) {
  if (!state_) return;
  std::lock_guard lock(state_->mutex);
  state_->args.description = std::move(text);
  state_->draw();
}

void ProgressBar::set_postfix(std::string text) {
  if (!state_) return;
  std::lock_guard lock(state_->mutex);
  state_->postfix = std::move(text);
  state_->draw();
}

void ProgressBar::close() {
  if (!state_) return;
  std::lock_guard lock(state_->mutex);
  if (std::exchange(state_->closed, true)) return;
  if (state_->terminal) log_status("");
  log_line(state_->line());
}

}  // namespace tinygrad
