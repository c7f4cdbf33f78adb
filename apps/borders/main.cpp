// tg-borders: one kernel, softmax of x @ w, as each stage of the compiler hands it to the next. Nothing runs and nothing of the machine
// matters but the version of clang or LLVM, so docs/one-kernel.md can show what this prints. Linked with the library's insides.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <tinygrad/context.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>
#include <tinygrad/tensor.h>

#include "base/options.h"
#include "compiler/code_paths.h"
#include "engine/run.h"
#include "program/program.h"
#include "schedule/schedule.h"
#include "shape/listing.h"
#include "tensor/cell.h"
#include "tensor/realize.h"

namespace tinygrad {

namespace {

struct BorderOptions {
  std::string border;
  std::string device = "NULL:CLANG:x86-64-v3";
  std::vector<int64_t> sizes = {2, 4, 8};  ///< x is sizes[0] by sizes[1], w sizes[1] by sizes[2]
};

UOp tensor_graph(const std::vector<int64_t>& sizes) {
  const Tensor x = Tensor::empty({sizes[0], sizes[1]}), w = Tensor::empty({sizes[1], sizes[2]});
  const Tensor y = x.matmul(w).softmax();
  const std::vector<detail::CellPtr> cells = {detail::cell_of(y).shared_from_this()};
  return tensor::effects_of(cells);
}

/// NULL renders what it never compiles.
const CodePath& compiling_path(const Target& target) {
  for (const CodePath* path : {&compiler::llvm_path, &compiler::clang_path})
    if (path->renderer == target.renderer.str()) return *path;
  throw ValueError(fmt::format("tg-borders: instructions are shown of CLANG and LLVM, not of {}", target.renderer.str()));
}

/// One kernel at the borders behind the schedule.
struct KernelBorders {
  RenderedProgram program;
  std::vector<codegen::Step> steps;
  const Target& target;

  KernelBorders(const UOp& sink, Device& device) : target(device.target()) {
    program = render_program(sink, device, current_options(), &steps);
  }

  /// `name` is a border or a step of code generation.
  std::string at(const std::string& name) const {
    if (name == "linear") return print_listing(program.linear);
    if (name == "text") return program.source;
    if (name == "instructions") {
      const CodePath& path = compiling_path(target);
      return path.disassemble(target, path.compile(target, program.source));
    }
    if (name == "steps") {
      std::string names;
      for (const codegen::Step& s : steps) names += std::string(s.name) + "\n";
      return names;
    }
    const auto step = std::ranges::find(steps, name == "opts" ? "apply opts" : name, &codegen::Step::name);
    if (step == steps.end())
      throw ValueError(fmt::format("tg-borders: no border and no step is called '{}'; `tg-borders steps` lists these", name));
    return print_listing(step->result);
  }
};

void show(const BorderOptions& o) {
  if (o.sizes.size() != 3) throw ValueError("tg-borders: --sizes takes three numbers: rows of x, columns of x, columns of w");
  const Context context{{.dev = o.device}};
  const UOp graph = tensor_graph(o.sizes);
  schedule::ScheduleOptions how = schedule::ScheduleOptions::from(current_options());
  how.cache = false;
  const schedule::Schedule schedule = schedule::make_schedule(graph, engine::target_of, how);
  const std::vector<std::string> all = {"tensor", "schedule", "opts", "linear", "text", "instructions"};
  for (const std::string& border : o.border.empty() ? all : std::vector{o.border}) {
    if (o.border.empty()) fmt::print("=== {}\n", border);
    if (border == "tensor") {
      fmt::print("{}", print_listing(graph));
    } else if (border == "schedule") {
      fmt::print("{}", print_listing(schedule.plan->linear));
    } else {
      for (const UOp& call : schedule.plan->linear.src())
        if (call.src(0).is(Op::SINK)) fmt::print("{}\n", KernelBorders(call.src(0), Device::get(o.device)).at(border));
    }
  }
}

int run(int argc, char** argv) {
  CLI::App app{"tg-borders - softmax of x @ w at each border of the compiler", "tg-borders"};
  BorderOptions o;
  app.add_option(
      "BORDER", o.border,
      "tensor, schedule, opts, linear, text, instructions; steps: the names of the steps of code generation; or such a name: the\n"
      "graph behind it. Default: all borders");
  app.add_option("--device", o.device, "Compile for this one, NULL:RENDERER:ARCH")->capture_default_str();
  app.add_option("--sizes", o.sizes, "Rows of x, columns of x, columns of w")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  }
  show(o);
  return 0;
}

}  // namespace

}  // namespace tinygrad

int main(int argc, char** argv) {
  try {
    return tinygrad::run(argc, argv);
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
