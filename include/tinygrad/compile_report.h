#pragma once
/// How long the compiler takes for a graph, and what comes out, without running anything.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tinygrad/export.h>
#include <tinygrad/kernel_info.h>
#include <tinygrad/tensor.h>

namespace tinygrad {

/// A named step of a stage, over all kernels. Steps of several threads overlap in time, and measuring slows the stages a little.
struct StepTime {
  std::string stage, step;
  size_t calls = 0;
  double seconds = 0;
};

/// A rewrite rule.
struct RuleTime {
  std::string name, location;
  uint64_t hits = 0;   ///< times it changed a node
  uint64_t tries = 0;  ///< times its pattern was matched against a node
  double seconds = 0;  ///< in pattern and function; 0 unless rules were asked for
};

/// A different kernel among those of a schedule.
struct KernelSource {
  std::string name;
  std::string opts;    ///< how its loops were optimized, as text
  std::string source;  ///< what the device's compiler would be given
  KernelInfo info;     ///< what a launch of it needs
};

struct CompileReportOptions {
  bool steps = false, rules = false, sources = false;  ///< fill in these parts too
};

struct CompileReport {
  size_t kernels = 0;                      ///< launches, without copies
  size_t unique_kernels = 0;               ///< different ones among them: each is lowered and rendered once
  int64_t bytes = 0;                       ///< of the buffers that each launch reads and of those it writes
  double schedule_s = 0;                   ///< graph to kernels
  double lower_s = 0;                      ///< kernels to linear programs
  double render_s = 0;                     ///< linear programs to source text
  std::vector<StepTime> steps = {};        ///< in the order in which they first ran
  std::vector<RuleTime> rules = {};        ///< those that were tried, the most expensive first
  std::vector<KernelSource> sources = {};  ///< in the order in which they first run

  double seconds() const { return schedule_s + lower_s + render_s; }
};

/// Takes the graph of tensors that are not computed yet through the stages of realize() up to source text, with no result taken from a
/// cache. Nothing is compiled, allocated or run, and the tensors stay as they are. Throws what realize() would throw up to there.
/// Reports of several threads at once mix up their steps and rules.
TINYGRAD_EXPORT CompileReport compile_report(std::span<const Tensor> tensors, const CompileReportOptions& options = {});

}  // namespace tinygrad
