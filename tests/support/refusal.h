#pragma once
/// That a hostile file is refused at once.

#include <ctime>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "support/message_of.h"

namespace tinygrad::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
inline constexpr bool is_sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool is_sanitized = false;
#endif

/// The most memory that the process had since this was called last with `again`, in KiB.
inline int64_t peak_memory(bool again = false) {
  if (again) std::ofstream("/proc/self/clear_refs") << 5;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> word) return std::stoll(word);
  return 0;
}

/// What the FormatError says that a call must throw: within 100 ms of the processor, and with 64 MiB more memory at most.
template <class Call>
std::string refusal_of(const Call& call) {
  constexpr double most_seconds = is_sanitized ? 1 : 0.1;
  constexpr int64_t most_memory = 64 << 10;
  const int64_t before = peak_memory(true);
  const std::clock_t begin = std::clock();
  std::string said = message_of<FormatError>(call);
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, most_seconds) << said;
  EXPECT_LT(peak_memory() - before, most_memory) << said;
  return said;
}

}  // namespace tinygrad::test
