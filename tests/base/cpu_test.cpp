#include "base/cpu.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <tinygrad/context.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/options.h"

namespace tinygrad {
namespace {

namespace fs = std::filesystem;

class CgroupFiles : public testing::Test {
 protected:
  CgroupFiles() : root_(fs::path(testing::TempDir()) / ("cgroup" + std::to_string(getpid()))) { fs::create_directories(root_); }
  ~CgroupFiles() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  size_t quota(const std::string& membership) { return detail::cgroup_quota(root_.string(), membership); }

 private:
  fs::path root_;
};

TEST_F(CgroupFiles, NoFilesIsNoLimit) {
  EXPECT_EQ(quota("0::/\n"), 0u);
  EXPECT_EQ(quota(""), 0u);
  EXPECT_EQ(quota("nonsense"), 0u);
}

TEST_F(CgroupFiles, Version2TakesTheTightestLimitOnThePath) {
  write("cpu.max", "max 100000\n");
  write("a/cpu.max", "250000 100000\n");
  write("a/b/cpu.max", "800000 100000\n");
  EXPECT_EQ(quota("0::/\n"), 0u);
  EXPECT_EQ(quota("0::/a\n"), 3u);
  EXPECT_EQ(quota("0::/a/b\n"), 3u);
  EXPECT_EQ(quota("0::/not/here\n"), 0u);
}

TEST_F(CgroupFiles, Version1) {
  write("cpu/cpu.cfs_quota_us", "-1\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("3:cpu,cpuacct:/\n"), 0u);
  write("cpu/box/cpu.cfs_quota_us", "50000\n");
  write("cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("4:memory:/other\n3:cpu,cpuacct:/box\n0::/\n"), 1u);
  EXPECT_EQ(quota("4:cpuset:/box\n"), 0u);
}

TEST_F(CgroupFiles, GarbageIsNoLimit) {
  write("cpu.max", "lots of it\n");
  EXPECT_EQ(quota("0::/\n"), 0u);
  write("cpu.max", "100000 0\n");
  EXPECT_EQ(quota("0::/\n"), 0u);
}

TEST(Cpu, AllowedCpusAreThoseOfTheAffinityMask) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus = allowed_cpus();
  EXPECT_EQ(cpus.size(), static_cast<size_t>(CPU_COUNT(&set)));
  for (int cpu : cpus) EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(cpu), &set));
  std::ranges::sort(cpus);
  EXPECT_EQ(std::ranges::adjacent_find(cpus), cpus.end());
}

TEST(Cpu, PinningOneThreadLeavesTheOthers) {
  std::vector<int> before = allowed_cpus();
  std::thread([&] {
    ASSERT_TRUE(pin_current_thread(before.back()));
    EXPECT_EQ(allowed_cpus(), std::vector<int>{before.back()});
    EXPECT_FALSE(pin_current_thread(8000));
  }).join();
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(Cpu, ThreadCountFollowsTheOption) {
  EXPECT_GE(cpu_thread_count(Options{}), 1u);
  EXPECT_LE(cpu_thread_count(Options{}), std::max<size_t>(allowed_cpus().size(), 1));
  Options options;
  options.num_cpu_threads = 7;
  EXPECT_EQ(cpu_thread_count(options), 7u);
}

}  // namespace
}  // namespace tinygrad
