#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <tinygrad/counters.h>
#include <tinygrad/export.h>
#include <tinygrad/progress.h>

namespace tinygrad {

/// An environment variable as the type of the default, which an unset or empty variable gives; T is bool, int, int64_t, double
/// or std::string. Throws ValueError when the text is no T.
template <class T>
TINYGRAD_EXPORT T getenv(const char* name, const T& default_value);

inline std::string getenv(const char* name, const char* default_value) { return getenv(name, std::string(default_value)); }

struct FetchOptions {
  std::string name = {};           ///< of the file, or its path; by default made of the URL
  std::string subdir = {};         ///< of the cache folder
  bool gunzip = false;             ///< keep what the file packs
  bool allow_caching = true;       ///< false: download it again
  size_t limit = size_t{1} << 34;  ///< bytes; IoError for a larger one
};

/// The path of a file from the network, which is downloaded unless it is in the cache folder already ($XDG_CACHE_HOME or ~/.cache,
/// tinygrad_cpp/downloads); a path of this machine is given back as it is. Throws IoError.
TINYGRAD_EXPORT std::string fetch(const std::string& url, const FetchOptions& options = {});

/// `check` is called by every thread that computes, wherever ContextArgs::cancel is looked at, for all of the process: by a program that
/// handles signals. It must take a few nanoseconds; what it throws, such as Cancelled, ends the computation with no tensor changed. Null
/// for none.
TINYGRAD_EXPORT void set_interrupt_check(void (*check)()) noexcept;
/// Throws Cancelled if the calling thread's Context is cancelled, or what the process's check throws: for work that goes with computing,
/// such as a decoder's.
TINYGRAD_EXPORT void check_interrupt();

/// Prints how long a scope took, on standard error: `Timing t("forward: ");`.
class TINYGRAD_EXPORT Timing {
 public:
  explicit Timing(std::string prefix = "", bool enabled = true);
  ~Timing();
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;

  /// Milliseconds since the start.
  double elapsed_ms() const;

 private:
  std::string prefix_;
  bool enabled_;
  int64_t start_ns_;
};

struct ProfilingArgs {
  bool enabled = true;
  int rows = 20;          ///< how many of the spans that took longest are printed
  std::string path = {};  ///< where to write a trace for Chrome's or Perfetto's viewer, nowhere when empty
};

/// Collects profile spans of the calling thread and the work it starts, and prints a table of them at the end of the scope.
class TINYGRAD_EXPORT Profiling {
 public:
  explicit Profiling(ProfilingArgs args = {});
  ~Profiling();
  Profiling(const Profiling&) = delete;
  Profiling& operator=(const Profiling&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tinygrad
