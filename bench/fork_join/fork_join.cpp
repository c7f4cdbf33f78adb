// The compute pool: microseconds of a job with a piece for each thread when threads are awake and when they sleep, and of CPU time that
// they take when there is nothing to do, as one JSON object.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>
#include <vector>

#include "base/cpu.h"
#include "base/options.h"
#include "base/thread_pool.h"

using namespace tinygrad;
using Clock = std::chrono::steady_clock;

namespace {

double since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

void work(double microseconds) {
  for (const auto start = Clock::now(); since(start) < microseconds;) {}
}

/// Median of jobs with a piece of so many microseconds for each thread, with a pause before each.
double job(ComputePool& pool, double piece, std::chrono::microseconds pause, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const auto start = Clock::now();
    pool.run(pool.threads(), [&](size_t begin, size_t end) { work(piece * static_cast<double>(end - begin)); });
    times.push_back(since(start));
  }
  std::nth_element(times.begin(), times.begin() + count / 2, times.end());
  return times[static_cast<size_t>(count) / 2];
}

double cpu_microseconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

}  // namespace

int main() {
  using std::chrono::microseconds;
  ComputePool pool(cpu_thread_count(current_options()));
  const double hot = job(pool, 5, microseconds(0), 20000) - 5, asleep = job(pool, 5, microseconds(2000), 300) - 5;
  const double before = cpu_microseconds();
  std::this_thread::sleep_for(microseconds(200'000));
  std::printf(R"({"threads": %zu, "hot": %.2f, "asleep": %.1f, "idle": %.0f})"
              "\n",
              pool.threads(), hot, asleep, cpu_microseconds() - before);
}
