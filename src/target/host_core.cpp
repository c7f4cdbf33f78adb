#include "target/host_core.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/disk_cache.h"

namespace tinygrad {
namespace {

struct Models {
  std::string_view core;
  std::array<unsigned, 11> models;
};

// Of Intel's family 6, by the maker's lists. A processor with cores of two kinds counts as the faster kind.
constexpr Models kIntel[] = {
    {"nehalem", {0x1a, 0x1e, 0x1f, 0x2e, 0x25, 0x2c, 0x2f, 0x2a, 0x2d, 0x3a, 0x3e}},  // and what followed it until Ivy Bridge
    {"haswell", {0x3c, 0x3f, 0x45, 0x46, 0x3d, 0x47, 0x4f, 0x56}},                    // and Broadwell
    {"skylake", {0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6}},
    {"skylake_server", {0x55}},
    {"sunny_cove", {0x6a, 0x6c}},
    {"sunny_cove_client", {0x7d, 0x7e, 0x8c, 0x8d, 0xa7}},
    {"golden_cove", {0x8f, 0xcf, 0xad, 0xae}},
    {"golden_cove_client", {0x97, 0x9a, 0xb7, 0xba, 0xbf, 0xaa, 0xac, 0xbd, 0xb5}},
    {"lion_cove", {0xc5, 0xc6}},
    {"gracemont", {0xbe, 0xaf, 0xb6}},
};

std::string_view intel_core(const CpuId& id, int vector_bits) {
  for (const Models& m : kIntel)
    if (id.family == 6 && id.model != 0 && std::ranges::find(m.models, id.model) != m.models.end()) return m.core;
  return vector_bits >= 512 ? "golden_cove" : vector_bits >= 256 ? "golden_cove_client" : "nehalem";
}

std::string_view amd_core(const CpuId& id, int vector_bits) {
  if (id.family < 0x17) return {};
  if (id.family <= 0x18) return id.family == 0x17 && id.model >= 0x30 ? "zen2" : "zen1";
  if (id.family > 0x19) return vector_bits >= 512 ? "zen5" : "zen3";
  return vector_bits >= 512 ? "zen4" : "zen3";
}

constexpr std::string_view kTable = "cpu_core";

/// Opened for a moment: the process's own cache is that of the first kernel, whose configuration may be another one.
DiskCache cache() { return DiskCache(disk_cache_config()); }

/// A cache on disk may move to another machine.
std::string key_of(const Target& host) {
  return fmt::format("{} {} {} {} {}", host.arch.str(), host.core.name.str(), host.l1_bytes, host.l2_bytes, host.l3_bytes);
}

/// What is measured of a core, in the order in which it is kept, and between which numbers it must be.
struct Measured {
  double CpuCore::* number;
  const char* name;
  double least, most;
};
constexpr Measured kMeasured[] = {
    {&CpuCore::multiply_add_bits, "multiply_add_bits", 32, 1 << 14},
    {&CpuCore::multiply_add_cycles, "multiply_add_cycles", 1, 100},
    {&CpuCore::l2_bytes_a_cycle, "l2_bytes_a_cycle", 0.1, 1024},
    {&CpuCore::l3_bytes_a_cycle, "l3_bytes_a_cycle", 0.1, 1024},
    {&CpuCore::memory_bytes_a_cycle, "memory_bytes_a_cycle", 0.01, 1024},
    {&CpuCore::memory_cycles, "memory_cycles", 10, 1e5},
    {&CpuCore::lines_in_flight, "lines_in_flight", 1, 1024},
};

bool is_possible(double n, const Measured& of) { return n >= of.least && n <= of.most; }

}  // namespace

std::string_view nearest_core(const CpuId& id, int vector_bits, std::string_view otherwise) {
  std::string_view core;
  if (id.vendor == "GenuineIntel") core = intel_core(id, vector_bits);
  if (id.vendor == "AuthenticAMD" || id.vendor == "HygonGenuine") core = amd_core(id, vector_bits);
  return core.empty() ? otherwise : core;
}

std::optional<CpuCore> kept_core(const Target& host) {
  const std::string path = disk_cache_config().path;
  if (std::error_code ignored; path.empty() || !std::filesystem::exists(path, ignored)) return {};
  const std::optional<std::string> text = cache().get(kTable, key_of(host));
  if (!text) return {};
  CpuCore core = host.core;
  core.is_measured = true;
  const char *at = text->data(), *end = at + text->size();
  for (const Measured& m : kMeasured) {
    const auto [next, error] = std::from_chars(at, end, core.*m.number);
    if (error != std::errc() || next == end || *next != ' ' || !is_possible(core.*m.number, m)) return {};
    at = next + 1;
  }
  return core;
}

void keep_host_core(const CpuCore& core) {
  std::string text;
  for (const Measured& m : kMeasured) {
    if (!is_possible(core.*m.number, m)) throw ValueError(fmt::format("CPU: {} of {} is not possible", m.name, core.*m.number));
    text += fmt::format("{} ", core.*m.number);
  }
  const Target host = host_cpu_target();
  cache().put(kTable, key_of(host), text);
  if (!kept_core(host))
    throw DeviceError(fmt::format("CPU: the numbers could not be kept, as the disk cache '{}' is switched off, or not to be written",
                                  disk_cache_config().path));
}

void forget_host_core() {
  const Target host = host_cpu_target();
  if (kept_core(host)) cache().put(kTable, key_of(host), "");
}

}  // namespace tinygrad
