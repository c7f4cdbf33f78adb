#pragma once
/// What was recorded of a device with PROFILE on.

#include <algorithm>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/profile.h"

namespace tinygrad::test {

/// Of one category, by when they began.
inline std::vector<ProfileEvent> device_events(std::string_view device, std::string_view category) {
  std::vector<ProfileEvent> events = profile_events();
  std::erase_if(events, [&](const ProfileEvent& e) { return e.track.str() != device || e.category.str() != category; });
  return events;
}

/// That one thing ran after the other, between two moments of profile_now_ns().
inline void expect_one_after_another(const std::vector<ProfileEvent>& events, int64_t from, int64_t to) {
  for (const ProfileEvent& e : events) {
    EXPECT_GE(e.start_ns, from) << e.name.str();
    EXPECT_GE(e.duration_ns, 0) << e.name.str();
    EXPECT_LE(e.start_ns + e.duration_ns, to) << e.name.str();
  }
  for (size_t i = 1; i < events.size(); ++i)
    EXPECT_GE(events[i].start_ns, events[i - 1].start_ns + events[i - 1].duration_ns) << events[i].name.str();
}

}  // namespace tinygrad::test
