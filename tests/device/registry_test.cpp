#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "device/fake_device.h"
#include "device/launch_log.h"
#include "device/registry.h"

namespace tinygrad {
namespace {

using test::FakeDevice;

std::atomic<int> opened{0};
std::atomic<bool> may_open{false};

std::string works() { return {}; }
std::string absent() { return "GONE: no such hardware"; }
std::string no_emulator() { return "no emulator"; }
std::unique_ptr<Device> open_fake(const DeviceChoice& choice) {
  ++opened;
  return std::make_unique<FakeDevice>(choice.canonical() + choice.renderer);
}
std::unique_ptr<Device> open_flaky(const DeviceChoice& choice) {
  if (!may_open) throw DeviceError("not now");
  return std::make_unique<FakeDevice>(choice.canonical());
}

constexpr CodePath kCodePaths[] = {
    {.renderer = "X", .missing_compiler = works}, {.renderer = "Y"}, {.renderer = "X", .missing_compiler = no_emulator, .arch = "other"}};

constexpr Backend kFakes[] = {
    {.name = "GONE", .unavailable = absent, .open = open_fake},
    {.name = "SPARE", .may_be_default = false, .unavailable = works, .code_paths = kCodePaths, .open = open_fake},
    {.name = "FAKE", .unavailable = works, .open = open_fake},
    {.name = "FLAKY", .unavailable = works, .open = open_flaky},
};

class Registry : public testing::Test {
 protected:
  void SetUp() override { register_backends(kFakes); }
};

TEST_F(Registry, NamesAreCanonical) {
  EXPECT_EQ(canonical_name("fake:0"), Symbol("FAKE"));
  EXPECT_EQ(canonical_name("Fake:3"), Symbol("FAKE:3"));
  EXPECT_EQ(&find_device("FAKE"), &find_device("fake:0"));
  EXPECT_NE(&find_device("FAKE"), &find_device("FAKE:1"));
  EXPECT_EQ(find_device("FAKE:1").name(), Symbol("FAKE:1"));
}

TEST_F(Registry, UnknownDevicesListTheKnown) {
  try {
    find_device("TPU");
    FAIL() << "it is unknown";
  } catch (const DeviceError& e) {
    EXPECT_STREQ(e.what(), "unknown device 'TPU'; known are GONE, SPARE, FAKE, FLAKY");
  }
  for (const char* bad : {"", ":", "FAKE:", "FAKE:-1", "FAKE:A:B:C", "FAKE:1:A:B:C", "FAKE::"}) {
    EXPECT_THROW(find_device(bad), DeviceError) << bad;
  }
}

TEST_F(Registry, UnknownRenderersListTheKnown) {
  try {
    canonical_name("SPARE:Z");
    FAIL() << "it is unknown";
  } catch (const DeviceError& e) {
    EXPECT_STREQ(e.what(), "SPARE: unknown renderer 'Z'; known are X, Y. A device is NAME[:INDEX]; the option DEV picks its renderer");
  }
  for (const char* bad : {"spare:Z", "SPARE:1:Z:arch", "FAKE:X"}) EXPECT_THROW(find_device(bad), DeviceError) << bad;
  EXPECT_EQ(canonical_name("SPARE:Y"), Symbol("SPARE"));
}

TEST_F(Registry, DefaultIsTheFirstThatWorksOrTheOption) {
  Context none{{.dev = ""}};
  EXPECT_EQ(default_device_name(), Symbol("FAKE"));
  Context other{{.dev = "spare:2:X:y"}};
  EXPECT_EQ(default_device_name(), Symbol("SPARE:2"));
  EXPECT_EQ(find_device("SPARE:2").name(), Symbol("SPARE:2X"));  // with the renderer of the option
  EXPECT_EQ(find_device("FAKE").name(), Symbol("FAKE"));
  Context unknown{{.dev = "TPU"}};
  EXPECT_THROW(default_device_name(), DeviceError);
}

TEST_F(Registry, SaysWhatWorks) {
  const auto all = registered_devices();
  ASSERT_EQ(all.size(), 6u);
  EXPECT_FALSE(all[0].works);
  EXPECT_EQ(all[0].reason, "no such hardware");
  EXPECT_EQ(all[2].name, "SPARE:Y");
  EXPECT_EQ(all[3].name, "SPARE:X:other");
  EXPECT_EQ(all[3].reason, "no emulator");
  EXPECT_TRUE(all[4].works);
}

TEST_F(Registry, SaysWhatEachOpenedDeviceHasRun) {
  Device& fake = find_device("FAKE");
  const auto opened_that_ran = [](uint64_t kernels) { return std::ranges::count(opened_devices(), kernels, &DeviceStatistics::kernels); };
  const auto idle = opened_that_ran(0);
  fake.launches().add_kernels(3);
  EXPECT_EQ(opened_that_ran(3), 1);
  EXPECT_EQ(opened_that_ran(0), idle - 1);
  find_device("FAKE:9");
  EXPECT_EQ(opened_that_ran(0), idle);
}

TEST_F(Registry, ManyThreadsOpenOnce) {
  opened = 0;
  std::vector<Device*> got(8);
  {
    std::vector<std::jthread> threads;
    for (Device*& d : got) threads.emplace_back([&d] { d = &find_device("FAKE:77"); });
  }
  EXPECT_EQ(opened, 1);
  for (Device* d : got) EXPECT_EQ(d, got[0]);
}

TEST_F(Registry, FailedOpeningIsTriedAgain) {
  EXPECT_THROW(find_device("FLAKY"), DeviceError);
  may_open = true;
  EXPECT_EQ(find_device("FLAKY").name(), Symbol("FLAKY"));
}

}  // namespace
}  // namespace tinygrad
