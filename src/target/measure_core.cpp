// The numbers of the machine's core, measured: loops of a few instructions on one pinned thread, the best of many short runs, as others
// share the machine. Cycles are those of a chain of dependent additions, each of which takes one on all processors.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <sys/mman.h>

#include <tinygrad/errors.h>

#include "base/cpu.h"
#include "target/target.h"

namespace tinygrad {
namespace {

using Clock = std::chrono::steady_clock;

/// Least seconds of a run, among `runs`.
template <class F>
double seconds_of(int runs, F&& run) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

/// Keeps a value in a register, and the compiler from knowing it.
template <class T>
void hide(T& x) {
  asm volatile("" : "+r"(x));
}

double cycles_a_second() {
  constexpr int64_t rounds = 1 << 16, chain = 16;
  return double(rounds * chain) / seconds_of(200, [] {
           int64_t x = 0;
           for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
             for (int k = 0; k < chain; ++k) {
               x += i;
               hide(x);
             }
           }
         });
}

/// Vectors as wide as the machine's, what it does with them, and bytes of each.
struct VectorLoops {
  int bytes;
  void (*multiply_adds)(int64_t rounds);  ///< 16 independent ones a round
  void (*chain)(int64_t rounds);          ///< 16 of them, each of which needs the one before
  void (*read)(const std::byte* memory, size_t bytes);
};

#if defined(__x86_64__)
// Assembly, as these run what they name, whatever this file is compiled for.
#define TG_16(X) X("0") X("1") X("2") X("3") X("4") X("5") X("6") X("7") X("8") X("9") X("10") X("11") X("12") X("13") X("0") X("1")
#define TG_CLOBBERS                                                                                                                   \
  "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15"
#define TG_FMA_YMM(i) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" i "\n"
#define TG_FMA_ZMM(i) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" i "\n"
#define TG_FMA_CHAIN(i) "vfmadd231ps %%ymm14, %%ymm15, %%ymm0\n"
#define TG_ROUNDS(X) [](int64_t n) { asm volatile("vzeroall\n1:\n" TG_16(X) "dec %0\njnz 1b\nvzeroupper\n" : "+r"(n) : : TG_CLOBBERS); }
#define TG_READ(vector, bytes)                                                                                               \
  [](const std::byte* at, size_t count) {                                                                                    \
    const std::byte* end = at + count;                                                                                       \
    asm volatile("1:\nvmovups (%0), %%" vector "0\nvmovups " bytes "(%0), %%" vector "1\nvmovups 2*" bytes "(%0), %%" vector \
                 "2\nvmovups 3*" bytes "(%0), %%" vector "3\nadd $4*" bytes ", %0\ncmp %1, %0\njb 1b\nvzeroupper\n"          \
                 : "+r"(at)                                                                                                  \
                 : "r"(end)                                                                                                  \
                 : TG_CLOBBERS);                                                                                             \
  }
constexpr VectorLoops kAvx512{64, TG_ROUNDS(TG_FMA_ZMM), TG_ROUNDS(TG_FMA_CHAIN), TG_READ("zmm", "64")};
constexpr VectorLoops kAvx2{32, TG_ROUNDS(TG_FMA_YMM), TG_ROUNDS(TG_FMA_CHAIN), TG_READ("ymm", "32")};

const VectorLoops* vector_loops(const Target& host) {
  return host.vector_bits >= 512 ? &kAvx512 : host.vector_bits >= 256 ? &kAvx2 : nullptr;
}
#else
const VectorLoops* vector_loops(const Target&) { return nullptr; }
#endif

/// Memory in huge pages, where the system has them, so that no page walks are measured.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_((bytes + kHuge - 1) / kHuge * kHuge + kHuge) {
    at_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at_ == MAP_FAILED) throw OutOfMemoryError("CPU: no memory to measure with");
    ::madvise(at_, bytes_, MADV_HUGEPAGE);
    std::memset(at_, 1, bytes_);
  }
  ~Pages() { ::munmap(at_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(at_) + kHuge - 1) / kHuge * kHuge); }

 private:
  static constexpr size_t kHuge = 2 << 20;
  size_t bytes_;
  void* at_;
};

/// Bytes a second of reading an array again and again.
double read_rate(const VectorLoops& loops, const std::byte* memory, size_t bytes) {
  bytes = bytes / 4096 * 4096;
  const int64_t times = std::max<int64_t>(1, int64_t((4 << 20) / bytes));
  return double(bytes) * double(times) / seconds_of(bytes > (32 << 20) ? 8 : 100, [&] {
           for (int64_t i = 0; i < times; ++i) loops.read(memory, bytes);
         });
}

/// Lines of memory in an order that no processor foresees, each of which says where the next one lies.
class ScatteredLines {
 public:
  ScatteredLines(std::byte* memory, size_t bytes) : memory_(memory), order_(bytes / kLine) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::ranges::shuffle(order_, std::mt19937(1));
    for (size_t i = 0; i < order_.size(); ++i) next_of(order_[i]) = order_[(i + 1) % order_.size()];
  }

  /// Seconds of a step of so many chains at once.
  double step_seconds(int chains) {
    constexpr size_t steps = 1 << 13;
    std::vector<uint32_t> at(size_t(chains), 0);
    return seconds_of(32,
                      [&] {
                        for (size_t c = 0; c < at.size(); ++c) at[c] = order_[(start_ + c * order_.size() / at.size()) % order_.size()];
                        for (size_t s = 0; s < steps; ++s)
                          for (uint32_t& a : at) a = next_of(a);
                        for (uint32_t a : at) hide(a);
                        start_ += steps;
                      }) /
           double(steps);
  }

 private:
  static constexpr size_t kLine = 64;
  uint32_t& next_of(size_t line) const { return *reinterpret_cast<uint32_t*>(memory_ + line * kLine); }

  std::byte* memory_;
  std::vector<uint32_t> order_;
  size_t start_ = 0;
};

}  // namespace

CpuCore measure_host_core() {
  const Target host = host_cpu_target();
  CpuCore core = host.core;
  std::exception_ptr failed;
  // A thread of its own, so that the caller's affinity stays.
  std::thread measuring([&] {
    try {
      if (const std::vector<int> cpus = allowed_cpus(); !cpus.empty()) pin_current_thread(cpus.front());
      const double hertz = cycles_a_second();
      const VectorLoops* loops = vector_loops(host);
      if (!loops) throw DeviceError("CPU: this processor's vectors cannot be measured");
      constexpr int64_t rounds = 1 << 15, each = 16;
      const auto of_one = [&](void (*loop)(int64_t)) { return seconds_of(200, [&] { loop(rounds); }) / double(rounds * each) * hertz; };
      core.multiply_add_bits = loops->bytes * 8 / of_one(loops->multiply_adds);
      core.multiply_add_cycles = of_one(loops->chain);
      const size_t l2 = size_t(host.l2_bytes), l3 = size_t(std::max(host.l3_bytes, 4 * host.l2_bytes));
      const size_t far = std::min<size_t>(4 * l3, size_t{512} << 20);
      const Pages pages(far);
      core.l2_bytes_a_cycle = read_rate(*loops, pages.data(), l2 * 3 / 4) / hertz;
      core.l3_bytes_a_cycle = read_rate(*loops, pages.data(), std::min(l3 / 2, 8 * l2)) / hertz;
      core.memory_bytes_a_cycle = read_rate(*loops, pages.data(), far) / hertz;
      ScatteredLines lines(pages.data(), far);
      const double one = lines.step_seconds(1);
      core.memory_cycles = one * hertz;
      core.lines_in_flight = 1;
      for (const int chains : {4, 8, 12, 16, 24, 32, 48})
        core.lines_in_flight = std::max(core.lines_in_flight, chains * one / lines.step_seconds(chains));
    } catch (...) {
      failed = std::current_exception();
    }
  });
  measuring.join();
  if (failed) std::rethrow_exception(failed);
  core.is_measured = true;
  return core;
}

}  // namespace tinygrad
