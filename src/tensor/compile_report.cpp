#include <tinygrad/compile_report.h>

#include <chrono>
#include <vector>

#include "base/options.h"
#include "engine/run.h"
#include "schedule/schedule.h"
#include "tensor/cell.h"
#include "tensor/realize.h"

namespace tinygrad {

CompileReport compile_report(std::span<const Tensor> tensors) {
  const Options& options = current_options();
  std::vector<detail::CellPtr> cells;
  for (const Tensor& t : tensors) cells.push_back(detail::make_cell(t.uop()));
  const auto start = std::chrono::steady_clock::now();
  const UOp effects = tensor::effects_of(cells);
  const schedule::Schedule schedule =
      schedule::make_schedule(effects, engine::target_of, {.cache = false, .memory_plan = !options.no_memory_planner});
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  const engine::RenderReport rendered = engine::render_schedule(schedule, options);
  return {.kernels = rendered.kernels,
          .unique_kernels = rendered.unique_kernels,
          .bytes = rendered.bytes,
          .schedule_s = taken.count(),
          .lower_s = rendered.lower_s,
          .render_s = rendered.render_s};
}

}  // namespace tinygrad
