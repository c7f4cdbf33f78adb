#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "target/target.h"

namespace tinygrad {
namespace {

struct CoreRow {
  std::string_view name;
  double multiply_add_bits;
  double multiply_add_cycles;
  int l1_ways, l2_ways;
  double l2_bytes_a_cycle, l3_bytes_a_cycle, memory_bytes_a_cycle;
  double memory_cycles;
  double lines_in_flight;
};

// Units, latencies, ways and lines in flight are the makers' figures; rates and latencies of what lies outside of a core are measured ones.
// docs/processors.md names the sources.
constexpr CoreRow kCores[] = {
    {"nehalem", 256, 4, 8, 8, 16, 8, 4, 200, 10},
    {"haswell", 512, 5, 8, 8, 25, 18, 5, 250, 10},
    {"skylake", 512, 4, 8, 4, 28, 18, 6, 250, 12},
    {"skylake_server", 1024, 4, 8, 16, 48, 10, 4, 300, 12},
    {"sunny_cove", 1024, 4, 12, 20, 44, 12, 4, 300, 12},
    {"sunny_cove_client", 512, 4, 12, 8, 40, 18, 7, 280, 12},
    {"golden_cove", 1024, 4, 12, 16, 48, 10, 4, 350, 16},
    {"golden_cove_client", 512, 4, 12, 10, 40, 18, 9, 350, 16},
    // Its rates and latencies outside of the core are those of the row before.
    {"lion_cove", 512, 4, 12, 12, 40, 18, 9, 350, 16},
    {"gracemont", 256, 6, 8, 16, 24, 8, 6, 350, 16},
    {"zen1", 256, 5, 8, 8, 16, 12, 6, 300, 22},
    {"zen2", 512, 5, 8, 8, 28, 20, 7, 320, 22},
    {"zen3", 512, 4, 8, 8, 30, 25, 8, 350, 24},
    {"zen4", 512, 4, 8, 8, 30, 25, 8, 380, 24},
    {"zen5", 1024, 4, 12, 16, 55, 28, 8, 400, 24},
    {"cortex_a72", 128, 7, 2, 16, 10, 6, 3, 250, 6},
    {"neoverse_n1", 256, 4, 4, 8, 16, 8, 6, 300, 20},
    {"neoverse_n2", 256, 4, 4, 8, 24, 10, 8, 300, 24},
    {"neoverse_v1", 512, 4, 4, 8, 32, 10, 8, 300, 24},
    {"neoverse_v2", 512, 4, 4, 8, 32, 12, 10, 320, 32},
    {"firestorm", 512, 4, 8, 12, 32, 24, 16, 330, 28},
    {"rv64gcv", 256, 4, 8, 8, 16, 8, 4, 250, 8},
};

}  // namespace

CpuCore cpu_core(std::string_view name) {
  for (const CoreRow& r : kCores) {
    if (r.name != name) continue;
    CpuCore core;
    core.name = Symbol(name);
    core.multiply_add_bits = r.multiply_add_bits;
    core.multiply_add_cycles = r.multiply_add_cycles;
    core.l1_ways = r.l1_ways;
    core.l2_ways = r.l2_ways;
    core.l2_bytes_a_cycle = r.l2_bytes_a_cycle;
    core.l3_bytes_a_cycle = r.l3_bytes_a_cycle;
    core.memory_bytes_a_cycle = r.memory_bytes_a_cycle;
    core.memory_cycles = r.memory_cycles;
    core.lines_in_flight = r.lines_in_flight;
    return core;
  }
  throw ValueError(fmt::format("CPU: unknown microarchitecture '{}'", name));
}

std::vector<std::string_view> cpu_core_names() {
  std::vector<std::string_view> names;
  for (const CoreRow& r : kCores) names.push_back(r.name);
  return names;
}

}  // namespace tinygrad
