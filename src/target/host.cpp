#include <fstream>
#include <string>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "target/target.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tinygrad {
namespace {

#if defined(__x86_64__)
std::string_view amd_core(bool avx512) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx || !__get_cpuid(1, &a, &b, &c, &d)) return {};
  const unsigned family = ((a >> 8) & 15) + ((a >> 20) & 255);
  if (family == 0x19) return avx512 ? "znver4" : "znver3";
  if (family == 0x1a && avx512) return "znver4";  // what follows it has all of it
  return {};
}

/// The server cores of Intel from Ice Lake on, by what the compiler takes for granted there.
std::string_view intel_core() {
  const bool icelake = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi") &&
                       __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bitalg") &&
                       __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512ifma") &&
                       __builtin_cpu_supports("gfni") && __builtin_cpu_supports("vpclmulqdq");
  if (!icelake) return {};
  const bool sapphire_rapids =
      __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512fp16") && __builtin_cpu_supports("avxvnni");
  return sapphire_rapids ? "sapphirerapids" : "icelake-server";
}

std::string_view host_arch() {
  __builtin_cpu_init();
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool zen4 = v4 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16");
  if (std::string_view amd = v3 && (zen4 || !v4) ? amd_core(zen4) : std::string_view(); !amd.empty()) return amd;
  if (std::string_view intel = v4 && __builtin_cpu_is("intel") ? intel_core() : std::string_view(); !intel.empty()) return intel;
  if (v4) return "x86-64-v4";
  if (v3) return "x86-64-v3";
  if (__builtin_cpu_supports("sse4.2")) return "x86-64-v2";
  throw DeviceError("CPU: kernels need a processor with SSE 4.2 (x86-64-v2) or newer");
}
#else
std::string_view host_arch() { throw DeviceError("CPU: kernels are generated for x86-64 processors only; use DEV=INTERP on this machine"); }
#endif

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Size of the data cache of a level, of the first CPU; 0 when the system does not say.
int64_t cache_bytes(int level) {
  for (int i = 0; i < 8; ++i) {
    const std::string dir = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    if (first_line(dir + "level") != std::to_string(level) || first_line(dir + "type") == "Instruction") continue;
    const std::string size = first_line(dir + "size");  // "512K"
    const int64_t number = std::atoll(size.c_str());
    return size.ends_with('M') ? number << 20 : size.ends_with('K') ? number << 10 : number;
  }
  return 0;
}

Target detect() {
  Target t = cpu_target(host_arch());
  if (int64_t n = cache_bytes(1)) t.l1_bytes = n;
  if (int64_t n = cache_bytes(2)) t.l2_bytes = n;
  if (int64_t n = cache_bytes(3)) t.l3_bytes = n;
  return t;
}

}  // namespace

Target host_cpu_target() {
  static const Target host = detect();
  return host;
}

}  // namespace tinygrad
