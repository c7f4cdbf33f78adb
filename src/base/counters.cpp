#include <tinygrad/counters.h>

namespace tinygrad {

constinit std::atomic<uint64_t> GlobalCounters::global_ops{0};
constinit std::atomic<uint64_t> GlobalCounters::global_mem{0};
constinit std::atomic<double> GlobalCounters::time_sum_s{0};
constinit std::atomic<uint64_t> GlobalCounters::kernel_count{0};
constinit std::atomic<int64_t> GlobalCounters::mem_used{0};

void GlobalCounters::reset() noexcept {
  global_ops = 0;
  global_mem = 0;
  time_sum_s = 0;
  kernel_count = 0;
}

}  // namespace tinygrad
