#pragma once
/// How long the compiler takes for a graph, and what comes out, without running anything.

#include <cstddef>
#include <cstdint>
#include <span>

#include <tinygrad/export.h>
#include <tinygrad/tensor.h>

namespace tinygrad {

struct CompileReport {
  size_t kernels = 0;         ///< launches, without copies
  size_t unique_kernels = 0;  ///< different ones among them: each is lowered and rendered once
  int64_t bytes = 0;          ///< of the buffers that each launch reads and of those it writes
  double schedule_s = 0;      ///< graph to kernels
  double lower_s = 0;         ///< kernels to linear programs
  double render_s = 0;        ///< linear programs to source text

  double seconds() const { return schedule_s + lower_s + render_s; }
};

/// Takes the graph of tensors that are not computed yet through the stages of realize() up to source text, with no result taken from a
/// cache. Nothing is compiled, allocated or run, and the tensors stay as they are. Throws what realize() would throw up to there.
TINYGRAD_EXPORT CompileReport compile_report(std::span<const Tensor> tensors);

}  // namespace tinygrad
