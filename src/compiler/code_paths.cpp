#include "compiler/code_paths.h"

#include <algorithm>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "compiler/clang/clang.h"
#include "compiler/image/image.h"
#include "compiler/llvm/llvm.h"
#include "compiler/nvidia/assemble.h"
#include "compiler/nvidia/nvrtc.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/llvmir/llvmir.h"
#include "renderer/ptx/ptx.h"
#include "renderer/wgsl/wgsl.h"
#include "target/webgpu.h"

namespace tinygrad {

const CodePath& find_code_path(std::span<const CodePath> paths, std::string_view renderer) {
  const auto named = renderer.empty() ? paths.begin() : std::ranges::find(paths, renderer, &CodePath::renderer);
  if (named == paths.end()) throw InternalError(fmt::format("no code path is called {}", renderer));
  return *named;
}

namespace compiler {
namespace {

Target cpu_in(std::string_view arch, std::string_view renderer) {
  Target target = arch.empty() ? host_cpu_target() : cpu_target(arch);
  set_renderer(target, renderer);
  return target;
}

Target nvidia_in(std::string_view arch, std::string_view renderer) {
  Target target = cuda_target(arch.empty() ? "sm_80" : arch);
  target.renderer = Symbol(renderer);
  return target;
}

std::string disassemble(const Target& target, const std::string& binary) { return disassemble_llvm(binary, target.arch.str()); }

/// The assembled text, or the text itself if no assembler is found: the driver takes both.
std::string assemble_or_leave(const Target& target, const std::string& source) {
  return ptx_assembler_missing().empty() ? assemble_ptx(source, target.arch.str()) : source;
}

std::string no_binary(const Target&, const std::string&) { return {}; }

}  // namespace

constinit const CodePath llvm_path{
    .renderer = "LLVM",
    .target = [](std::string_view arch) { return cpu_in(arch, "LLVM"); },
    .render = renderer::render_llvmir,
    .compile = [](const Target& t, const std::string& source) { return compile_llvmir(source, t.arch.str()); },
    .disassemble = disassemble,
    .missing_compiler = llvm_missing};
constinit const CodePath clang_path{.renderer = "CLANG",
                                    .target = [](std::string_view arch) { return cpu_in(arch, "CLANG"); },
                                    .render = renderer::render_c,
                                    .compile = [](const Target& t, const std::string& source) { return compile_c(source, t); },
                                    .disassemble = disassemble,
                                    .missing_compiler = clang_missing};
constinit const CodePath hexagon_path{.renderer = "CLANG",
                                      .target = [](std::string_view arch) { return dsp_target(arch.empty() ? "v66" : arch); },
                                      .render = renderer::render_hexagon,
                                      .compile = [](const Target& t, const std::string& source) { return compile_c(source, t); },
                                      .disassemble = disassemble,
                                      .missing_compiler = image_missing};
constinit const CodePath cuda_path{.renderer = "CUDA",
                                   .target = [](std::string_view arch) { return nvidia_in(arch, "CUDA"); },
                                   .render = renderer::render_cuda,
                                   .compile = [](const Target& t, const std::string& source) { return compile_cuda(source, t.arch.str()); },
                                   .missing_compiler = nvrtc_missing};
constinit const CodePath ptx_path{.renderer = "PTX",
                                  .target = [](std::string_view arch) { return nvidia_in(arch, "PTX"); },
                                  .render = renderer::render_ptx,
                                  .compile = assemble_or_leave};
constinit const CodePath hip_path{.renderer = "HIP",
                                  .target = [](std::string_view arch) { return amd_target(arch.empty() ? "gfx90a" : arch); },
                                  .render = renderer::render_hip,
                                  .compile = [](const Target& t, const std::string& source) { return compile_hip(source, t); },
                                  .missing_compiler = clang_missing};
// What follows is compiled by drivers.
constinit const CodePath metal_path{
    .renderer = "METAL", .target = [](std::string_view) { return metal_target(); }, .render = renderer::render_metal};
constinit const CodePath opencl_path{.renderer = "OPENCL",
                                     .target = [](std::string_view) { return opencl_target({.has_double = true}); },
                                     .render = renderer::render_opencl};
constinit const CodePath wgsl_path{.renderer = "WGSL",
                                   .target = [](std::string_view arch) { return webgpu_target({.has_float16 = arch == "f16"}); },
                                   .render = renderer::render_wgsl};

std::span<const CodePath> text_paths() {
  static const auto& paths = *[] {
    auto* all = new std::vector<CodePath>{llvm_path, clang_path, cuda_path, ptx_path, hip_path, metal_path, opencl_path, wgsl_path};
    for (CodePath& p : *all) {
      p.compile = no_binary;
      p.disassemble = nullptr;
      p.missing_compiler = nullptr;
    }
    return all;
  }();
  return paths;
}

}  // namespace compiler
}  // namespace tinygrad
