#include "base/profile.h"

#include <gtest/gtest.h>
#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/temp_dir.h"

namespace tinygrad {
namespace {

class Profile : public TempDir {
 protected:
  Profile() { clear_profile(); }
  ~Profile() override { clear_profile(); }
};

TEST_F(Profile, CollectsOnlyWhereItIsOn) {
  { ProfileSpan off("off", "test"); }
  {
    Context guard{{.profile = true}};
    ProfileSpan outer("outer", "test");
    ProfileSpan inner("inner", "test");
  }
  auto events = profile_events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].name, "outer");
  EXPECT_EQ(events[1].name, "inner");
  EXPECT_GE(events[0].duration_ns, events[1].duration_ns);
  EXPECT_LE(events[0].start_ns, events[1].start_ns);
}

TEST_F(Profile, KeepsWhatEndedThreadsRecorded) {
  auto options = [] {
    Context guard{{.profile = true}};
    return Context::current();
  }();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([options] {
      Context guard(options);
      for (int i = 0; i < 50; i++) ProfileSpan span("work", "test");
    });
  for (int i = 0; i < 20; i++) profile_events();  // reading while they write
  for (auto& t : threads) t.join();
  auto events = profile_events();
  EXPECT_EQ(events.size(), 200u);
  std::set<uint32_t> ids;
  for (auto& e : events) ids.insert(e.thread);
  EXPECT_EQ(ids.size(), 4u);
}

TEST_F(Profile, WritesAChromeTrace) {
  {
    Context guard{{.profile = true}};
    ProfileSpan span("a \"quoted\" name \xff", "compile");
  }
  profile_record({.name = "kernel", .category = "kernel", .track = "CUDA:1", .start_ns = 5'000'000'000'000, .duration_ns = 2500});
  write_profile(path("trace.json"));
  auto trace = nlohmann::json::parse(read_file(path("trace.json")));
  auto& events = trace.at("traceEvents");
  ASSERT_EQ(events.size(), 4u);  // each process has a name
  EXPECT_EQ(events[0].at("args").at("name"), "host");
  EXPECT_EQ(events[1].at("ph"), "X");
  EXPECT_EQ(events[2].at("args").at("name"), "CUDA:1");
  EXPECT_EQ(events[3].at("name"), "kernel");
  EXPECT_EQ(events[3].at("dur"), 2.5);
  EXPECT_EQ(events[3].at("pid"), events[2].at("pid"));
  EXPECT_THROW(write_profile(path("no/folder.json")), IoError);
}

}  // namespace
}  // namespace tinygrad
