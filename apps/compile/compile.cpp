#include "compile/compile.h"

#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <tinygrad/tinygrad.h>

#include "common/json_line.h"
#include "models/models.h"

namespace tinygrad::apps {

namespace {

double microseconds(double seconds) { return std::round(seconds * 1e6) / 1e6; }

/// Writes each kernel to a file of its own, numbered as they first run.
void write_sources(const CompileReport& r, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw IoError(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
  for (size_t i = 0; i < r.sources.size(); ++i) {
    const std::filesystem::path path = folder / fmt::format("{:04}_{}.txt", i, r.sources[i].name);
    std::ofstream file(path, std::ios::binary);
    file << r.sources[i].source;
    if (!file.flush()) throw IoError(fmt::format("cannot write {}", path.string()));
  }
}

void print_steps(const CompileReport& r) {
  fmt::print("\n{:<9} {:<22} {:>6} {:>10}\n", "stage", "step", "calls", "ms");
  for (const StepTime& s : r.steps) fmt::print("{:<9} {:<22} {:>6} {:>10.3f}\n", s.stage, s.step, s.calls, s.seconds * 1e3);
}

void print_rules(const CompileReport& r) {
  fmt::print("\n{:>10} {:>9} {:>9}  {}\n", "ms", "tries", "hits", "rule");
  for (const RuleTime& rule : r.rules) {
    const std::string where = rule.name == rule.location ? "" : " (" + rule.location + ")";
    fmt::print("{:>10.3f} {:>9} {:>9}  {}{}\n", rule.seconds * 1e3, rule.tries, rule.hits, rule.name, where);
  }
}

nlohmann::ordered_json to_json(const CompileReport& r, const CompileOptions& o) {
  nlohmann::ordered_json line = {
      {"model", o.model},
      {"kernels", r.kernels},
      {"unique_kernels", r.unique_kernels},
      {"bytes", r.bytes},
      {"stages", {{"schedule", microseconds(r.schedule_s)}, {"lower", microseconds(r.lower_s)}, {"render", microseconds(r.render_s)}}},
      {"seconds", microseconds(r.seconds())}};
  for (const StepTime& s : r.steps)
    line["steps"].push_back({{"stage", s.stage}, {"step", s.step}, {"calls", s.calls}, {"seconds", microseconds(s.seconds)}});
  for (const RuleTime& rule : r.rules)
    line["rules"].push_back({{"name", rule.name},
                             {"location", rule.location},
                             {"tries", rule.tries},
                             {"hits", rule.hits},
                             {"seconds", microseconds(rule.seconds)}});
  return line;
}

}  // namespace

void compile(const CompileOptions& o) {
  const Context on_device{{.dev = o.device}};
  const Workload work = make_workload(o.model);
  const CompileReport r = compile_report(work.results, {.steps = o.steps, .rules = o.rules, .sources = !o.sources.empty()});
  if (!o.sources.empty()) write_sources(r, o.sources);
  if (o.json) return print_json(to_json(r, o));
  fmt::print(
      "{:<15} {:>5} kernels, {:>4} unique, {:>8.1f} MB moved   schedule {:.3f} s  lower {:.3f} s  render {:.3f} s  together {:.3f} s\n",
      o.model, r.kernels, r.unique_kernels, double(r.bytes) / 1e6, r.schedule_s, r.lower_s, r.render_s, r.seconds());
  if (o.steps) print_steps(r);
  if (o.rules) print_rules(r);
}

}  // namespace tinygrad::apps
