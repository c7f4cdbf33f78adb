#include <cstring>
#include <fstream>
#include <string>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/cpu.h"
#include "base/options.h"
#include "target/host_core.h"
#include "target/host_tiles.h"
#include "target/target.h"
#include "target/tensor_cores/tile_products.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tinygrad {
namespace {

#if defined(__x86_64__)
CpuId cpu_id() {
  char vendor[13] = {};
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return {};
  std::memcpy(vendor, &b, 4), std::memcpy(vendor + 4, &d, 4), std::memcpy(vendor + 8, &c, 4);
  if (!__get_cpuid(1, &a, &b, &c, &d)) return {};
  const unsigned family = (a >> 8) & 15, model = (a >> 4) & 15, more = (a >> 16) & 15;
  return {.vendor = vendor,
          .family = family + (family == 15 ? (a >> 20) & 255 : 0),
          .model = model + (family == 6 || family == 15 ? more << 4 : 0)};
}

/// Dot products of vectors of 256 bits, in leaf 7.1 of CPUID: AVX-VNNI, and AVX-VNNI-INT8 with what its processors have besides
/// (AVX-IFMA, AVX-NE-CONVERT, CMPCCXADD).
struct ShortProducts {
  bool any_factors = false, any_signs = false;
};

ShortProducts has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d)) return {};
  constexpr unsigned avx_vnni = 1 << 4, cmpccxadd = 1 << 7, avx_ifma = 1 << 23;  // in eax
  constexpr unsigned avx_vnni_int8 = 1 << 4, avx_ne_convert = 1 << 5;            // in edx
  constexpr unsigned first = avx_vnni | cmpccxadd | avx_ifma, last = avx_vnni_int8 | avx_ne_convert;
  return {(a & avx_vnni) != 0, (a & first) == first && (d & last) == last};
}

std::string_view amd_arch(bool avx512) {
  const CpuId id = cpu_id();
  if (id.vendor != "AuthenticAMD") return {};
  if (id.family == 0x17 && id.model >= 0x30) return "znver2";
  if (id.family == 0x19) return avx512 ? "znver4" : "znver3";
  if (id.family == 0x1a && avx512) return has_avx_vnni().any_factors ? "znver5" : "znver4";
  return {};
}

/// What of the host decides which kernels it runs. Of a processor's extensions these are what compilers use by themselves: they neither
/// begin transactions nor use the matrix registers of AMX, which kernels have where keep_usable_tiles() leaves them tensor cores for it.
struct HostFeatures {
  bool v2, v3, v4, vnni, bf16, icelake, sapphire_rapids, sse4a;
  bool alder_lake, arrow_lake;  ///< dot products without AVX-512
};

HostFeatures host_features() {
  __builtin_cpu_init();
  HostFeatures f{};
  f.v2 = __builtin_cpu_supports("sse4.2");
  f.v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  f.v4 = f.v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  f.vnni = f.v4 && __builtin_cpu_supports("avx512vnni");
  f.bf16 = f.v4 && __builtin_cpu_supports("avx512bf16");
  f.icelake = f.vnni && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
              __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512ifma") &&
              __builtin_cpu_supports("gfni") && __builtin_cpu_supports("vpclmulqdq");
  const ShortProducts products = has_avx_vnni();
  f.sapphire_rapids = f.icelake && f.bf16 && __builtin_cpu_supports("avx512fp16") && products.any_factors;
  f.alder_lake = f.v3 && products.any_factors && __builtin_cpu_supports("gfni") && __builtin_cpu_supports("vpclmulqdq");
  f.arrow_lake = f.alder_lake && products.any_signs;
  f.sse4a = __builtin_cpu_supports("sse4a");
  return f;
}

std::string_view host_arch() {
  const HostFeatures f = host_features();
  const bool zen4 = f.vnni && f.bf16;
  if (std::string_view amd = f.v3 && (zen4 || !f.v4) ? amd_arch(zen4) : std::string_view(); !amd.empty()) return amd;
  if (f.icelake && __builtin_cpu_is("intel")) return f.sapphire_rapids ? "sapphirerapids" : "icelake-server";
  if (f.v4) return "x86-64-v4";
  if (f.alder_lake && __builtin_cpu_is("intel")) return f.arrow_lake ? "arrowlake" : "alderlake";
  if (f.v3) return "x86-64-v3";
  if (f.v2) return "x86-64-v2";
  throw DeviceError("CPU: kernels need a processor with SSE 4.2 (x86-64-v2) or newer");
}

bool has_all_of(std::string_view arch) {
  const HostFeatures f = host_features();
  if (arch == "x86-64-v2") return f.v2;
  if (arch == "x86-64-v3" || arch == "haswell" || arch == "broadwell" || arch == "skylake") return f.v3;
  if (arch == "alderlake") return f.alder_lake;
  if (arch == "arrowlake" || arch == "sierraforest") return f.arrow_lake;
  if (arch == "x86-64-v4" || arch == "skylake-avx512") return f.v4;
  if (arch == "cascadelake") return f.vnni;
  if (arch == "cooperlake") return f.vnni && f.bf16;
  if (arch == "icelake-server") return f.icelake;
  if (arch == "sapphirerapids" || arch == "emeraldrapids" || arch == "graniterapids") return f.sapphire_rapids;
  if (arch == "znver2" || arch == "znver3") return f.v3 && f.sse4a;
  if (arch == "znver4") return f.icelake && f.bf16 && f.sse4a;
  return arch == "znver5" && f.icelake && f.bf16 && f.sse4a && has_avx_vnni().any_factors;
}

bool has_tiles_for(const TensorCore& core) {
  __builtin_cpu_init();
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__builtin_cpu_supports("amx-tile") || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  constexpr unsigned bf16_bit = 22, int8_bit = 25, fp16_bit = 21;  // the last of leaf 7.1
  const bool has_bf16 = d >> bf16_bit & 1, has_int8 = d >> int8_bit & 1;
  const bool has_fp16 = a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> fp16_bit & 1);
  const bool has = core.a_type == DType::bfloat16 ? has_bf16 : core.a_type == DType::float16 ? has_fp16 : has_int8;
  return has && request_tiles();
}
#else
bool has_tiles_for(const TensorCore&) { return false; }
CpuId cpu_id() { return {}; }
bool has_all_of(std::string_view) { return false; }
std::string_view host_arch() { throw DeviceError("CPU: kernels are generated for x86-64 processors only; use DEV=INTERP on this machine"); }
#endif

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

struct DataCache {
  int64_t bytes = 0;
  int ways = 0;
};

/// The data cache of a level, of the first CPU; zeros where the system does not say.
DataCache data_cache(int level) {
  for (int i = 0; i < 8; ++i) {
    const std::string dir = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    if (first_line(dir + "level") != std::to_string(level) || first_line(dir + "type") == "Instruction") continue;
    const std::string size = first_line(dir + "size");  // "512K"
    const int64_t number = std::atoll(size.c_str());
    return {.bytes = size.ends_with('M')   ? number << 20
                     : size.ends_with('K') ? number << 10
                                           : number,
            .ways = std::atoi(first_line(dir + "ways_of_associativity").c_str())};
  }
  return {};
}

Target detect() {
  Target t = cpu_target(host_arch());
  keep_usable_tiles(t);
  t.core = cpu_core(nearest_core(cpu_id(), t.vector_bits, t.core.name.str()));
  const DataCache l1 = data_cache(1), l2 = data_cache(2), l3 = data_cache(3);
  if (l1.bytes > 0) t.l1_bytes = l1.bytes;
  if (l2.bytes > 0) t.l2_bytes = l2.bytes;
  if (l3.bytes > 0) t.l3_bytes = l3.bytes;
  if (l1.ways > 0) t.core.l1_ways = l1.ways;
  if (l2.ways > 0) t.core.l2_ways = l2.ways;
  t.threads = int(cpu_thread_count(current_options()));
  if (const auto kept = kept_core(t)) t.core = *kept;
  return t;
}

}  // namespace

/// arch_prctl(2), and "Using XSTATE features in user space applications" of the kernel's documentation.
bool request_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool is_given = ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return is_given;
#else
  return false;
#endif
}

void keep_usable_tiles(Target& target) {
  std::erase_if(target.tensor_cores, [](const TensorCore& core) { return multiplies_tiles(core) && !has_tiles_for(core); });
}

bool host_runs(std::string_view arch) { return has_all_of(arch); }

Target host_cpu_target() {
  static const auto& host = *new Target(detect());
  return host;
}

}  // namespace tinygrad
