// What the compiler makes of the corpus for Targets that do not depend on the machine, beside what tests/corpus/record/ says it made: the
// schedule of each workload with its memory plan, and the text of every different kernel, as hashes. A change that is called a refactor
// leaves them alone. One that is not writes them anew, and its message says why:
//   TG_UPDATE_RECORD=1 build/release/bin/test_corpus_corpus --gtest_filter='*Record*'
// `tools/record OTHER_BUILD` shows the first difference between what two builds make.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include <fmt/format.h>

#include <tinygrad/context.h>

#include "base/options.h"
#include "base/thread_pool.h"
#include "corpus/workloads.h"
#include "program/program.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/llvmir/llvmir.h"
#include "renderer/ptx/ptx.h"
#include "renderer/wgsl/wgsl.h"
#include "schedule/schedule.h"
#include "target/webgpu.h"
#include "tensor/cell.h"
#include "tensor/realize.h"
#include "uop/graph.h"

namespace tinygrad::test {
namespace {

struct Recorded {
  std::string name;  ///< of the file
  Target target;
  std::string (*render)(const Target& target, const UOp& linear, const KernelInfo& info);

  friend void PrintTo(const Recorded& r, std::ostream* out) { *out << r.name; }
};

/// Of the interpreted device: its programs have no other text.
std::string print_linear(const Target&, const UOp& linear, const KernelInfo&) { return print_graph(linear); }

Target in_c(Target target) {
  set_renderer(target, "CLANG");
  return target;
}

std::vector<Recorded> recorded_targets() {
  std::vector<Recorded> all;
  for (const char* arch : {"x86-64-v3", "x86-64-v4", "sapphirerapids", "znver4", "neoverse-n1", "rv64gcv"})
    all.push_back({fmt::format("llvm_{}", arch), cpu_target(arch), renderer::render_llvmir});
  for (const char* arch : {"x86-64-v3", "znver4", "neoverse-n1"})
    all.push_back({fmt::format("clang_{}", arch), in_c(cpu_target(arch)), renderer::render_c});
  for (const char* arch : {"v66", "v68"}) all.push_back({fmt::format("dsp_{}", arch), dsp_target(arch), renderer::render_hexagon});
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"}) {
    all.push_back({fmt::format("cuda_{}", arch), cuda_target(arch), renderer::render_cuda});
    all.push_back({fmt::format("ptx_{}", arch), cuda_target(arch), renderer::render_ptx});
    set_renderer(all.back().target, "PTX");
  }
  for (const char* arch : {"gfx90a", "gfx942", "gfx1100", "gfx1201"})
    all.push_back({fmt::format("hip_{}", arch), amd_target(arch), renderer::render_hip});
  all.push_back({"metal", metal_target(), renderer::render_metal});
  all.push_back({"opencl", opencl_target({.has_double = true}), renderer::render_opencl});
  all.push_back({"opencl_images", opencl_target({.has_half = true, .max_image_width = 16384, .max_image_height = 16384, .image_pitch = 64}),
                 renderer::render_opencl});
  all.push_back({"wgsl", webgpu_target({}), renderer::render_wgsl});
  all.push_back({"wgsl_f16", webgpu_target({.has_float16 = true}), renderer::render_wgsl});
  all.push_back({"interp", interp_target(), print_linear});
  for (Recorded& r : all) std::ranges::replace(r.name, '-', '_');
  return all;
}

/// The calls with their kernels and arguments, and where memory between them lies.
std::string text_of(const schedule::Plan& plan) {
  std::string text = print_graph(plan.linear) + fmt::format("\ninputs: {}\n", plan.input_count);
  for (const schedule::Temporary& t : plan.temporaries)
    text += fmt::format("temporary: {} x {} in {} at {}\n", t.size, name(t.dtype), t.arena, t.offset);
  for (const schedule::Arena& a : plan.arenas) text += fmt::format("arena: {} bytes on {}\n", a.bytes, a.device.str());
  return text;
}

/// The texts of a workload: its schedule, then its different kernels in the order in which they first run.
struct Texts {
  std::string schedule;
  std::vector<std::pair<std::string, std::string>> kernels;  ///< name and opts, text
};

Texts made_of(const apps::Workload& work, const Recorded& on) {
  std::vector<detail::CellPtr> cells;
  for (const Tensor& t : work.results) cells.push_back(detail::cell_of(t).shared_from_this());
  const Options& options = current_options();
  schedule::ScheduleOptions how = schedule::ScheduleOptions::from(options);
  how.cache = false;
  const schedule::Schedule made =
      schedule::make_schedule(tensor::effects_of(cells), [&](Symbol) -> const Target& { return on.target; }, how);
  Texts texts{.schedule = text_of(*made.plan), .kernels = {}};
  NodeSet known;
  std::vector<UOp> kernels;
  for (const UOp& call : made.plan->linear.src())
    if (const UOp& kernel = call.src(0); kernel.is(Op::SINK) && known.insert(kernel)) kernels.push_back(kernel);
  texts.kernels.resize(kernels.size());
  task_pool().parallel_for(kernels.size(), [&](size_t i) {
    std::vector<codegen::Step> steps;
    RenderedProgram p;
    std::string text;
    try {
      p = lower_program(kernels[i], on.target, options, &steps);
      text = on.render(on.target, p.linear, p.info);
    } catch (const Error& e) {  // a dtype that a language does not have
      text = e.what();
    }
    texts.kernels[i] = {fmt::format("{} {}", p.info.name, opts_of(steps)), std::move(text)};
  });
  return texts;
}

std::string hash_of(const Texts& texts) {
  ContentHasher kernels;
  for (const auto& [name, text] : texts.kernels) kernels.add(name).add(text);
  return fmt::format("schedule {}, {} kernels {}", ContentHasher().add(texts.schedule).finish().to_hex(), texts.kernels.size(),
                     kernels.finish().to_hex());
}

void write(const Texts& texts, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "schedule.txt") << texts.schedule;
  for (size_t i = 0; i < texts.kernels.size(); ++i)
    std::ofstream(folder / fmt::format("kernel_{:03}.txt", i)) << texts.kernels[i].first << "\n" << texts.kernels[i].second;
}

class Record : public testing::TestWithParam<Recorded> {
 protected:
  using Lines = std::map<std::string, std::string>;

  static std::string path() { return fmt::format("{}/{}.txt", TG_RECORD_FOLDER, GetParam().name); }
  static Lines read() {
    Lines lines;
    std::ifstream file(path());
    for (std::string line; std::getline(file, line);) {
      const size_t colon = line.find(": ");
      lines[line.substr(0, colon)] = colon == line.npos ? "" : line.substr(colon + 2);
    }
    return lines;
  }
  static void write_lines(const Lines& lines) {
    std::ofstream file(path());
    for (const auto& [name, hash] : lines) file << name << ": " << hash << "\n";
    EXPECT_TRUE(file.flush());
  }
};

TEST_P(Record, IsAsBefore) {
  const char* const folder = std::getenv("TG_RECORD_TEXTS");
  const bool update = !folder && std::getenv("TG_UPDATE_RECORD") != nullptr;
  Lines lines = read();
  std::vector<Corpus> all = corpus();
  all.push_back({.name = "resnet50 with Winograd", .default_float = "float32", .make = [] {
                   const Context context{{.wino = 2}};
                   return apps::make_workload("resnet50");
                 }});
  for (const Corpus& c : all) {
    const Context context{{.allow_tf32 = c.allow_tf32, .default_float = c.default_float, .dev = "NULL", .wino = 0}};
    const Texts texts = made_of(c.make(), GetParam());
    if (folder) {
      write(texts, std::filesystem::path(folder) / GetParam().name / c.name);
      continue;
    }
    const std::string now = hash_of(texts);
    EXPECT_TRUE(update || now == lines[c.name]) << c.name << ": other kernels or another schedule than on record";
    lines[c.name] = now;
  }
  if (update) write_lines(lines);
}

INSTANTIATE_TEST_SUITE_P(On, Record, testing::ValuesIn(recorded_targets()), [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace tinygrad::test
