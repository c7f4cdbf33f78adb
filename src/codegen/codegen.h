#pragma once
/// One kernel from the scheduler's SINK to the list of instructions that renderers print; docs/ir.md has both formats.

#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "codegen/choose/heuristic_opts.h"
#include "codegen/opt/apply_opts.h"
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// What of the library's options matters here; the caller passes it down, nothing below reads the environment.
struct CodegenOptions {
  bool noopt = false;        ///< no heuristics: loops as the scheduler made them
  bool nolocals = false;     ///< the heuristics choose no work-items
  bool tensor_cores = true;  ///< they may choose tensor cores
  int products = 1;  ///< that they may give to tensor cores. 0: of arguments; 1: of anything; 2: also, on GPUs, of sizes that need padding
  int tensor_core = -1;     ///< the only one that there is, by its place in Target::tensor_cores; -1: all
  bool allow_tf32 = false;  ///< also those that round their factors
  bool images = false;      ///< arguments are images where the target has them and the kernel reads or writes whole texels
  int transcendental = 1;   ///< EXP2, LOG2, SIN: 0 by the device, 1 by our code where the device has none, 2 always by our code

  std::string emulated_dtypes = {};  ///< those that the target is to do without

  int spec = default_spec;  ///< verify 1: what goes in and out, 2: also each step, 3: also that no step changes the values (SPEC)

  static CodegenOptions from(const Options& options);
};

/// The kernel as opts see it: simplified, neighbouring ranges that are one merged.
UOp simplified_kernel(const UOp& sink);

/// What opts are chosen for, by the heuristics or a search: the target without what options forbid.
Target choices(const Target& target, const CodegenOptions& options);
/// The same for one kernel, whose products may be ones that no tensor core is to make.
Target choices(const Target& target, const CodegenOptions& options, const UOp& sink);

/// One named step of the pipeline, a graph before and after it.
struct Step {
  const char* name;
  UOp result;
};

/// The LINEAR program (kind 1) of a kernel. Opts in the KernelArg are applied; without any, and unless the kernel is marked `optimized`
/// or options say otherwise, the heuristics choose them. Each step's result is added to `trace` where one is given.
UOp full_rewrite(const UOp& sink, const Target& target, const CodegenOptions& options = {}, std::vector<Step>* trace = nullptr);

/// The same, stopped before linearizing: a graph with all ops, dtypes and indices as the target takes them.
UOp full_rewrite_to_sink(const UOp& sink, const Target& target, const CodegenOptions& options = {}, std::vector<Step>* trace = nullptr);

}  // namespace tinygrad::codegen
