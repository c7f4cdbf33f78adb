#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tinygrad {

/// True when the thread's DEBUG is at least `level`: `if (log_enabled(2)) log_line(fmt::format(...));`.
bool log_enabled(int level);

/// Writes one line (or several) to standard error, whole: lines of several threads do not mix. The newline is added.
void log_line(std::string_view text);

enum class Color { kRed, kGreen, kYellow, kBlue, kMagenta, kCyan, kGray };

/// Text in a colour, or as it is when standard error is not a terminal, is redirected, or NO_COLOR is set.
std::string colored(std::string_view text, Color color);

/// Takes log lines, and final lines of progress bars, instead of standard error. Called under a lock: it must not log.
using LogSink = std::function<void(std::string_view line)>;

/// Redirects the log of the whole process until it goes out of scope.
class ScopedLogSink {
 public:
  explicit ScopedLogSink(LogSink sink);
  ~ScopedLogSink();
  ScopedLogSink(const ScopedLogSink&) = delete;
  ScopedLogSink& operator=(const ScopedLogSink&) = delete;

 private:
  LogSink previous_;
};

/// True when standard error is a terminal that nothing redirects, so that a line can be redrawn in place.
bool log_is_terminal();

/// The terminal's columns, 80 when unknown.
int log_columns();

/// Shows a line that stays below the log until the next call replaces it; empty removes it. Does nothing without a terminal.
void log_status(std::string_view text);

}  // namespace tinygrad
