#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tinygrad {

struct Options;

/// The CPUs that the calling thread may run on: one of each physical core first, then their hyper-threads.
std::vector<int> allowed_cpus();

/// CPUs' worth of time that the process's control groups allow, rounded up; 0 is no limit.
size_t cpu_quota();

/// NUM_CPU_THREADS, or where it is 0 as many as the affinity mask and the quota allow.
size_t cpu_thread_count(const Options& options);

/// Keeps the calling thread on one CPU; false when the system refuses.
bool pin_current_thread(int cpu);

namespace detail {
/// The quota under a cgroup file system at `root`, for a process whose /proc/self/cgroup is `membership`.
size_t cgroup_quota(const std::string& root, const std::string& membership);
}  // namespace detail

}  // namespace tinygrad
