#include "target/host_core.h"

#include <gtest/gtest.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "support/temp_folder.h"

namespace tinygrad {
namespace {

TEST(HostCore, NamesProcessors) {
  EXPECT_EQ(nearest_core({"AuthenticAMD", 0x19, 0x01}, 256, "haswell"), "zen3");
  EXPECT_EQ(nearest_core({"AuthenticAMD", 0x19, 0x11}, 512, "haswell"), "zen4");
  EXPECT_EQ(nearest_core({"AuthenticAMD", 0x17, 0x31}, 256, "haswell"), "zen2");
  EXPECT_EQ(nearest_core({"AuthenticAMD", 0x17, 0x01}, 256, "haswell"), "zen1");
  EXPECT_EQ(nearest_core({"GenuineIntel", 6, 0x8f}, 512, "haswell"), "golden_cove");
  EXPECT_EQ(nearest_core({"GenuineIntel", 6, 0x55}, 512, "haswell"), "skylake_server");
  EXPECT_EQ(nearest_core({"GenuineIntel", 6, 0x97}, 256, "haswell"), "golden_cove_client");
  EXPECT_EQ(nearest_core({"GenuineIntel", 6, 0xc6}, 256, "haswell"), "lion_cove");
  EXPECT_EQ(nearest_core({"GenuineIntel", 6, 0xaf}, 256, "haswell"), "gracemont");
}

TEST(HostCore, TakesTheNewestForModelsThatItDoesNotKnow) {
  EXPECT_EQ(nearest_core({"AuthenticAMD", 0x1b, 0x77}, 512, "haswell"), "zen5");
  EXPECT_EQ(nearest_core({"GenuineIntel", 6, 0xff}, 512, "haswell"), "golden_cove");
  EXPECT_EQ(nearest_core({"GenuineIntel", 19, 1}, 256, "haswell"), "golden_cove_client");
  EXPECT_EQ(nearest_core({"AnotherMaker", 6, 1}, 256, "haswell"), "haswell");
  EXPECT_EQ(nearest_core({"AuthenticAMD", 0x10, 1}, 128, "nehalem"), "nehalem");
}

TEST(HostCore, EveryNameHasNumbers) {
  for (const std::string_view name : cpu_core_names()) {
    const CpuCore core = cpu_core(name);
    EXPECT_EQ(core.name.str(), name);
    EXPECT_FALSE(core.is_measured);
    EXPECT_GE(core.l1_ways, 2);
    EXPECT_GE(core.l2_bytes_a_cycle, core.l3_bytes_a_cycle);
    EXPECT_GE(core.l3_bytes_a_cycle, core.memory_bytes_a_cycle);
  }
  EXPECT_THROW(cpu_core("pentium"), ValueError);
  for (unsigned model = 0; model < 256; ++model)
    for (const char* vendor : {"GenuineIntel", "AuthenticAMD", "HygonGenuine"})
      for (const unsigned family : {0x6u, 0x17u, 0x18u, 0x19u, 0x1au})
        for (const int bits : {128, 256, 512}) EXPECT_NO_THROW(cpu_core(nearest_core({vendor, family, model}, bits, "haswell")));
}

TEST(HostCore, NumbersAreKeptAndForgotten) {
  const test::TempFolder folder;
  const std::string path = folder.path("cache.db");
  const Context with_cache{{.cachedb = path.c_str(), .cachelevel = 2, .ccache = true}};
  Target host = host_cpu_target();
  forget_host_core();
  EXPECT_FALSE(kept_core(host));
  CpuCore core = host.core;
  core.memory_bytes_a_cycle = 3.25;
  core.lines_in_flight = 11;
  keep_host_core(core);
  const auto kept = kept_core(host);
  ASSERT_TRUE(kept);
  EXPECT_TRUE(kept->is_measured);
  EXPECT_EQ(kept->memory_bytes_a_cycle, 3.25);
  EXPECT_EQ(kept->lines_in_flight, 11);
  EXPECT_EQ(kept->l1_ways, host.core.l1_ways);
  host.l2_bytes += 1;
  EXPECT_FALSE(kept_core(host)) << "of another machine";
  core.l2_bytes_a_cycle = -1;
  EXPECT_THROW(keep_host_core(core), ValueError);
  forget_host_core();
  EXPECT_FALSE(kept_core(host_cpu_target()));
}

TEST(HostCore, SaysThatNumbersAreNotKept) {
  const test::TempFolder folder;
  const std::string path = folder.path("cache.db"), no_folder = folder.write("file", "") + "/cache.db";
  const Context off{{.cachedb = path.c_str(), .cachelevel = 0}};
  EXPECT_THROW(keep_host_core(host_cpu_target().core), DeviceError);
  EXPECT_NO_THROW(forget_host_core());
  const Context nowhere{{.cachedb = no_folder.c_str(), .cachelevel = 2, .ccache = true}};
  EXPECT_THROW(keep_host_core(host_cpu_target().core), DeviceError);
  EXPECT_NO_THROW(forget_host_core());
}

TEST(HostCore, NumbersAreInTheKeyOfATarget) {
  const Target base = cpu_target("znver3");
  Target t = base;
  t.core.memory_cycles += 1;
  EXPECT_NE(t.key(), base.key());
  t = base;
  t.core.l2_ways *= 2;
  EXPECT_NE(t.key(), base.key());
}

}  // namespace
}  // namespace tinygrad
