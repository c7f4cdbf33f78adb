#include "base/log.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "base/options.h"

namespace tinygrad {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

struct Log {
  std::mutex mutex;
  LogSink sink;
  std::string status;  // shown below the log now

  /// Asked each time: a program may redirect its standard error.
  bool on_terminal() const { return !sink && isatty(STDERR_FILENO) != 0; }
};

Log& the_log() {
  static Log& log = *new Log;
  return log;
}

/// In one system call where the kernel takes it all, so that lines of other processes do not mix in either.
void write_all(std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // nobody is left to be told
    text.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

bool log_enabled(int level) { return current_options().debug >= level; }

void log_line(std::string_view text) {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  if (log.sink) return log.sink(text);
  if (log.status.empty()) return write_all(fmt::format("{}\n", text));
  write_all(fmt::format("{}{}\n{}", kClearLine, text, log.status));
}

void log_status(std::string_view text) {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  if (!log.on_terminal()) return;
  log.status = text;
  write_all(fmt::format("{}{}", kClearLine, text));
}

bool log_is_terminal() {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  return log.on_terminal();
}

int log_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string colored(std::string_view text, Color color) {
  if (current_options().no_color || !log_is_terminal()) return std::string(text);
  constexpr int kCodes[] = {91, 92, 93, 94, 95, 96, 90};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(color)], text);
}

ScopedLogSink::ScopedLogSink(LogSink sink) {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  previous_ = std::exchange(log.sink, std::move(sink));
}

ScopedLogSink::~ScopedLogSink() {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  log.sink = std::move(previous_);
}

}  // namespace tinygrad
