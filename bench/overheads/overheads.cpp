// A tensor made of a number, where no device is named; and a device whose kernels do nothing, and whose memory is never touched:
// nanoseconds that a replay takes for each kernel, and that memory from the cache takes, as one JSON object.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include <tinygrad/tinygrad.h>

using namespace tinygrad;
using Clock = std::chrono::steady_clock;

namespace {

/// Median nanoseconds of a call, of batches of them.
double nanoseconds(const std::function<void()>& call) {
  constexpr int batch = 50, batches = 501;
  std::vector<double> times;
  for (int i = 0; i < batches; ++i) {
    const auto start = Clock::now();
    for (int k = 0; k < batch; ++k) call();
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / batch);
  }
  std::nth_element(times.begin(), times.begin() + batches / 2, times.end());
  return times[batches / 2];
}

/// A replayed call with this many kernels on NULL.
double replay(uint64_t kernels) {
  const auto chain = jit([&](const Tensor& x) {
    Tensor y = x;
    for (uint64_t i = 0; i < kernels; ++i) y = (y * 0.5 + 1).realize();
    return y;
  });
  const Tensor x = Tensor::rand({16}).realize();
  for (int i = 0; i < 3; ++i) chain(x);  // runs, is captured
  GlobalCounters::reset();
  chain(x);
  if (GlobalCounters::kernel_count != kernels) std::abort();
  return nanoseconds([&] { chain(x); });
}

/// A realize, in a loop without jit, of this many kernels on NULL.
double eager(int kernels) {
  Tensor x = Tensor::rand({16, 16}).realize();
  const auto step = [&] {
    Tensor y = x;
    for (int i = 0; i < kernels; ++i) y = y.matmul(x);
    y.realize();
  };
  for (int i = 0; i < 3; ++i) step();
  return nanoseconds(step);
}

/// Taking and giving back `sizes` blocks of different sizes in turn. All of them are in use at first, as no more is kept than was needed.
double allocation(size_t sizes) {
  Allocator& a = Device::get("CPU").allocator();
  const auto size_of = [](size_t i) { return 4096 + 64 * i; };
  std::vector<void*> all;
  for (size_t i = 0; i < sizes; ++i) all.push_back(a.allocate(size_of(i), {}));
  for (size_t i = 0; i < sizes; ++i) a.deallocate(all[i], size_of(i), {});
  size_t next = 0;
  return nanoseconds([&] {
    const size_t bytes = size_of(next);
    next = (next + 1) % sizes;
    void* memory = a.allocate(bytes, {});
    a.deallocate(memory, bytes, {});
  });
}

}  // namespace

int main() {
  unsetenv("DEV");  // as users have it
  const double tensor = nanoseconds([] { Tensor(1.0); });
  const Context on_null{{.dev = "NULL"}};
  available_devices();
  const double one = replay(1), hundred = replay(100);
  std::printf(R"({"tensor": %.0f, "kernel": %.1f, "call": %.0f, "eager": %.0f, "eager_kernel": %.0f, "same": %.1f, "sizes": %.1f})"
              "\n",
              tensor, (hundred - one) / 99, one, eager(1), (eager(20) - eager(1)) / 19, allocation(1), allocation(100));
}
