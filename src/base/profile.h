#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/symbol.h>

namespace tinygrad {

/// Something that took time, on a thread or on a device.
struct ProfileEvent {
  Symbol name, category;
  Symbol track;          ///< the device, empty for the thread that recorded it
  int64_t start_ns = 0;  ///< of profile_now_ns()
  int64_t duration_ns = 0;
  uint32_t thread = 0;  ///< numbered as threads record for the first time
};

/// The clock of profile events, from the start of the process's first use of it.
int64_t profile_now_ns();

/// Records the time from here to the end of the scope, where the thread's PROFILE is on; else costs a load and a compare.
class ProfileSpan {
 public:
  ProfileSpan(std::string_view name, std::string_view category);
  ~ProfileSpan();
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;

 private:
  Symbol name_, category_;
  int64_t start_ns_ = -1;  // off
};

/// Records steps that follow one another, each from the end of the one before, where the thread's PROFILE is on.
class ProfileSteps {
 public:
  explicit ProfileSteps(std::string_view category);
  /// The step `name` has ended.
  void done(std::string_view name);

 private:
  Symbol category_;
  int64_t start_ns_ = -1;  // off
};

/// Records an event that was measured otherwise, such as a kernel on a GPU. Recorded whether PROFILE is on or not.
void profile_record(ProfileEvent event);

/// What devices hold back until somebody waits for them: `collect` records it, and does not throw. There is one such function.
void set_profile_collector(void (*collect)());

/// What was recorded so far, by start time.
std::vector<ProfileEvent> profile_events();

/// Forgets what was recorded so far.
void clear_profile();

/// Writes what was recorded so far as JSON for chrome://tracing or Perfetto. Throws IoError.
void write_profile(const std::string& path);

}  // namespace tinygrad
