#pragma once
/// The one way from a kernel graph to something that runs.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "codegen/codegen.h"
#include "device/device.h"
#include "uop/uop.h"

namespace tinygrad {

/// A kernel, optimized, compiled and loaded. Const, shared by everybody who runs the same kernel graph on the same device.
struct Program {
  KernelInfo info;
  std::unique_ptr<Kernel> kernel;
  UOp sink = {};  ///< what it was made from
};

/// The program of a kernel's SINK on a device, from the process's cache if it was made before with options that generate the same code.
/// Throws CompileError and DeviceError; nothing is kept then. Safe for many threads: a kernel that several ask for at once is made once.
std::shared_ptr<const Program> get_program(const UOp& sink, Device& device, const Options& options);

/// A kernel's SINK and where it is to run.
struct KernelOn {
  UOp sink;
  Device* device = nullptr;
};

/// get_program() of each kernel of a list, in parallel; null for what is no SINK. Those that the process has not made yet are one entry of
/// the disk cache together, under their graphs and this build of the library: a start that comes by the same list reads them at once, and
/// neither lowers nor compiles them.
std::vector<std::shared_ptr<const Program>> get_programs(std::span<const KernelOn> kernels, const Options& options);

/// Code generation without compiling: the linear program and its description. Each step's result is added to `steps` where given.
struct RenderedProgram {
  UOp linear;
  KernelInfo info;
  std::string source;
};
RenderedProgram render_program(const UOp& sink, Device& device, const Options& options, std::vector<codegen::Step>* steps = nullptr);
/// The two halves of render_program(): all but the source, then the source.
RenderedProgram lower_program(const UOp& sink, const Target& target, const Options& options, std::vector<codegen::Step>* steps = nullptr);
void render_source(RenderedProgram& program, Device& device);

/// The opts that were applied, as text, from the steps of a kernel; "" for one without.
std::string opts_of(const std::vector<codegen::Step>& steps);

/// Programs made by this process so far; for tests.
size_t programs_made();

}  // namespace tinygrad
