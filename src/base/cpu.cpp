#include "base/cpu.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/options.h"
#include "base/parse.h"

namespace tinygrad {
namespace {

constexpr int kMaxCpus = 8192;

/// The first line of a file, empty when there is none.
std::string first_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  return line;
}

/// 0 for the first hyper-thread of its core, 1 for the second, ...
int sibling_index(int cpu) {
  // "0,64" or "0-1"; a range is of neighbours.
  std::string siblings = first_line(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
  std::istringstream text(siblings);
  int index = 0;
  for (std::string part; std::getline(text, part, ',');) {
    int low = 0, high = 0;
    size_t dash = part.find('-');
    if (!parse_value(part.substr(0, dash), low)) return 0;
    high = low;
    if (dash != part.npos && !parse_value(part.substr(dash + 1), high)) return 0;
    if (cpu <= high) return index + std::max(0, cpu - low);
    index += high - low + 1;
  }
  return 0;
}

/// "quota period" in microseconds as CPUs, rounded up; 0 for no limit ("max", -1) or no such file.
size_t quota_of(const std::string& text) {
  std::istringstream words(text);
  std::string quota;
  long period = 0, allowed = 0;
  if (!(words >> quota >> period) || period <= 0 || !parse_value(quota, allowed) || allowed <= 0) return 0;
  return static_cast<size_t>((allowed + period - 1) / period);
}

}  // namespace

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  if (set && sched_getaffinity(0, size, set) == 0) {
    for (int cpu = 0; cpu < kMaxCpus; cpu++)
      if (CPU_ISSET_S(static_cast<size_t>(cpu), size, set)) cpus.push_back(cpu);
  }
  if (set) CPU_FREE(set);
  if (cpus.empty()) cpus.push_back(0);
  std::vector<std::pair<int, int>> order;
  for (int cpu : cpus) order.emplace_back(sibling_index(cpu), cpu);
  std::ranges::sort(order);
  std::ranges::transform(order, cpus.begin(), [](auto& entry) { return entry.second; });
  return cpus;
}

size_t detail::cgroup_quota(const std::string& root, const std::string& membership) {
  size_t quota = 0;
  auto limit = [&](size_t found) { quota = found && quota ? std::min(found, quota) : std::max(found, quota); };
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    // "0::/path" for version 2, "3:cpu,cpuacct:/path" for version 1.
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",", path = line.substr(second + 1);
    bool unified = controllers == ",,";
    if (!unified && controllers.find(",cpu,") == controllers.npos) continue;
    // A limit of any group above holds too. In a container the path may not exist; its own limits are then at the root.
    for (;; path.resize(path.rfind('/'))) {
      while (!path.empty() && path.back() == '/') path.pop_back();
      if (unified) {
        limit(quota_of(first_line(fmt::format("{}{}/cpu.max", root, path))));
      } else {
        std::string prefix = fmt::format("{}/cpu{}/cpu.cfs_", root, path);
        limit(quota_of(fmt::format("{} {}", first_line(prefix + "quota_us"), first_line(prefix + "period_us"))));
      }
      if (path.find('/') == path.npos) break;
    }
  }
  return quota;
}

size_t cpu_quota() {
  std::ostringstream membership;
  membership << std::ifstream("/proc/self/cgroup").rdbuf();
  return detail::cgroup_quota("/sys/fs/cgroup", membership.str());
}

size_t cpu_thread_count(const Options& options) {
  if (options.num_cpu_threads > 0) return static_cast<size_t>(options.num_cpu_threads);
  // The machine does not change under a running process; the files are read once.
  static const size_t available = [] {
    size_t cpus = allowed_cpus().size(), quota = cpu_quota();
    return quota ? std::min(quota, cpus) : cpus;
  }();
  return available;
}

bool pin_current_thread(int cpu) {
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  if (!set) return false;
  size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  CPU_ZERO_S(size, set);
  CPU_SET_S(static_cast<size_t>(cpu), size, set);
  bool done = sched_setaffinity(0, size, set) == 0;
  CPU_FREE(set);
  return done;
}

}  // namespace tinygrad
