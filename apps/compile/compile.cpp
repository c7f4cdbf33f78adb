// tg compile: how long the compiler takes for a model, without running it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include <tinygrad/tinygrad.h>

#include "commands.h"
#include "common/json_line.h"
#include "models/models.h"

namespace tinygrad::apps {

namespace {

struct CompileOptions {
  std::string model, device = "NULL";
  bool json = false;
};

double microseconds(double seconds) { return std::round(seconds * 1e6) / 1e6; }

void compile(const CompileOptions& o) {
  const Context on_device{{.dev = o.device}};
  const Workload work = make_workload(o.model);
  const CompileReport r = compile_report(work.results);
  if (o.json) {
    print_json(
        {{"model", o.model},
         {"kernels", r.kernels},
         {"unique_kernels", r.unique_kernels},
         {"bytes", r.bytes},
         {"stages", {{"schedule", microseconds(r.schedule_s)}, {"lower", microseconds(r.lower_s)}, {"render", microseconds(r.render_s)}}},
         {"seconds", microseconds(r.seconds())}});
    return;
  }
  fmt::print("{:<15} {:>5} kernels, {:>4} unique, {:>8.1f} MB moved   schedule {:.3f} s  lower {:.3f} s  render {:.3f} s  together {:.3f} s\n", o.model,
             r.kernels, r.unique_kernels, double(r.bytes) / 1e6, r.schedule_s, r.lower_s, r.render_s, r.seconds());
}

}  // namespace

void add_compile(CLI::App& app) {
  CLI::App* command = app.add_subcommand("compile", "Schedule, lower and render a model without running it, and print how long that took");
  command->footer(
      "Inference has batch 1; training is a step of batch 4 by SGD with momentum, of mnist-train of batch 512 by Adam; GPT-2 reads 128\n"
      "tokens. Seconds are those of the three stages: building the graph and starting the program do not count.");
  const auto o = std::make_shared<CompileOptions>();
  command->add_option("MODEL", o->model, "What to compile")->required()->check(CLI::IsMember(model_names()));
  command->add_option("--device", o->device, "Device to compile for, NAME[:RENDERER[:ARCH]]")->capture_default_str();
  command->add_flag("--json", o->json, "Print one JSON object: model, kernels, unique_kernels, bytes, stages, seconds");
  command->callback([o] { compile(*o); });
}

}  // namespace tinygrad::apps
