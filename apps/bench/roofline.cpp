#include "bench/roofline.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace tinygrad::apps {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cpus.push_back(i);
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

/// Threads, one a CPU, that all begin body(thread) together; the seconds of the last.
double run_on_threads(int threads, const std::function<void(int)>& body) {
  const std::vector<int> cpus = allowed_cpus();
  std::atomic<int> waiting{threads};
  std::vector<double> seconds(size_t(threads), 0.0);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpus[size_t(t) % cpus.size()], &one);
      pthread_setaffinity_np(pthread_self(), sizeof one, &one);
      for (--waiting; waiting > 0;) std::this_thread::yield();
      const auto start = Clock::now();
      body(t);
      seconds[size_t(t)] = seconds_since(start);
    });
  for (std::thread& t : all) t.join();
  return *std::ranges::max_element(seconds);
}

/// A loop of independent operations on registers; `each` is how many a round does.
struct Arithmetic {
  void (*loop)(int64_t rounds);
  double each;
};

typedef float Floats4 __attribute__((vector_size(16)));

/// Without a known instruction: what the compiler makes of x * a + b. Values stay finite.
template <size_t... i>
void multiply_add(int64_t rounds, std::index_sequence<i...>) {
  Floats4 x[] = {(Floats4{} + float(i))...};
  const Floats4 half = Floats4{} + 0.5f, one = Floats4{} + 1.0f;
  for (int64_t r = 0; r < rounds; ++r) ((x[i] = x[i] * half + one), ...);
  Floats4 total{};
  ((total += x[i]), ...);
  const volatile float kept = total[0];  // or all of it could be left out
  static_cast<void>(kept);
}
constexpr size_t chains = 12;  // independent ones, which hides how long an instruction takes
constexpr Arithmetic plain{[](int64_t rounds) { multiply_add(rounds, std::make_index_sequence<chains>()); }, 2.0 * 4 * chains};

#if defined(__x86_64__)
// Assembly, as this must run the instruction it names, whatever this file is compiled for. Registers 0 to 11 are added to.
#define TG_CHAINS(X) X("0") X("1") X("2") X("3") X("4") X("5") X("6") X("7") X("8") X("9") X("10") X("11")
#define TG_ZERO(i) "vpxor %%xmm" i ", %%xmm" i ", %%xmm" i "\n"
#define TG_LOOP(X)                                                                                                                  \
  [](int64_t rounds) {                                                                                                              \
    asm volatile(TG_CHAINS(TG_ZERO) TG_ZERO("12") TG_ZERO("13") "1:\n" TG_CHAINS(X) "dec %0\n jnz 1b\n vzeroupper\n"                \
                 : "+r"(rounds)                                                                                                     \
                 :                                                                                                                  \
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
                   "xmm13", "xmm14");                                                                                               \
  }
#define TG_FMA_256(i) "vfmadd231ps %%ymm13, %%ymm12, %%ymm" i "\n"
#define TG_FMA_512(i) "vfmadd231ps %%zmm13, %%zmm12, %%zmm" i "\n"
#define TG_BF16_512(i) "vdpbf16ps %%zmm13, %%zmm12, %%zmm" i "\n"
#define TG_INT8_512(i) "vpdpbusd %%zmm13, %%zmm12, %%zmm" i "\n"
#define TG_INT16_256(i) "vpmaddwd %%ymm13, %%ymm12, %%ymm14\n vpaddd %%ymm14, %%ymm" i ", %%ymm" i "\n"
constexpr Arithmetic fma_256{TG_LOOP(TG_FMA_256), 2.0 * 8 * chains}, fma_512{TG_LOOP(TG_FMA_512), 2.0 * 16 * chains},
    bf16_512{TG_LOOP(TG_BF16_512), 2.0 * 32 * chains}, int8_512{TG_LOOP(TG_INT8_512), 2.0 * 64 * chains},
    int16_256{TG_LOOP(TG_INT16_256), 2.0 * 16 * chains};

Arithmetic fastest(DType dtype) {
  const bool wide = __builtin_cpu_supports("avx512f"), half_wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (wide && dtype == DType::bfloat16 && __builtin_cpu_supports("avx512bf16")) return bf16_512;
  if (wide && dtype == DType::int8 && __builtin_cpu_supports("avx512vnni")) return int8_512;
  if (half_wide && dtype == DType::int8) return int16_256;
  return wide ? fma_512 : half_wide ? fma_256 : plain;
}
#elif defined(__aarch64__)
#define TG_CHAINS(X) X("0") X("1") X("2") X("3") X("4") X("5") X("6") X("7") X("16") X("17") X("18") X("19")
#define TG_FMLA(i) "fmla v" i ".4s, v30.4s, v31.4s\n"
Arithmetic fastest(DType) {
  return {[](int64_t rounds) {
            asm volatile("1:\n" TG_CHAINS(TG_FMLA) "subs %0, %0, #1\n b.ne 1b\n"
                         : "+r"(rounds)
                         :
                         : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v30", "v31");
          },
          2.0 * 4 * chains};
}
#else
Arithmetic fastest(DType) { return plain; }
#endif

// Each measurement is the best of many that take about a millisecond: most of them are over before another program gets the CPU.

double measure_gflops(DType dtype, int threads) {
  const Arithmetic arithmetic = fastest(dtype);
  constexpr int64_t rounds = 1 << 18;
  double best = 0;
  for (int i = 0; i < 30; ++i) {
    const double seconds = run_on_threads(threads, [&](int) { arithmetic.loop(rounds); });
    best = std::max(best, double(rounds) * arithmetic.each * threads / seconds * 1e-9);
  }
  return best;
}

/// Reads memory, a multiple of 256 bytes.
void read_all(const std::byte* bytes, size_t count) {
  const auto* x = reinterpret_cast<const Floats4*>(bytes);
  Floats4 a{}, b{}, c{}, d{};
  for (size_t i = 0; i < count / sizeof(Floats4); i += 16) {
    a += x[i] + x[i + 4] + x[i + 8] + x[i + 12];
    b += x[i + 1] + x[i + 5] + x[i + 9] + x[i + 13];
    c += x[i + 2] + x[i + 6] + x[i + 10] + x[i + 14];
    d += x[i + 3] + x[i + 7] + x[i + 11] + x[i + 15];
  }
  const volatile float kept = (a + b + c + d)[0];
  static_cast<void>(kept);
}

double measure_gb_s(double bytes, int threads) {
  constexpr size_t step = 4096;
  const double all = std::clamp(bytes, double(step) * 4, double(1 << 30));
  const size_t half = std::max(step, size_t(all / threads / 2) / step * step);  // what a thread copies from, and to
  std::vector<std::unique_ptr<std::byte, void (*)(void*)>> memory;
  for (int t = 0; t < threads; ++t) memory.emplace_back(static_cast<std::byte*>(std::aligned_alloc(step, 2 * half)), std::free);
  // Each thread touches its own memory first.
  run_on_threads(threads, [&](int t) { std::memset(memory[size_t(t)].get(), 0, 2 * half); });
  // Large memory by parts, one after the other: when a part's turn comes again it has left the caches.
  const size_t part = std::min(half, size_t(4 << 20)), parts = half / part;
  const auto repeats = std::max<int64_t>(1, int64_t((4 << 20) / part));
  const auto best = [&](auto&& touch) {
    double gb_s = 0;
    for (size_t i = 0; i < std::max<size_t>(parts, 20); ++i) {
      const double seconds = run_on_threads(threads, [&](int t) {
        std::byte* mine = memory[size_t(t)].get() + i % parts * part;
        for (int64_t r = 0; r < repeats; ++r) {
          touch(mine, mine + half);
          asm volatile("" : : "r"(mine) : "memory");
        }
      });
      gb_s = std::max(gb_s, double(repeats) * double(2 * part) * threads / seconds * 1e-9);
    }
    return gb_s;
  };
  const double reading = best([&](const std::byte* a, const std::byte* b) { read_all(a, part), read_all(b, part); });
  const double copying = best([&](const std::byte* from, std::byte* to) { std::memcpy(to, from, part); });
  return std::max(reading, copying);
}

}  // namespace

double Roofline::seconds(double flops, double bytes) const { return std::max(flops / gflops, bytes / gb_s) * 1e-9; }

Roofline measure_roofline(DType dtype, double bytes, int threads) {
  return {.gflops = measure_gflops(dtype, threads), .gb_s = measure_gb_s(bytes, threads), .threads = threads};
}

Roofline higher(const Roofline& a, const Roofline& b) {
  return {.gflops = std::max(a.gflops, b.gflops), .gb_s = std::max(a.gb_s, b.gb_s), .threads = a.threads};
}

int compute_threads() {
  const char* text = std::getenv("NUM_CPU_THREADS");
  const int asked = text ? std::atoi(text) : 0, cpus = int(allowed_cpus().size());
  return asked > 0 ? std::min(asked, cpus) : cpus;  // more would only take turns
}

}  // namespace tinygrad::apps
